"""Odd but valid inputs work; invalid ones are named before any computation."""

import itertools
import math
import re

import pytest
import torch

from tempergat import Graph
from tempergat.nn import TemperGATConv, TemperGATv2Conv, build_model
from tests.support.layers import LAYERS

GATES = [None, "post", "first", "head"]
WITH_LOOPS = ["gat", "gatv2"]
ALL = list(itertools.product(LAYERS, GATES))


def train_step(conv, x, edge_index, **kwargs):
    out = conv(x, edge_index, **kwargs)
    assert torch.isfinite(out).all()
    out.float().pow(2).mean().backward()
    for name, parameter in conv.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name
    return out


@pytest.mark.parametrize(("backbone", "gate"), ALL)
def test_nodes_without_edges_get_the_bias(backbone, gate):
    conv = LAYERS[backbone](4, 3, heads=2, gate=gate, add_self_loops=False)
    x = torch.randn(5, 4)
    if backbone == "transformer":
        expected = conv.lin_skip(x)
    else:
        torch.nn.init.normal_(conv.bias)
        expected = conv.bias.expand(5, 6)
    out = train_step(conv, x, torch.empty(2, 0, dtype=torch.long))
    assert torch.allclose(out, expected)


@pytest.mark.parametrize("backbone", WITH_LOOPS)
def test_isolated_node_keeps_its_own_features(backbone):
    conv = LAYERS[backbone](4, 3, gate=None)
    x = torch.randn(3, 4)
    out, (edges, alpha) = conv(
        x, torch.tensor([[0], [1]]), return_attention_weights=True
    )
    own = conv.lin(x) if backbone == "gat" else conv.lin_l(x)
    assert torch.allclose(out[2], own[2] + conv.bias)
    assert torch.allclose(alpha[(edges[1] == 2)], torch.ones(1, 1))


@pytest.mark.parametrize("backbone", LAYERS)
def test_duplicate_edges_count_twice(backbone):
    conv = LAYERS[backbone](4, 3, add_self_loops=False, gate=None)
    x = torch.randn(3, 4)
    once = torch.tensor([[0, 1], [2, 2]])
    twice = torch.tensor([[0, 0, 1], [2, 2, 2]])
    _, (_, alpha) = conv(x, twice, return_attention_weights=True)
    assert torch.allclose(alpha[0], alpha[1])
    assert torch.allclose(alpha.sum(), torch.ones(()))
    assert not torch.allclose(conv(x, once)[2], conv(x, twice)[2])


@pytest.mark.parametrize(("backbone", "gate"), ALL)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(backbone, gate, dtype):
    conv = LAYERS[backbone](8, 4, heads=2, gate=gate, temperature="head").to(dtype)
    x = torch.randn(10, 8)
    edge_index = torch.randint(0, 10, (2, 40))
    out = train_step(conv, x.to(dtype), edge_index)
    assert out.dtype == dtype
    exact = conv.double()(x.double(), edge_index)
    assert torch.allclose(out.double(), exact, atol=0.05 * exact.abs().max().item())


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("temperature", [1e-3, 1e-1, 1e1, 1e3])
@pytest.mark.parametrize("fixed", [True, False])
def test_temperatures_over_six_decades(backbone, dtype, temperature, fixed):
    options = (
        {"temperature": temperature}
        if fixed
        else {"temperature": "layer", "init_temp": temperature}
    )
    conv = LAYERS[backbone](4, 3, heads=2, **options).to(dtype)
    x = 5 * torch.randn(8, 4)
    out = train_step(conv, x.to(dtype), torch.randint(0, 8, (2, 30)))
    assert (out.shape, out.dtype) == ((8, 6), dtype)


@pytest.mark.parametrize("backbone", LAYERS)
def test_graph_object_is_shared_by_layers_of_either_self_loop_setting(backbone):
    edge_index = torch.randint(0, 6, (2, 20))
    graph = Graph(edge_index, 6)
    x = torch.randn(6, 4)
    for self_loops in (True, False):
        conv = LAYERS[backbone](4, 3, add_self_loops=self_loops)
        assert torch.equal(conv(x, graph), conv(x, edge_index))


X = torch.randn(5, 4)
EDGES = torch.tensor([[0, 1], [1, 2]])


# What is said, the layer's options and what it is called with.
BAD_CALLS = [
    (r"source node 5.*0\.\.4", {}, X, torch.tensor([[0, 5], [1, 2]])),
    ("target node -3", {}, X, torch.tensor([[0, 1], [1, -3]])),
    (r"float32.*edge_index\.long", {}, X, EDGES.float()),
    (r"\[2, num_edges\], got \[4\]", {}, X, EDGES.flatten()),
    (r"\[7, 2\]", {}, X, torch.zeros(7, 2, dtype=torch.long)),
    ("list", {}, X, EDGES.tolist()),
    ("x must be a tensor, got ndarray", {}, X.numpy(), EDGES),
    (r"index must be .* ndarray; convert it with torch.as_t", {}, X, EDGES.numpy()),
    (r"numbers, got torch.int64 .* with x.float\(\)", {}, X.long(), EDGES),
    ("x has 6.*in_channels=4", {}, torch.randn(5, 6), EDGES),
    (r"\[5\]", {}, torch.randn(5), EDGES),
    ("edge_dim=7", {}, X, EDGES, torch.randn(2, 7)),
    ("3 features", {"edge_dim": 2}, X, EDGES, torch.randn(2, 3)),
    ("9 rows", {"edge_dim": 2}, X, EDGES, torch.randn(9, 2)),
    ("7 source", {}, X, Graph(EDGES, 7)),
    ("loops=False", {"add_self_loops": False}, X, Graph(EDGES, 5, self_loops=True)),
]


@pytest.mark.parametrize("case", BAD_CALLS, ids=[case[0] for case in BAD_CALLS])
@pytest.mark.parametrize("backbone", LAYERS)
def test_a_bad_call_is_refused_by_name(backbone, case):
    words, options, *arguments = case
    conv = LAYERS[backbone](4, 3, **options)
    with pytest.raises((ValueError, TypeError), match=words):
        conv(*arguments)


@pytest.mark.parametrize("backbone", LAYERS)
def test_a_lazy_layer_refuses_other_widths_than_those_it_has_learned(backbone):
    lazy = LAYERS[backbone](-1, 3, edge_dim=-1)
    lazy(X, EDGES, torch.randn(2, 7))
    with pytest.raises(ValueError, match="in_channels=4"):
        lazy(torch.randn(5, 6), EDGES)
    with pytest.raises(ValueError, match="edge_dim=7"):
        lazy(X, EDGES, torch.randn(2, 8))


@pytest.mark.parametrize("backbone", LAYERS)
def test_a_layer_without_a_gate_has_no_gate_values(backbone):
    with pytest.raises(ValueError, match="no gate"):
        LAYERS[backbone](4, 3, gate=None).gate_values(X)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        *(("init_temp", v, repr(v)) for v in (0, -1.0, math.nan, math.inf, "1", True)),
        *(("temperature", v, repr(v)) for v in (0.0, -2.0, "heads", math.inf, True)),
        *(
            ("gate", v, f"one of None, 'post', 'first' and 'head', got {v!r}")
            for v in ("pre", "first-head", ["first", "head"])
        ),
        ("dropout", 1.5, "1.5"),
        *(("heads", v, f"whole number of at least 1, got {v}") for v in (0, -1, 1.5)),
        *(("out_channels", v, "out_channels must") for v in (0, -1, 1.5)),
    ],
)
@pytest.mark.parametrize("backbone", LAYERS)
def test_an_option_no_layer_can_have_is_refused_by_name(backbone, name, value, words):
    options = {"in_channels": 4, "out_channels": 3, name: value}
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        LAYERS[backbone](**options)


@pytest.mark.parametrize("backbone", LAYERS)
def test_true_is_the_gate_on_the_output_and_false_is_none(backbone):
    assert LAYERS[backbone](4, 3, gate=True).gate == "post"
    assert LAYERS[backbone](4, 3, gate=False).gate is None
    assert not hasattr(LAYERS[backbone](4, 3, gate=False), "lin_gate")


@pytest.mark.parametrize("in_channels", [(4, 4), (-1, -1)])
def test_targets_without_features_have_the_gate_of_zeros(in_channels):
    edges = torch.tensor([[0, 1, 4], [1, 2, 1]])
    conv = TemperGATConv(in_channels, 3, add_self_loops=False, gate_bias_init=0.4)
    x = torch.randn(5, 4)
    out = conv((x, None), edges, size=(5, 3))
    assert torch.allclose(conv.gate_values((x, None)), torch.tensor(0.4).sigmoid())
    assert torch.allclose(conv((x, torch.zeros(3, 4)), edges), out)
    out.sum().backward()
    assert conv.lin_gate.bias.grad.abs().sum() > 0


def test_first_gate_without_target_features_gates_the_sources():
    edges = torch.tensor([[0, 1], [1, 2]])
    conv = TemperGATConv((4, 4), 3, gate="first", add_self_loops=False, bias=False)
    x = torch.randn(5, 4)
    out = conv((x, None), edges)
    gate, none = conv.gate_values((x, None))
    assert none is None
    assert torch.allclose(out[1], (conv.lin_src(x) * gate)[0])


def test_gatv2_needs_target_features():
    conv = TemperGATv2Conv((4, 4), 3)
    with pytest.raises(ValueError, match="pass both"):
        conv((torch.randn(5, 4), None), torch.tensor([[0], [1]]))


def test_size_that_contradicts_x():
    conv = TemperGATConv(4, 3)
    with pytest.raises(ValueError, match=r"size is \(5, 6\)"):
        conv(torch.randn(5, 4), torch.tensor([[0], [1]]), size=(5, 6))


@pytest.mark.parametrize("size", [(5, None), (None, 2), (None, None), [5, 2]])
def test_size_may_leave_out_what_x_tells(size):
    conv = TemperGATConv((4, 4), 3)
    x, edges = torch.randn(5, 4), torch.tensor([[0, 4], [1, 0]])
    expected = conv((x, x[:2]), edges)
    assert torch.equal(conv((x, x[:2]), edges, size=size), expected)


def test_unknown_method_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean temp_gated"):
        build_model("temp_gatd", 4, 8, 2, heads=2)


def test_width_not_divisible_by_heads():
    with pytest.raises(ValueError, match=r"hidden_channels=9 .* heads=2"):
        build_model("gat", 4, 9, 2, heads=2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_layers": 0},
        {"heads": 0},
        {"out_heads": 0},
        {"dropout": 2.0},
        {"jk": "sum"},
    ],
)
def test_a_setting_no_model_can_have_is_named(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=f"{name} must be .* got {value!r}"):
        build_model("temp_gated", 4, 8, 2, **{"heads": 2, **wrong})


def test_a_layers_text_shows_the_settings_that_differ_from_the_defaults():
    plain = TemperGATConv(5, 4, heads=2, gate=None)
    assert repr(plain) == "TemperGATConv(5, 4, heads=2, temperature='layer', gate=None)"
    changed = TemperGATv2Conv((5, 6), 4, concat=False, edge_dim=3, add_self_loops=False)
    assert repr(changed) == (
        "TemperGATv2Conv((5, 6), 4, heads=1, concat=False, add_self_loops=False, "
        "edge_dim=3, temperature='layer', gate='post')"
    )
