"""Weights and biases of edges in the layers and the models."""

import re

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import HeteroConv

from tempergat import Graph
from tempergat.nn import (
    TemperGATConv,
    build_model,
)
from tests.support.layers import LAYERS

# Edges 1 and 4 are self-loops, edges 0 and 3 are the same.
EDGES = torch.tensor([[0, 1, 2, 0, 2, 3], [1, 1, 0, 1, 2, 0]])
LOOPS = EDGES[0] == EDGES[1]
X = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
WEIGHT = torch.tensor([0.5, 7.0, 2.0, 0.0, 9.0, -1.0])


@pytest.mark.parametrize("by_messages", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_weights_multiply_coefficients_and_added_loops_have_one(kind, by_messages):
    conv = LAYERS[kind](5, 4, heads=2)
    if by_messages:
        conv.register_message_forward_hook(lambda *_: None)
    _, (_, plain) = conv(X, EDGES, return_attention_weights=True)
    each = torch.stack([WEIGHT, WEIGHT.flip(0)], 1)
    for given in (WEIGHT, each):
        out, (_, alpha) = conv(
            X, EDGES, return_attention_weights=True, edge_weight=given
        )
        factor = given
        if conv.add_self_loops:
            factor = torch.cat([given[~LOOPS], torch.ones(4, *given.shape[1:])])
        factor = factor if given.dim() == 2 else factor.unsqueeze(-1)
        torch.testing.assert_close(alpha, plain * factor)
        forms = (EdgeIndex(EDGES, sparse_size=(4, 4)), Graph(EDGES, 4))
        if conv.add_self_loops:
            forms = (*forms, Graph(EDGES, 4, self_loops=True))
        for form in forms:
            torch.testing.assert_close(conv(X, form, edge_weight=given), out)


def test_a_bias_is_added_to_the_logits():
    conv = TemperGATConv(5, 4)
    _, (_, plain) = conv(X, EDGES, return_attention_weights=True)
    bias = torch.full((6,), 0.7)
    _, (edges, alpha) = conv(X, EDGES, return_attention_weights=True, edge_bias=bias)
    factor = torch.where(edges[0] == edges[1], 1.0, torch.tensor(0.7).exp())
    expected = plain.squeeze(1) * factor
    total = torch.zeros(4).index_add(0, edges[1], expected)
    torch.testing.assert_close(alpha.squeeze(1), expected / total[edges[1]])


@pytest.mark.parametrize("method", ["gat", "temp_gated_v2"])
def test_a_model_gives_weights_to_all_layers(method):
    model = build_model(method, 5, 8, 3, heads=2).eval()
    weight = WEIGHT.abs()
    first, second = model.convs
    hidden = model.act(first(X, EDGES, edge_weight=weight))
    expected = second(hidden, EDGES, edge_weight=weight)
    torch.testing.assert_close(model(X, EDGES, edge_weight=weight), expected)
    graphs = [Graph(EDGES, 4), Graph(EDGES, 4)]
    torch.testing.assert_close(model(X, graphs, edge_weight=weight), expected)


def test_typed_layers_of_pyg_pass_weights_on():
    conv = TemperGATConv(5, 4, add_self_loops=False)
    kind = ("a", "to", "a")
    typed = HeteroConv({kind: conv})
    out = typed({"a": X}, {kind: EDGES}, edge_weight_dict={kind: WEIGHT})
    torch.testing.assert_close(out["a"], conv(X, EDGES, edge_weight=WEIGHT))


def test_an_explainer_sees_weights_and_biases():
    model = TemperGATConv(5, 3)
    explainer = Explainer(
        model,
        GNNExplainer(epochs=2),
        explanation_type="model",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    edges = EDGES[:, ~LOOPS]
    weight, bias = WEIGHT[~LOOPS], torch.zeros(4)
    found = explainer(X, edges, edge_weight=weight, edge_bias=bias)
    assert found.edge_mask.shape == (4,)


class OwnLogits(TemperGATConv):
    """A subclass from before there were biases."""

    def edge_update(self, alpha_j, index, ptr, dim_size):
        return alpha_j


CONV = TemperGATConv(5, 4, heads=2)
REFUSED = [
    ({"edge_weight": WEIGHT[1:]}, ValueError, "[5], but edge_index has 6 edges"),
    ({"edge_bias": torch.zeros(6, 3)}, ValueError, "give [6] or [6, 2]"),
    ({"edge_bias": torch.zeros(2, 6)}, ValueError, "give [6] or [6, 2]"),
    ({"edge_bias": EDGES[0] > 1}, TypeError, "torch.where(mask, 0.0, -torch.inf)"),
    ({"edge_weight": EDGES[0]}, TypeError, "torch.int64; convert it with .float()"),
]


@pytest.mark.parametrize(("given", "kind", "message"), REFUSED)
def test_what_does_not_fit_is_refused(given, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        CONV(X, EDGES, **given)


def test_a_sparse_matrix_has_no_order_of_edges():
    matrix = torch.eye(4).to_sparse_csr()
    with pytest.raises(ValueError, match="the order of a matrix's entries"):
        CONV(X, matrix, edge_weight=WEIGHT[:4])


def test_a_subclass_that_would_ignore_a_bias_is_refused():
    conv = OwnLogits(5, 4, add_self_loops=False)
    with pytest.raises(ValueError, match="edge_update"):
        conv(X, EDGES, edge_bias=WEIGHT)
