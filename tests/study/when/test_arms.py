"""The arms against formulae written out here, and all seeds at once."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from tempergat.data import csbm
from tempergat.nn import BackboneName, build_model
from tempergat.ops import Graph
from tempergat.study.when.arms import ARMS, STUDIED_BACKBONES, Arm, neighbours_of
from tempergat.training import train_group
from tests.support.run_settings import config

CPU = torch.device("cpu")
NODES, FEATURES, HEADS, CHANNELS = 7, 5, 2, 3
# Node 6 has no neighbours, and node 0 has a self-loop, which no mean may count.
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2, 0], [1, 0, 1, 1, 3, 4, 2, 0, 0]])
BOTH = pytest.mark.parametrize("backbone", STUDIED_BACKBONES)
EVERY_ARM = pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)


def layer_of(arm: Arm, backbone: BackboneName) -> torch.nn.Module:
    torch.manual_seed(1)
    settings = arm.config(config(), backbone)
    model = build_model(
        settings.method,
        FEATURES,
        HEADS * CHANNELS,
        4,
        num_layers=2,
        heads=HEADS,
        residual=settings.residual,
        init_temp=1.7,
    )
    arm.change_model(model, Graph(EDGES[:, :-1], NODES))
    model.reset_parameters()
    layer = model.convs[0].eval()
    for parameter in layer.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)
    return layer


def formula(arm: Arm, layer: torch.nn.Module, x: Tensor) -> Tensor:
    """The layer's output with one matrix of attention weights per head."""
    adjacency = torch.zeros(NODES, NODES, dtype=torch.bool)
    adjacency[EDGES[1], EDGES[0]] = True
    adjacency.fill_diagonal_(True)
    split = (NODES, HEADS, CHANNELS)
    values = {name: value.detach() for name, value in layer.named_parameters()}
    gate = torch.ones(NODES, HEADS * CHANNELS)
    if arm.name == "constant_gate":
        gate = torch.sigmoid(values["lin_gate.bias"]).expand(NODES, -1)
    elif "lin_gate.weight" in values:
        inputs = x
        if arm.name == "neighbour_gate":
            others = adjacency.float().fill_diagonal_(0.0)
            inputs = others @ x / others.sum(1, keepdim=True).clamp(min=1.0)
        gate = inputs @ values["lin_gate.weight"].T + values["lin_gate.bias"]
        gate = torch.sigmoid(gate)
    is_first = arm.name == "gate_first"
    if "att" in values:
        sides = []
        for name in ("lin_r", "lin_l"):
            z = x @ values[f"{name}.weight"].T + values[f"{name}.bias"]
            sides.append((z * gate if is_first else z).view(split))
        target, source = sides
        vector = values["att"][0]
    else:
        source = x @ values["lin.weight"].T
        source = target = (source * gate if is_first else source).view(split)
        vector = torch.cat([values["att_dst"], values["att_src"]], -1)[0]
    if arm.control == "fixed norm":
        # Glorot's elements have a variance of 2 / (heads + channels).
        length = math.sqrt(vector.size(1) * 2 / (HEADS + CHANNELS))
        vector = length * vector / vector.norm(dim=1, keepdim=True)
    out = torch.zeros(split)
    for head in range(HEADS):
        i, j = target[:, None, head], source[None, :, head]
        if "att" in values:
            logits = F.leaky_relu(i + j, 0.2) @ vector[head]
        else:
            pair = torch.cat([i.expand(-1, NODES, -1), j.expand(NODES, -1, -1)], -1)
            logits = F.leaky_relu(pair @ vector[head], 0.2)
        if "theta" in values:
            logits = logits / (F.softplus(values["theta"]) + 1e-6)
        alpha = logits.masked_fill(~adjacency, -torch.inf).softmax(1)
        out[:, head] = alpha @ source[:, head]
    result = out.flatten(1)
    if not is_first:
        result = result * gate
    if arm.residual:
        result = result + x @ values["res.weight"].T
    return result + values["bias"]


@BOTH
@EVERY_ARM
def test_a_layer_computes_the_formula_of_its_arm(
    arm: Arm, backbone: BackboneName
) -> None:
    layer = layer_of(arm, backbone)
    x = torch.randn(NODES, FEATURES)
    torch.testing.assert_close(layer(x, EDGES), formula(arm, layer, x))


@BOTH
@pytest.mark.parametrize("name", [a.name for a in ARMS.values() if a.control])
def test_a_control_computes_the_same_with_models_stacked(
    name: str, backbone: BackboneName
) -> None:
    layers = [layer_of(ARMS[name], backbone) for _ in range(2)]
    with torch.no_grad():
        for parameter in layers[1].parameters():
            parameter.mul_(1.3)
    state = stack_module_state(layers)
    graph = Graph(EDGES, NODES)
    x = torch.randn(NODES, FEATURES)
    found = vmap(lambda s: functional_call(layers[0], s, (x, graph)))(state[0])
    for number, layer in enumerate(layers):
        torch.testing.assert_close(found[number], layer(x, EDGES))


def test_the_gate_fed_by_neighbours_has_the_size_of_the_paper_s_gate() -> None:
    count = {
        name: sum(p.numel() for p in layer_of(arm, "gat").parameters())
        for name, arm in ARMS.items()
    }
    width = HEADS * CHANNELS
    assert count["neighbour_gate"] == count["post_gate"]
    assert count["post_gate"] - count["plain"] == width * FEATURES + width
    assert count["residual"] - count["plain"] == width * FEATURES
    assert count["constant_gate"] - count["plain"] == width
    assert count["fixed_norm"] == count["plain"]
    assert count["fixed_norm_temperature"] == count["plain"] + 1


@pytest.mark.parametrize("name", ["constant_gate", "neighbour_gate", "fixed_norm"])
def test_seeds_trained_at_once_end_as_they_do_alone(name: str) -> None:
    graph = csbm(n=80, a=6, b=3, d=6, seed=3)
    neighbours = neighbours_of(graph, CPU)
    settings = ARMS[name].config(config(epochs=5), "gat")

    def trained(seeds: list[int]) -> list[float]:
        runs = train_group(
            graph,
            settings,
            seeds,
            CPU,
            change_model=lambda model: ARMS[name].change_model(model, neighbours),
        )
        return [run.scores["last_epoch"].val for run in runs]

    assert trained([0, 1, 2]) == [trained([seed])[0] for seed in range(3)]
