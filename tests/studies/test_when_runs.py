"""The arms of the study `when` against formulae, and its plan on the runner."""

import math
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from studies import results
from studies.results import read_whole_runs
from studies.runner import Runner
from studies.when import study
from studies.when.arms import ARMS
from tempergat.comparison.storage.store import Store
from tempergat.data import csbm
from tempergat.nn import build_model
from tempergat.ops import Graph
from tempergat.training import train_group
from tests.support.run_settings import config

CPU = torch.device("cpu")
NODES, FEATURES, HEADS, CHANNELS = 7, 5, 2, 3
# Node 6 has no neighbours, and node 0 has a self-loop, which no mean may count.
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2, 0], [1, 0, 1, 1, 3, 4, 2, 0, 0]])


def layer_of(name: str, backbone: str) -> Any:
    torch.manual_seed(1)
    arm = ARMS[name]
    sizes = (FEATURES, HEADS * CHANNELS, 4)
    options = {"heads": HEADS, "residual": arm.residual, "init_temp": 1.7}
    model = build_model(arm.method_on(backbone), *sizes, num_layers=2, **options)
    if arm.preparation is not None:
        arm.preparation.model(model, Graph(EDGES, NODES))
    model.reset_parameters()
    layer = model.convs[0].eval()
    for parameter in layer.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)
    return layer


def formula(name: str, values: dict[str, Tensor], x: Tensor) -> Tensor:
    """The layer's output with one matrix of attention weights per head."""
    adjacency = torch.eye(NODES, dtype=torch.bool)
    adjacency[EDGES[1], EDGES[0]] = True
    split = (NODES, HEADS, CHANNELS)
    gate = torch.ones(NODES, HEADS * CHANNELS)
    if name == "constant_gate":
        gate = torch.sigmoid(values["lin_gate.bias"]).expand(NODES, -1)
    elif "lin_gate.weight" in values:
        inputs = x
        if name == "neighbour_gate":
            others = adjacency.float().fill_diagonal_(0.0)
            inputs = others @ x / others.sum(1, keepdim=True).clamp(min=1.0)
        gate = inputs @ values["lin_gate.weight"].T + values["lin_gate.bias"]
        gate = torch.sigmoid(gate)
    before, after = (gate, 1.0) if name == "gate_first" else (1.0, gate)
    if "att" in values:
        target, source = (
            ((x @ values[f"{n}.weight"].T + values[f"{n}.bias"]) * before).view(split)
            for n in ("lin_r", "lin_l")
        )
        vector = values["att"][0]
    else:
        source = target = ((x @ values["lin.weight"].T) * before).view(split)
        vector = torch.cat([values["att_dst"], values["att_src"]], -1)[0]
    if ARMS[name].control == "fixed norm":
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
    result = out.flatten(1) * after + values["bias"]
    return result + x @ values["res.weight"].T if ARMS[name].residual else result


@pytest.mark.parametrize("backbone", ["gat", "gatv2"])
@pytest.mark.parametrize("name", ARMS)
def test_a_layer_computes_the_formula_of_its_arm(name: str, backbone: str) -> None:
    layer, x = layer_of(name, backbone), torch.randn(NODES, FEATURES)
    values = {key: value.detach() for key, value in layer.named_parameters()}
    torch.testing.assert_close(layer(x, EDGES), formula(name, values, x))


@pytest.mark.parametrize("name", ["constant_gate", "neighbour_gate", "fixed_norm"])
def test_seeds_trained_at_once_end_as_they_do_alone(name: str) -> None:
    graph, arm = csbm(n=80, a=6, b=3, d=6, seed=3), ARMS[name]
    settings = arm.config(config(epochs=5), "gat")

    def trained(*seeds: int) -> list[float]:
        runs = train_group(graph, settings, seeds, CPU, preparation=arm.preparation)
        return [run.scores["last_epoch"].val for run in runs]

    assert trained(0, 1, 2) == [trained(seed)[0] for seed in range(3)]


def test_a_plan_that_is_stopped_continues_with_the_next_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = study.grid()
    monkeypatch.setattr(results, "STUDIES", tmp_path)
    monkeypatch.setattr(study, "grid", lambda: {"homophilic": whole["homophilic"]})
    monkeypatch.setitem(study.PLAN, "backbones", ["gat"])
    monkeypatch.setitem(study.PLAN, "arms", ["plain", "constant_gate"])
    monkeypatch.setitem(study.GENERATED, "seeds", [0, 1])
    monkeypatch.setitem(study.GENERATED["settings"], "epochs", 3)
    started = count()

    def stop_at_the_second(graph: str) -> None:
        if next(started):
            raise KeyboardInterrupt

    with Store(tmp_path / "one.sqlite") as store, pytest.raises(KeyboardInterrupt):
        Runner(store, CPU, stop_at_the_second).run(study.stages("generated"))
    plain = read_whole_runs("when/generated.csv")
    assert [(run.seed, run.condition) for run in plain] == [(0, None), (1, None)]
    with Store(tmp_path / "two.sqlite") as store:
        assert Runner(store, CPU).run(study.stages("generated")) == 4
        assert len(store.runs()) == 2
    rows = read_whole_runs("when/generated.csv")
    assert [run for run in rows if run.condition is None] == plain
    controls = [run.condition.change for run in rows if run.condition is not None]
    assert controls == ["constant gate"] * 2
