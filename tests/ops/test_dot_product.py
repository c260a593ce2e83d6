"""Dot-product attention: its formula, and its edge features."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from tempergat import Graph, ops

NODES, HEADS, CHANNELS = 7, 2, 5


def _all_pairs() -> Graph:
    nodes = torch.arange(NODES)
    return Graph(
        torch.stack([nodes.repeat(NODES), nodes.repeat_interleave(NODES)]), NODES
    )


def test_on_all_pairs_it_is_torchs_own_attention() -> None:
    q, k, v = torch.randn(3, NODES, HEADS, CHANNELS, dtype=torch.float64)
    out, weights = ops.dot_product(_all_pairs(), q, k, v, return_weights=True)
    expected = scaled_dot_product_attention(*(x.transpose(0, 1) for x in (q, k, v)))
    torch.testing.assert_close(out, expected.transpose(0, 1))
    assert weights is not None
    total = weights.view(NODES, NODES, HEADS).sum(1)
    torch.testing.assert_close(total, torch.ones_like(total))


def test_edge_features_are_added_to_keys_and_values() -> None:
    graph = _all_pairs()
    q, k, v = torch.randn(3, NODES, HEADS, CHANNELS, dtype=torch.float64)
    edge = torch.randn(NODES * NODES, 3, dtype=torch.float64)
    edge_map = torch.randn(HEADS, CHANNELS, 3, dtype=torch.float64)
    heat = torch.tensor([0.5, 2.0], dtype=torch.float64)
    out, _ = ops.dot_product(graph, q, k, v, edge, edge_map, temperature=heat)
    added = torch.einsum("ijd,hcd->ijhc", edge.view(NODES, NODES, 3), edge_map)
    logit = torch.einsum("ihc,ijhc->ijh", q, k + added) * CHANNELS**-0.5 / heat
    expected = torch.einsum("ijh,ijhc->ihc", logit.softmax(1), v + added)
    torch.testing.assert_close(out, expected)


def test_keys_and_values_may_be_halves_of_one_tensors_rows() -> None:
    graph = _all_pairs()
    q, (k, v) = (
        torch.randn(NODES, HEADS, CHANNELS),
        torch.randn(2, NODES, HEADS, CHANNELS),
    )
    expected, _ = ops.dot_product(graph, q, k, v)
    rows = torch.cat([k.flatten(1), v.flatten(1)], dim=1).requires_grad_()
    first, second = rows.view(NODES, 2, HEADS, CHANNELS).unbind(1)
    out, _ = ops.dot_product(graph, q, first, second)
    assert torch.equal(out, expected)
    (found,) = torch.autograd.grad(out.sin().sum(), rows)
    leaves = [k.requires_grad_(), v.requires_grad_()]
    out, _ = ops.dot_product(graph, q, *leaves)
    want = torch.autograd.grad(out.sin().sum(), leaves)
    assert torch.equal(found, torch.cat([x.flatten(1) for x in want], dim=1))


def test_a_graph_from_csr_has_its_edges_in_that_order() -> None:
    rowptr, col = torch.tensor([0, 2, 2, 5]), torch.tensor([3, 1, 0, 3, 2])
    graph = Graph.from_csr(rowptr, col, 4)
    assert graph.edge_index.tolist() == [[3, 1, 0, 3, 2], [0, 0, 2, 2, 2]]
    q, (k, v) = torch.randn(3, 2, 4), torch.randn(2, 4, 2, 4)
    out, _ = ops.dot_product(graph, q, k, v)
    expected, _ = ops.dot_product(Graph(graph.edge_index, (4, 3)), q, k, v)
    torch.testing.assert_close(out, expected)


def test_products_with_the_map_are_exact_in_autocast() -> None:
    graph = _all_pairs()
    q, k, v = torch.randn(3, NODES, HEADS, CHANNELS)
    edge, edge_map = torch.randn(NODES * NODES, 3), torch.randn(HEADS, CHANNELS, 3)
    leaves = [x.requires_grad_() for x in (q, k, v, edge, edge_map)]
    expected, _ = ops.dot_product(graph, *leaves)
    want = torch.autograd.grad(expected.sin().sum(), leaves)
    with torch.autocast("cpu", torch.bfloat16):
        out, _ = ops.dot_product(graph, *leaves)
        found = torch.autograd.grad(out.sin().sum(), leaves)
    assert torch.equal(out, expected)
    for got, exact in zip(found, want, strict=True):
        assert torch.equal(got, exact)
