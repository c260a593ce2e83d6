"""State of version 0.1.0 loads: the names of a layer's parameters do not change."""

import pytest
import torch

from tempergat.nn import TemperGATConv, TemperGATv2Conv, build_model

GATE = ["lin_gate.weight", "lin_gate.bias"]
PAIR_GATE = [
    "lin_gate_src.weight",
    "lin_gate_src.bias",
    "lin_gate_dst.weight",
    "lin_gate_dst.bias",
]
GAT = ["att_src", "att_dst", "bias"]
GATV2 = ["att", "bias"]
LINEAR_V2 = ["lin_l.weight", "lin_l.bias", "lin_r.weight", "lin_r.bias"]

# As 0.1.0 writes them, in its order.
KEYS = {
    "default": (
        TemperGATConv(5, 4),
        [*GAT, "theta", "lin.weight", *GATE],
    ),
    "plain": (
        TemperGATConv(5, 4, temperature=None, gate=None),
        [*GAT, "lin.weight"],
    ),
    "fixed temperature": (
        TemperGATConv(5, 4, temperature=0.5, gate=None),
        [*GAT, "lin.weight"],
    ),
    "all": (
        TemperGATConv(5, 4, heads=2, temperature="head", edge_dim=3, residual=True),
        [
            *("att_src", "att_dst", "att_edge", "bias", "theta"),
            *("lin.weight", "lin_edge.weight", "res.weight"),
            *GATE,
        ],
    ),
    "pair, first": (
        TemperGATConv((5, 3), 4, gate="first"),
        [*GAT, "theta", "lin_src.weight", "lin_dst.weight", *PAIR_GATE],
    ),
    "pair, post": (
        TemperGATConv((5, 3), 4, gate="post"),
        [*GAT, "theta", "lin_src.weight", "lin_dst.weight", *GATE],
    ),
    "v2": (
        TemperGATv2Conv(5, 4),
        [*GATV2, "theta", *LINEAR_V2, *GATE],
    ),
    "v2, pair, first": (
        TemperGATv2Conv((5, 3), 4, gate="first", bias=False),
        ["att", "theta", "lin_l.weight", "lin_r.weight", *PAIR_GATE],
    ),
    "v2, shared weights": (
        TemperGATv2Conv((5, 5), 4, gate="first", share_weights=True, edge_dim=2),
        [*GATV2, "theta", *LINEAR_V2, "lin_edge.weight", *PAIR_GATE],
    ),
    "v2, plain": (
        TemperGATv2Conv(5, 4, temperature=None, gate=None),
        [*GATV2, *LINEAR_V2],
    ),
    "gcn": (
        build_model("gcn", 5, 4, 3, num_layers=1, residual=True).convs[0],
        ["bias", "lin.weight", "res.weight"],
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_state_of_0_1_0_has_the_same_names(name):
    layer, keys = KEYS[name]
    assert list(layer.state_dict()) == keys
    state = {key: torch.ones_like(value) for key, value in layer.state_dict().items()}
    layer.load_state_dict(state, strict=True)
    assert all((value == 1).all() for value in layer.state_dict().values())


def test_parameters_have_the_names_that_optimizers_ask_for():
    names = [name for name, _ in TemperGATConv(5, 4, heads=2).named_parameters()]
    assert "theta" in names
    assert [name for name in names if name.startswith("lin_gate")] == GATE
