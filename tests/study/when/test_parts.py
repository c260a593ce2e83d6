"""Runs are stopped, continued and not repeated."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tempergat.study.when.plan import WhenPlan, load_plan
from tempergat.study.when.runs import parts
from tempergat.study.when.runs.groups import Group, generated_groups, search_groups
from tempergat.study.when.runs.processes import (
    GPU_PROCESSES,
    processes_on,
    train_groups,
)
from tempergat.study.when.runs.rows import CSV_OF_STAGE, Row, read_rows
from tempergat.study.when.runs.training import config_of, train
from tempergat.training import MixedRun, OutOfMemory, Run, train_mixed
from tests.support.run_settings import small_graph

ROOT = Path(__file__).resolve().parents[3]
CPU = torch.device("cpu")


def small_plan() -> WhenPlan:
    values = load_plan(ROOT / "results").model_dump()
    values["arms"] = ["plain", "constant_gate"]
    values["contrasts"] = values["contrasts"][3:4]
    generated = values["generated"]
    generated |= {"nodes": 60, "seeds": [1, 2], "levels": {"homophily": [0.5]}}
    generated["settings"] |= {"epochs": 2, "heads": 1, "hidden_channels": 4}
    return WhenPlan.model_validate(values)


def untimed(rows: list[Row]) -> list[tuple[object, ...]]:
    return [(row.key, row.val, row.test, row.epoch, row.parameters) for row in rows]


def test_a_stopped_part_continues_and_ends_with_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small_plan()
    file = CSV_OF_STAGE["generated"]
    trained: list[Group] = []

    def stopping(plan: WhenPlan, group: Group, device: str) -> list[Row]:
        if len(trained) == 5:
            raise KeyboardInterrupt
        trained.append(group)
        return train(plan, group, device)

    def run(folder: Path) -> int:
        return parts.run_generated(plan, folder, tmp_path, CPU, lambda *_: None)

    monkeypatch.setattr("tempergat.study.when.runs.processes.train", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped")
    assert len(read_rows(tmp_path / "stopped" / file)) == 10
    monkeypatch.setattr("tempergat.study.when.runs.processes.train", train)
    assert run(tmp_path / "stopped") == 24
    assert run(tmp_path / "whole") == 24
    found = [read_rows(tmp_path / name / file) for name in ("stopped", "whole")]
    assert untimed(found[0]) == untimed(found[1])
    before = (tmp_path / "whole" / file).read_bytes()
    run(tmp_path / "whole")
    assert (tmp_path / "whole" / file).read_bytes() == before


def real_plan(graph: Path) -> WhenPlan:
    values = {**small_plan().model_dump(), "backbones": ["gatv2"]}
    real = values["real"]
    real |= {"made_splits": 3, "seeds": [5, 6, 7]}
    made = {"name": "own", "family": "own", "splits": "made", "part": 2}
    real["graphs"] = [{**made, "file": str(graph), "adjusted_homophily": 0.0}]
    real["settings"] |= {"epochs": 3, "heads": 1, "hidden_channels": 4}
    return WhenPlan.model_validate(values)


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    data = small_graph(60).data
    np.savez(
        tmp_path / "own.npz",
        x=data.x.numpy(),
        edge_index=data.edge_index.numpy(),
        y=data.y.numpy(),
    )
    return tmp_path / "own.npz"


def test_a_real_graph_is_searched_and_reported_and_continues_where_it_stopped(
    tmp_path: Path, graph_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = real_plan(graph_file)
    trained: list[Group] = []

    def stopping(plan: WhenPlan, group: Group, device: str) -> list[Row]:
        if len(trained) == 6:
            raise KeyboardInterrupt
        trained.append(group)
        return train(plan, group, device)

    def run(folder: Path) -> int:
        (graph,) = plan.real.graphs
        return parts.run_real(plan, graph, folder, tmp_path, CPU, lambda *_: None)

    monkeypatch.setattr("tempergat.study.when.runs.processes.train", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped")
    # The runs to report follow the search of their arm at once.
    assert [group.stage for group in trained[:5]] == [*["search"] * 3, "real", "search"]
    monkeypatch.setattr("tempergat.study.when.runs.processes.train", train)
    assert run(tmp_path / "stopped") == run(tmp_path / "whole") == 2 * (24 + 3)
    for stage in ("search", "real"):
        found = [
            untimed(read_rows(tmp_path / name / CSV_OF_STAGE[stage]))
            for name in ("stopped", "whole")
        ]
        assert found[0] == found[1]
    before = (tmp_path / "whole" / CSV_OF_STAGE["real"]).read_bytes()
    run(tmp_path / "whole")
    assert (tmp_path / "whole" / CSV_OF_STAGE["real"]).read_bytes() == before


def test_rows_of_a_group_are_those_of_its_runs_alone(graph_file: Path) -> None:
    plan = real_plan(graph_file)
    (graph,) = plan.real.graphs
    group = search_groups(plan, graph, 3)[-1]
    rows = train(plan, group, "cpu")
    assert [row.key for row in rows] == list(group.runs)
    for row in rows[::3]:
        (alone,) = train(plan, replace(group, runs=(row.key,)), "cpu")
        assert untimed([row]) == untimed([alone])
        assert row.gates == pytest.approx(alone.gates, rel=1e-4)
        assert config_of(plan, row.key).weight_decay in plan.real.search.weight_decay


def test_a_group_that_does_not_fit_the_memory_is_trained_in_parts(
    graph_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = real_plan(graph_file)
    (graph,) = plan.real.graphs
    group = search_groups(plan, graph, 3)[0]
    expected = train(plan, group, "cpu")
    sizes = []

    def small_device(runs: list[MixedRun], *options: Any) -> list[Run]:
        sizes.append(len(runs))
        if len(runs) > 3:
            raise OutOfMemory("too many runs")
        return train_mixed(runs, *options)

    monkeypatch.setattr("tempergat.study.when.runs.training.train_mixed", small_device)
    assert untimed(train(plan, group, "cpu")) == untimed(expected)
    assert sizes == [8, 4, 2, 2, 2, 2]


def test_a_gpu_has_a_few_processes_and_a_cpu_one_for_each_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 16)
    assert processes_on(CPU) == 16
    assert processes_on(torch.device("cuda")) == GPU_PROCESSES


@pytest.mark.slow
def test_two_processes_give_the_rows_of_one() -> None:
    plan = small_plan()
    groups = generated_groups(plan)[:3]
    found: dict[int, list[Row]] = {1: [], 2: []}
    for processes, rows in found.items():

        def add(group: Group, new: list[Row], rows: list[Row] = rows) -> list[Group]:
            rows.extend(new)
            return []

        train_groups(plan, groups, "cpu", processes, add)
        rows.sort(key=lambda row: row.key)
    assert untimed(found[1]) == untimed(found[2])
