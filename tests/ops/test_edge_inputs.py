"""Weights and biases of edges, and many sets of features on one graph."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat import ops
from tempergat.ops import Graph
from tests.support.attention_cases import (
    GRAPHS,
    Settings,
    attend,
    compare,
    make_inputs,
)

KINDS = ("gat", "gatv2", "dot_product")
HEADS, CHANNELS, COPIES = 2, 5, 3


def _call(kind: str, graph: Graph, inputs: dict[str, Tensor], **options: Any) -> Any:
    return attend(kind, graph, inputs, return_weights=True, **options)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_whose_edges_are_all_masked_has_no_gradient(kind: str) -> None:
    graph = GRAPHS["hub"]()
    options = Settings(edge_weight=True, edge_bias=True)
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float32, options)
    # One head of the row with many edges.
    inputs["edge_bias"][graph.dst == 0, 1] = -torch.inf
    leaves = {name: x.requires_grad_() for name, x in inputs.items()}
    out, weights = _call(kind, graph, leaves)
    assert not out[0, 1].any()
    assert not weights[graph.dst == 0, 1].any()
    (out.sin().sum() + weights.sin().sum()).backward()
    for name, x in leaves.items():
        assert x.grad is not None
        assert x.grad.isfinite().all(), name
    for name in ("edge_weight", "edge_bias"):
        gradient = leaves[name].grad
        assert gradient is not None
        assert not gradient[graph.dst == 0, 1].any()
        assert gradient[graph.dst == 0, 0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_an_edge_weight_multiplies_the_weight_after_the_softmax(kind: str) -> None:
    graph = GRAPHS["self_loops"]()
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float64, Settings())
    weight = torch.randn(graph.num_all_edges, dtype=torch.float64)
    _, plain = _call(kind, graph, inputs)
    out, weights = _call(kind, graph, inputs, edge_weight=weight)
    torch.testing.assert_close(weights, plain * weight[:, None])
    value = next(iter(inputs.values()))
    message = weights[:, :, None] * value[graph.src]
    expected = torch.zeros_like(out).index_add(0, graph.dst, message)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bias_of_minus_infinity_removes_an_edge(kind: str) -> None:
    graph = GRAPHS["random"]()
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float64, Settings())
    # All edges of node 0 are masked, and some others.
    kept = (graph.dst != 0) & (torch.arange(graph.num_all_edges) % 3 != 0)
    bias = torch.zeros(graph.num_all_edges, dtype=torch.float64)
    bias[~kept] = -torch.inf
    for x in inputs.values():
        x.requires_grad_()
    out, weights = _call(kind, graph, inputs, edge_bias=bias)
    smaller = Graph(graph.edge_index[:, kept], (graph.num_src, graph.num_dst))
    expected, _ = _call(kind, smaller, inputs)
    torch.testing.assert_close(out, expected)
    assert not weights[~kept].any()
    assert not out[0].any()
    leaves = list(inputs.values())
    found = torch.autograd.grad(out.sin().sum(), leaves)
    for got, want in zip(
        found, torch.autograd.grad(expected.sin().sum(), leaves), strict=True
    ):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("kind", KINDS)
def test_one_number_per_edge_serves_all_heads_and_gets_the_sum_of_gradients(
    kind: str,
) -> None:
    graph = GRAPHS["random"]()
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float64, Settings())
    for name in ("edge_weight", "edge_bias"):
        one = torch.randn(graph.num_all_edges, dtype=torch.float64, requires_grad=True)
        each = one.detach()[:, None].repeat(1, HEADS).requires_grad_()
        first, _ = _call(kind, graph, inputs, **{name: one})
        second, _ = _call(kind, graph, inputs, **{name: each})
        assert torch.equal(first, second)
        first.sin().sum().backward()
        second.sin().sum().backward()
        assert one.grad is not None
        assert each.grad is not None
        torch.testing.assert_close(one.grad, each.grad.sum(1))


OPTIONS = [
    Settings(edge_weight=True),
    Settings(edge_bias=True),
    Settings(edge_weight=True, edge_bias=True, dropout=0.4, weights=True, edge=True),
    Settings(edge_weight=True, edge_bias=True, edge_width=3, theta="head"),
]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("graph", ["random", "hub", "self_loops", "no_edges"])
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_have_the_weights_biases_and_gradients_of_the_reference(
    kind: str, graph: str, options: Settings
) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        compare(kind, GRAPHS[graph](), HEADS, CHANNELS, dtype, options, "cpu")


OF_COPIES = [
    Settings(edge=True, dropout=0.4, weights=True),
    Settings(edge_width=3, theta="layer"),
    Settings(edge_weight=True, edge_bias=True, edge_width=3, theta="head"),
]


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("options", OF_COPIES, ids=str)
@pytest.mark.parametrize("graph", ["random", "hub", "bipartite", "empty_rows"])
@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_a_graph_are_served_by_the_kernels(
    kind: str, graph: str, options: Settings, shared: bool
) -> None:
    options = options._replace(shared_edges=shared)
    many = GRAPHS[graph]().repeat(COPIES)
    for dtype in (torch.float32, torch.bfloat16):
        compare(kind, many, HEADS, CHANNELS, dtype, options, "cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_a_graph_are_the_graph_of_all_their_edges(kind: str) -> None:
    graph = GRAPHS["random"]()
    many = graph.repeat(COPIES)
    edges = torch.cat([graph.edge_index + c * graph.num_src for c in range(COPIES)], 1)
    assert torch.equal(many.edge_index, edges)
    whole = Graph(edges, COPIES * graph.num_src)
    inputs = make_inputs(kind, whole, HEADS, CHANNELS, torch.float64, Settings())
    for found, expected in zip(
        _call(kind, many, inputs), _call(kind, whole, inputs), strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_each_copy_has_its_own_dropout() -> None:
    graph = GRAPHS["hub"]()
    many = graph.repeat(COPIES)
    one = torch.randn(graph.num_src, HEADS, CHANNELS)
    att = torch.randn(HEADS, CHANNELS)
    seed = torch.tensor([3, -4])
    options: Any = {"dropout": 0.5, "dropout_seed": seed, "return_weights": True}
    _, weights = ops.gat(many, one.repeat(COPIES, 1, 1), att, att, **options)
    assert weights is not None
    first, second, _ = weights.view(COPIES, -1, HEADS)
    _, alone = ops.gat(graph, one, att, att, **options)
    assert torch.equal(first, alone)
    assert not torch.equal(first, second)
