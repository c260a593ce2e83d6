"""State that was saved loads: the names of a layer's parameters do not change."""

import pytest
import torch
from torch_geometric.nn import GATConv

from tempergat.nn import (
    TemperGATConv,
    TemperGATv2Conv,
    TemperTransformerConv,
    build_model,
)

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
LINEAR_TRANSFORMER = [
    f"lin_{name}.{part}"
    for name in ("key", "query", "value", "skip")
    for part in ("weight", "bias")
]

# As saved files have them, in their order.
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
    "transformer": (
        TemperTransformerConv(5, 4),
        ["theta", *LINEAR_TRANSFORMER, *GATE],
    ),
    "transformer, plain": (
        TemperTransformerConv(5, 4, temperature=None, gate=None),
        LINEAR_TRANSFORMER,
    ),
    "transformer, all": (
        TemperTransformerConv(
            (5, 3), 4, beta=True, edge_dim=3, bias=False, gate="first", qk_norm=True
        ),
        [
            *("theta", "lin_key.weight", "lin_query.weight", "lin_value.weight"),
            *("lin_edge.weight", "lin_skip.weight", "lin_beta.weight"),
            *("norm_query.weight", "norm_key.weight"),
            *PAIR_GATE,
        ],
    ),
    "gcn": (
        build_model("gcn", 5, 4, 3, num_layers=1, residual=True).convs[0],
        ["bias", "lin.weight", "res.weight"],
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_saved_state_has_the_same_names(name):
    layer, keys = KEYS[name]
    assert list(layer.state_dict()) == keys
    state = {key: torch.ones_like(value) for key, value in layer.state_dict().items()}
    layer.load_state_dict(state, strict=True)
    assert all((value == 1).all() for value in layer.state_dict().values())


def test_parameters_have_the_names_that_optimizers_ask_for():
    names = [name for name, _ in TemperGATConv(5, 4, heads=2).named_parameters()]
    assert "theta" in names
    assert [name for name in names if name.startswith("lin_gate")] == GATE


@pytest.mark.parametrize(
    "layer", [TemperGATConv, TemperGATv2Conv, TemperTransformerConv]
)
@pytest.mark.parametrize("strict", [True, False])
def test_weights_of_a_gate_in_another_place_are_refused(layer, strict, tmp_path):
    post = torch.nn.Sequential(layer(5, 4, gate="post"))
    first = torch.nn.Sequential(layer(5, 4, gate="first"))
    torch.save(post.state_dict(), tmp_path / "post.pt")
    state = torch.load(tmp_path / "post.pt", weights_only=True)
    with pytest.raises(RuntimeError, match=r"weights of 0 are of gate='post', but it"):
        first.load_state_dict(state, strict=strict)
    post.load_state_dict(state)
    first.load_state_dict(dict(state))
    for name, value in post.state_dict().items():
        assert torch.equal(first.state_dict()[name], value)


def test_a_gate_of_heads_keeps_its_weights_and_takes_no_others():
    head = TemperGATConv(5, 4, heads=2, gate="head")
    again = TemperGATConv(5, 4, heads=2, gate="head")
    again.load_state_dict(head.state_dict())
    assert torch.equal(again.lin_gate.weight, head.lin_gate.weight)
    post = TemperGATConv(5, 4, heads=2, gate="post").state_dict()
    with pytest.raises(RuntimeError, match=r"gate='head'; make it with gate='post'\n"):
        again.load_state_dict(post)


def test_the_place_of_the_gate_adds_no_name_to_the_state():
    layer = TemperGATConv(5, 4, gate="first")
    state = layer.state_dict()
    assert state._metadata[""]["gate"] == "first"
    assert set(state) == {name for name, _ in layer.named_parameters()}
    assert set(layer.state_dict(destination={})) == set(state)


def test_weights_with_a_gate_and_without_one_load_as_before():
    plain = TemperGATConv(5, 4, gate=None)
    gated = TemperGATConv(5, 4, gate="first")
    missing, unexpected = gated.load_state_dict(plain.state_dict(), strict=False)
    assert missing == GATE
    assert unexpected == []
    pyg = GATConv(5, 4)
    gated.load_state_dict(pyg.state_dict(), strict=False)
    assert torch.equal(gated.att_src, pyg.att_src)
