"""Which nodes of a graph a page holds."""

import torch
from torch import Tensor

from tempergat.comparison.explorer.choosing import Choice, Costs, choose_nodes


def random_edges(nodes: int, edges: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, nodes, (2, edges), generator=generator)


def within(edges: Tensor, start: Tensor, hops: int) -> Tensor:
    """The nodes from which edges lead to the start in at most some steps."""
    found = start.unique()
    for _ in range(hops):
        into = torch.isin(edges[1], found)
        found = torch.cat([found, edges[0, into]]).unique()
    return found


def chosen(most: float) -> tuple[Tensor, Tensor, Choice]:
    edges = random_edges(400, 700)
    wrong = torch.arange(400) % 10 == 0
    return edges, wrong, choose_nodes(edges, 400, 2, wrong, Costs(10.0, 1.0, most))


def test_a_small_graph_is_there_as_a_whole() -> None:
    edges, _, choice = chosen(1e6)
    assert choice.is_whole
    assert choice.nodes.tolist() == list(range(400))
    assert choice.edges.tolist() == list(range(edges.size(1)))
    assert bool(choice.shown.all())


def test_of_a_large_graph_all_is_there_that_its_nodes_depend_on() -> None:
    edges, wrong, choice = chosen(1500.0)
    assert not choice.is_whole
    targets = choice.nodes[choice.shown]
    assert 0 < targets.numel() < 400
    assert torch.equal(choice.nodes, within(edges, targets, 2))
    expanded = choice.nodes[choice.has_edges]
    assert torch.equal(expanded, within(edges, targets, 1))
    into = torch.isin(edges[1], expanded).nonzero().squeeze(1)
    assert torch.equal(choice.edges, into)
    # Both kinds are drawn, though few nodes are wrong.
    assert 0 < int(wrong[targets].sum()) < targets.numel()
    cost = 10.0 * choice.nodes.numel() + choice.edges.numel() + expanded.numel()
    assert cost <= 1500.0


def test_the_same_nodes_are_drawn_every_time() -> None:
    assert torch.equal(chosen(1500.0)[2].nodes, chosen(1500.0)[2].nodes)


def test_a_node_with_too_many_neighbours_is_counted() -> None:
    hub = torch.stack([torch.arange(1, 300), torch.zeros(299, dtype=torch.int64)])
    wrong = torch.zeros(400, dtype=torch.bool)
    choice = choose_nodes(hub, 400, 2, wrong, Costs(10.0, 1.0, 1500.0))
    assert choice.left_out == 1
    assert 0 not in choice.nodes[choice.shown]
