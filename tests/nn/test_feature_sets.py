"""Many feature sets on one graph give what a loop over the sets gives."""

import re

import pytest
import torch
from torch import nn

from tempergat import Graph
from tempergat.nn import (
    TemperGATConv,
    TemperGATv2Conv,
    build_model,
)
from tests.support.layers import LAYERS

SETS, NODES, EDGES = (2, 3), 9, 30
EDGE_INDEX = torch.randint(
    0, NODES, (2, EDGES), generator=torch.Generator().manual_seed(1)
)
OPTIONS = {
    "gate first": {"gate": "first", "temperature": "head"},
    "gate of heads": {"gate": "head", "temperature": "head"},
    "plain": {"gate": None, "temperature": None, "bias": False},
    "fixed temperature": {"temperature": 0.5, "concat": False},
    "residual": {"residual": True, "fill_value": 0.5},
    "gated skip": {"residual": "gate", "fill_value": "max"},
    "no self-loops": {"add_self_loops": False},
    "reversed": {"flow": "target_to_source"},
    "other aggregation": {"aggr": "max"},
}
# A transformer adds no self-loops and calls its residual by other names.
NOT_OF_TRANSFORMERS = {"residual", "fill_value", "add_self_loops"}
CASES = [
    (kind, option)
    for kind in LAYERS
    for option in OPTIONS
    if kind != "transformer" or not NOT_OF_TRANSFORMERS & OPTIONS[option].keys()
]


def numbers(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def gradients(out, leaves):
    """The gradients of all leaves, in a direction that keeps terms apart."""
    direction = torch.arange(out.numel(), dtype=out.dtype).view_as(out).sin()
    return torch.autograd.grad((out * direction).sum(), leaves, allow_unused=True)


def check(conv, x, edge_index, of_edges):
    """Compares a call on all sets with calls on each, outputs and all gradients."""
    pair = x if isinstance(x, tuple) else (x,)
    leaves = [t.requires_grad_() for t in (*pair, *of_edges.values()) if t is not None]
    leaves += conv.parameters()

    def call(place):
        def part(t):
            has_sets = t is not None and t.shape[:2] == SETS
            return t[place] if place is not None and has_sets else t

        given = tuple(part(t) for t in pair)
        given = given if isinstance(x, tuple) else given[0]
        more = {name: part(t) for name, t in of_edges.items()}
        return conv(given, edge_index, **more, return_attention_weights=True)

    out, (edges, alpha) = call(None)
    places = [(i, j) for i in range(SETS[0]) for j in range(SETS[1])]
    each = [call(place) for place in places]
    expected = torch.stack([o for o, _ in each]).unflatten(0, SETS)
    weights = torch.stack([a for _, (_, a) in each]).unflatten(0, SETS)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(alpha, weights)
    assert torch.equal(edges, each[0][1][0])
    found, wanted = gradients(out, leaves), gradients(expected, leaves)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize(("kind", "option"), CASES)
def test_outputs_and_gradients_are_those_of_a_loop_over_the_sets(kind, option, own):
    torch.manual_seed(0)
    conv = LAYERS[kind](5, 4, heads=2, edge_dim=3, **OPTIONS[option]).double()
    lead = SETS if own else ()
    of_edges = {
        "edge_attr": numbers(*lead, EDGES, 3, seed=1),
        "edge_weight": numbers(*lead, EDGES, 2, seed=2),
        "edge_bias": numbers(*lead, EDGES, seed=3),
    }
    check(conv, numbers(*SETS, NODES, 5), EDGE_INDEX, of_edges)
    check(conv, numbers(*SETS, NODES, 5), EDGE_INDEX, {"edge_attr": numbers(EDGES, 3)})


@pytest.mark.parametrize("gate", ["post", "first", "head"])
@pytest.mark.parametrize("kind", LAYERS)
def test_hooks_on_messages_see_all_sets(kind, gate):
    conv = LAYERS[kind](5, 4, heads=2, edge_dim=3, gate=gate).double()
    sizes = []
    conv.register_message_forward_hook(lambda *call: sizes.append(call[-1].size(0)))
    of_edges = {"edge_attr": numbers(EDGES, 3), "edge_bias": numbers(EDGES)}
    check(conv, numbers(*SETS, NODES, 5), EDGE_INDEX, of_edges)
    assert sizes[0] == 6 * sizes[1]


@pytest.mark.parametrize("gate", ["post", "first", "head", None])
@pytest.mark.parametrize("kind", LAYERS)
def test_sources_and_targets_may_differ(kind, gate):
    own = kind != "transformer"
    options = {"add_self_loops": False, "residual": True} if own else {"beta": True}
    conv = LAYERS[kind]((5, 4), 4, heads=2, gate=gate, **options).double()
    edges = EDGE_INDEX % torch.tensor([[NODES], [4]])
    check(conv, (numbers(*SETS, NODES, 5), numbers(*SETS, 4, 4)), edges, {})
    # The targets are the first of the sources.
    options = {"residual": "gate"} if own else {}
    conv = LAYERS[kind](5, 4, heads=2, gate=gate, **options).double()
    graph = Graph(edges, (NODES, 4), self_loops=own)
    check(conv, numbers(*SETS, NODES, 5), graph, {})


def test_targets_may_have_no_features():
    conv = TemperGATConv((5, 4), 4, residual="gate", add_self_loops=False).double()
    graph = Graph(EDGE_INDEX % torch.tensor([[NODES], [4]]), (NODES, 4))
    check(conv, (numbers(*SETS, NODES, 5), None), graph, {})


@pytest.mark.parametrize("kind", LAYERS)
def test_each_set_has_its_own_dropout(kind):
    conv = LAYERS[kind](5, 4, heads=2, dropout=0.5)
    x = torch.randn(NODES, 5).expand(3, -1, -1)
    seed = torch.tensor(3)
    out, (_, alpha) = conv(
        x, EDGE_INDEX, return_attention_weights=True, dropout_seed=seed
    )
    assert not torch.equal(alpha[0] == 0, alpha[1] == 0)
    assert not torch.equal(out[0], out[1])
    assert torch.equal(out, conv(x, EDGE_INDEX, dropout_seed=seed))
    handle = conv.register_message_forward_hook(lambda *_: None)
    torch.testing.assert_close(conv(x, EDGE_INDEX, dropout_seed=seed), out)
    handle.remove()
    conv.eval()
    # Some processors round the rows of a product by their place in it.
    torch.testing.assert_close(*conv(x, EDGE_INDEX)[:2])


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS)
def test_a_compiled_layer_gives_the_same(kind):
    torch.manual_seed(0)
    options = {} if kind == "transformer" else {"residual": "gate"}
    conv = LAYERS[kind](5, 4, heads=2, edge_dim=3, **options)
    compiled = torch.compile(conv, fullgraph=True)
    for sets in [(2, 3), (4, 2)]:
        x = torch.randn(*sets, NODES, 5, requires_grad=True)
        edge_attr = torch.randn(*sets, EDGES, 3)
        weight = torch.rand(EDGES)
        out = compiled(x, EDGE_INDEX, edge_attr, edge_weight=weight)
        expected = conv(x, EDGE_INDEX, edge_attr, edge_weight=weight)
        torch.testing.assert_close(out, expected)
        leaves = [x, *conv.parameters()]
        for one, other in zip(
            gradients(out, leaves), gradients(expected, leaves), strict=True
        ):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", [None, "batch_norm", "layer_norm", "graph_norm"])
@pytest.mark.parametrize("jk", [None, "cat", "lstm"])
@pytest.mark.parametrize("method", ["temp_gated", "transformer", "gcn", "mlp"])
def test_a_model_takes_many_sets(method, jk, norm):
    torch.manual_seed(0)
    model = build_model(method, 5, 8, 3, heads=2, jk=jk, norm=norm, residual=True)
    model = model.double().eval()
    x = numbers(*SETS, NODES, 5)
    expected = torch.stack([model(part, EDGE_INDEX) for part in x.flatten(0, 1)])
    # With several graphs, PyG's layer norm adds its epsilon in another place.
    close = {"rtol": 1e-3, "atol": 1e-4} if norm == "layer_norm" else {}
    found = model(x, EDGE_INDEX)
    torch.testing.assert_close(found, expected.unflatten(0, SETS), **close)


CONV = TemperGATConv(5, 4, edge_dim=3)
PAIR = TemperGATConv((5, 5), 4)
X = torch.randn(2, NODES, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CONV(torch.randn(5), EDGE_INDEX), "or [..., num_nodes, channels]"),
        (lambda: CONV(X, EDGE_INDEX, torch.randn(3, EDGES, 3)), "[3, 30, 3], but x"),
        (
            lambda: CONV(X[0], EDGE_INDEX, torch.randn(3, EDGES, 3)),
            "x has no dimensions before",
        ),
        (lambda: PAIR(X[:0], EDGE_INDEX), "holds no feature set"),
        (lambda: PAIR((X, X[0]), EDGE_INDEX), "as many feature sets"),
        (lambda: PAIR((X, X[:1]), EDGE_INDEX), "as many feature sets"),
        (lambda: CONV(X.to_sparse(), EDGE_INDEX), "x.to_dense()"),
        (
            lambda: CONV(
                X,
                torch.eye(NODES).to_sparse_csr(),
                return_attention_weights=True,
                edge_attr=torch.randn(NODES, 3),
            ),
            "values of one sparse matrix",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_gates_of_all_sets():
    conv = TemperGATConv(5, 4, heads=2)
    gates = conv.gate_values(X)
    assert gates.shape == (2, NODES, 8)
    torch.testing.assert_close(gates[1], conv.gate_values(X[1]))


class Forecaster(nn.Module):
    """A layer in a model of its own, as a user writes it."""

    def __init__(self):
        super().__init__()
        self.conv = TemperGATv2Conv(5, 4)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


def test_an_export_of_many_sets_takes_any_number_of_weighted_edges():
    conv = TemperGATConv(4, 3).eval()
    edges = torch.export.Dim("edges")
    shapes = {"x": {}, "edge_index": {1: edges}, "edge_weight": {0: edges}}

    def arguments(count):
        return {
            "x": torch.randn(3, 9, 4),
            "edge_index": torch.randint(0, 9, (2, count)),
            "edge_weight": torch.rand(count),
        }

    program = torch.export.export(
        conv, (), arguments(30), dynamic_shapes=shapes, strict=False
    )
    given = arguments(3)
    torch.testing.assert_close(program.module()(**given), conv(**given))


@pytest.mark.slow
def test_an_exported_program_takes_many_sets():
    net = Forecaster().eval()
    program = torch.export.export(net, (X, EDGE_INDEX), strict=False)
    torch.testing.assert_close(program.module()(X, EDGE_INDEX), net(X, EDGE_INDEX))
