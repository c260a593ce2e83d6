"""Layers from DGL's checkpoints give the outputs that DGL gave."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

import tempergat
from tempergat.nn import TemperGATConv, TemperGATv2Conv

# Written by DGL itself; its nodes include one without incoming edges.
FILE = Path(__file__).parents[2] / "fixtures" / "dgl_2_1_0" / "layers.safetensors"
TENSORS = load_file(FILE)
LAYERS = sorted(
    {n.split("/")[0] for n in TENSORS if n.endswith("/out") and "model" not in n}
)
EDGES = TENSORS["edge_index"]


def case(name):
    """State dict, input and output."""
    state = {
        key.removeprefix(f"{name}/state/"): value
        for key, value in TENSORS.items()
        if key.startswith(f"{name}/state/")
    }
    x, target = TENSORS[f"{name}/x"], TENSORS.get(f"{name}/x_target")
    return state, x if target is None else (x, target), TENSORS[f"{name}/out"]


@pytest.mark.parametrize("gate", [None, "post"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_dgls_output(name, gate):
    state, x, expected = case(name)
    [layer] = tempergat.from_dgl(state, residual="residual" in name, gate=gate)
    kind = TemperGATv2Conv if name.startswith("gatv2") else TemperGATConv
    assert type(layer) is kind
    assert torch.allclose(layer(x, EDGES), expected, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in LAYERS if "residual" not in n])
def test_edge_weights_multiply_the_messages_as_in_dgl(name):
    state, x, expected = case(name)
    [layer] = tempergat.from_dgl(state, gate=None)
    if layer.res is not None:
        pytest.skip("its residual is not multiplied")
    weight = torch.full((EDGES.size(1),), 2.0)
    bias = 0.0 if layer.bias is None else layer.bias
    out = layer(x, EDGES, edge_weight=weight)
    assert torch.allclose(out, 2 * (expected - bias) + bias, atol=1e-5)


@pytest.mark.parametrize("name", ["gat_model", "gatv2_model"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_model_gives_dgls_output_layer_by_layer(name, prefix):
    state, x, expected = case(name)
    state = {prefix + key: value for key, value in state.items()}
    first, second, last = tempergat.from_dgl(state, residual=[False, True, True])
    h = F.elu(first(x, EDGES))
    out = last(F.elu(second(h, EDGES)), EDGES)
    assert torch.allclose(out, expected, atol=1e-5)


def test_the_tenth_layer_follows_the_ninth_in_files_with_sorted_names():
    state, *_ = case("gat_model")
    one = {k[13:]: v for k, v in state.items() if k.startswith("gat_layers.1.")}
    many = {f"layers.{n}.{k}": v + n for n in range(12) for k, v in one.items()}
    layers = tempergat.from_dgl(dict(sorted(many.items())), gate=None)
    for number, layer in enumerate(layers):
        assert torch.equal(layer.att_src, one["attn_l"] + number)


def test_heads_of_the_last_layer_are_joined_on_request():
    state, *_ = case("gat_model")
    assert [conv.concat for conv in tempergat.from_dgl(state)] == [True, True, False]
    assert tempergat.from_dgl(state, concat=True)[-1].concat


def test_new_parts_can_learn_and_the_generator_is_not_moved():
    state, x, _ = case("gat")
    before = torch.get_rng_state()
    [layer] = tempergat.from_dgl(state, temperature="head", gate="post")
    assert torch.equal(torch.get_rng_state(), before)
    layer(x, EDGES).pow(2).sum().backward()
    assert layer.theta.grad.abs().sum() > 0
    assert layer.lin_gate.weight.grad.abs().sum() > 0


def test_entries_of_other_modules_are_named_in_one_line():
    state, *_ = case("gat_model")
    state |= {"norm.weight": torch.ones(3), "norm.bias": torch.ones(3)}
    with pytest.raises(ValueError, match=r"^the state dict has 2 entries.*norm.weight"):
        tempergat.from_dgl(state)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attn_e": torch.ones(1, 2, 4)}, "attn_e"),
        ({"fc.weight": torch.ones(7, 5)}, r"shape \[7, 5\]"),
        ({"attn_l": torch.ones(2, 4)}, r"shape \[2, 4\]"),
        ({"fc_src.weight": torch.ones(8, 5)}, "neither a GATConv nor"),
    ],
)
def test_what_is_no_layer_of_dgl_is_refused(change, words):
    state, *_ = case("gat")
    with pytest.raises(ValueError, match=words) as error:
        tempergat.from_dgl(state | change)
    assert "\n" not in str(error.value)


def test_nothing_is_refused_in_words():
    with pytest.raises(ValueError, match="is empty"):
        tempergat.from_dgl({})
