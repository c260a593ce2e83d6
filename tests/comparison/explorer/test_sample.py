"""Which nodes of a graph a page holds."""

import torch
from torch import Tensor

from tempergat.comparison.explorer.sample import NodeSample, sample_nodes


def random_edges(nodes: int, edges: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, nodes, (2, edges), generator=generator)


def within(edges: Tensor, start: Tensor, hops: int) -> Tensor:
    """The nodes from which edges lead to the start in at most some steps."""
    nodes = start.unique()
    for _ in range(hops):
        into = torch.isin(edges[1], nodes)
        nodes = torch.cat([nodes, edges[0, into]]).unique()
    return nodes


def sampled(edges: Tensor, wrong: Tensor, most: float) -> NodeSample:
    return sample_nodes(edges, wrong, 2, node_size=10.0, edge_size=1.0, most=most)


def random_sample(most: float) -> tuple[Tensor, Tensor, NodeSample]:
    edges = random_edges(400, 700)
    wrong = torch.arange(400) % 10 == 0
    return edges, wrong, sampled(edges, wrong, most)


def test_a_small_graph_is_there_as_a_whole() -> None:
    edges, _, sample = random_sample(1e6)
    assert sample.is_whole
    assert sample.nodes.tolist() == list(range(400))
    assert sample.edges.tolist() == list(range(edges.size(1)))
    assert bool(sample.shown.all())


def test_of_a_large_graph_all_is_there_that_its_nodes_depend_on() -> None:
    edges, wrong, sample = random_sample(1500.0)
    assert not sample.is_whole
    targets = sample.nodes[sample.shown]
    assert 0 < targets.numel() < 400
    assert torch.equal(sample.nodes, within(edges, targets, 2))
    expanded = sample.nodes[sample.has_edges]
    assert torch.equal(expanded, within(edges, targets, 1))
    into = torch.isin(edges[1], expanded).nonzero().squeeze(1)
    assert torch.equal(sample.edges, into)
    # Both kinds are drawn, though few nodes are wrong.
    assert 0 < int(wrong[targets].sum()) < targets.numel()
    cost = 10.0 * sample.nodes.numel() + sample.edges.numel() + expanded.numel()
    assert cost <= 1500.0


def test_the_same_nodes_are_drawn_every_time() -> None:
    assert torch.equal(random_sample(1500.0)[2].nodes, random_sample(1500.0)[2].nodes)


def test_a_node_with_too_many_neighbours_is_counted() -> None:
    hub = torch.stack([torch.arange(1, 300), torch.zeros(299, dtype=torch.int64)])
    wrong = torch.zeros(400, dtype=torch.bool)
    sample = sampled(hub, wrong, 1500.0)
    assert sample.left_out == 1
    assert 0 not in sample.nodes[sample.shown]
