"""The noise study on the runner, and a look at another graph."""

from pathlib import Path
from statistics import mean

import pytest
import torch

from studies import results, runner
from studies.noise import study
from studies.noise.study import draw, entropy, look, preparations
from studies.results import read_whole_runs, runs_path, write_runs
from studies.runner import Changes, Runner, Stage
from tempergat.comparison.storage.store import Store
from tempergat.data import Dataset, csbm
from tempergat.ops import Graph
from tempergat.training import Condition, load_recipe
from tests.support.tiny_graph import write_graph, write_recipe

CPU = torch.device("cpu")
PLAN = {
    **study.PLAN["epochs"],
    "methods": ["gat", "temp_gated"],
    "gaussian": [0, 4],
    "missing": [0, 0.5],
    "tau": [1],
    "epochs": [2],
}


def graph(name: str = "csbm") -> Dataset:
    return csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0)


def test_the_entropy_of_attention_follows_its_definition_target_by_target() -> None:
    edges = Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 1, 2]]), 3).with_self_loops()
    logits = torch.randn(edges.edge_index.size(1), 1)
    entropies, weights = [], torch.ones_like(logits)
    for target in (1, 2):
        mine = edges.dst == target
        weights[mine] = logits[mine].softmax(0)
        total = -(weights[mine] * weights[mine].log()).sum()
        entropies.append(total / mine.sum().log())
    torch.testing.assert_close(entropy(edges, weights), torch.stack(entropies).mean())


def test_runs_under_noise_are_rows_with_their_learned_values_at_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "STUDIES", tmp_path)
    recipe = load_recipe(write_recipe(tmp_path / "recipe.yaml"))
    configs = [recipe.config_for(method) for method in PLAN["methods"]]
    levels = list(preparations(PLAN))
    file = "noise/csbm.csv"
    with Store(tmp_path / "store.sqlite") as store:
        for prepared in levels:
            stage = Stage(file, "csbm", configs, range(2), graph, prepared)
            Runner(store, CPU).finish(stage)
    rows = read_whole_runs(file)
    conditions = [None, Condition("gaussian", 4), Condition("missing", 0.5, 1)]
    assert len(rows) == 12
    assert {row.condition for row in rows} == set(conditions)
    for row in rows:
        assert set(row.layers_at_epochs) == {2, *(s.epoch for s in row.scores.values())}
        assert all(len(at.entropy) == 2 for at in row.layers_at_epochs.values())
    before = runs_path(file).read_bytes()
    write_runs(file, rows)
    assert runs_path(file).read_bytes() == before
    with Store(tmp_path / "another.sqlite") as empty:
        stage = Stage(file, "csbm", configs, range(2), graph, levels[1])
        assert len(Runner(empty, CPU).finish(stage)) == 4
        assert empty.runs() == []


def test_a_look_at_another_graph_prints_tables_and_writes_no_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load_recipe(write_recipe(tmp_path / "recipe.yaml"))
    monkeypatch.setattr(study, "recipe_for", lambda graph: ("tiny", recipe))
    monkeypatch.setitem(study.PLAN, "epochs", PLAN)
    monkeypatch.delattr(runner, "write_runs")
    path = write_graph(tmp_path / "mine.npz")
    with Store(tmp_path / "store.sqlite") as store:
        asked = (str(path), Runner(store, CPU), Changes(runs=2))
        text, figure = look(*asked), draw(*asked)
        runs = store.runs()
    assert "| method | no noise | sigma 4 | rho 0.5, tau 1 |" in text
    lines = text.splitlines()
    assert sum(line.startswith("| gat |") for line in lines) == 1
    noisy = [
        run.last.temperatures[1]
        for run in runs
        if run.method == "temp_gated" and run.condition == Condition("gaussian", 4)
    ]
    layers = [line for line in lines if line.startswith("| temp_gated | 2 |")]
    assert layers[0].split(" | ")[3] == f"{mean(noisy):.3f}"
    assert "## Mean gate by layer" in text
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["mine, GAT"] * 2
    line = figure.axes[0].get_lines()[-1]
    assert line.get_label() == "layer 2"
    assert line.get_ydata()[1] == pytest.approx(mean(noisy))


def test_a_look_at_methods_without_temperature_and_gate_draws_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load_recipe(write_recipe(tmp_path / "recipe.yaml"))
    monkeypatch.setattr(study, "recipe_for", lambda graph: ("tiny", recipe))
    monkeypatch.setitem(study.PLAN, "epochs", PLAN)
    path = write_graph(tmp_path / "mine.npz")
    with Store(tmp_path / "store.sqlite") as store:
        asked = (str(path), Runner(store, CPU), Changes(methods=["gat"], runs=1))
        assert "by layer" not in look(*asked)
        assert draw(*asked) is None
