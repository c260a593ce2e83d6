"""Runs are stopped, continued and not repeated."""

from pathlib import Path

import pytest
import torch

from tempergat.study.when.plan import WhenPlan, load_plan
from tempergat.study.when.runs import parts
from tempergat.study.when.runs.groups import Group, generated_groups, train
from tempergat.study.when.runs.processes import processes_on, train_groups
from tempergat.study.when.runs.rows import CSV_OF_STAGE, Row, read_rows

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


def test_the_cores_train_beside_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 16)
    assert processes_on(CPU) == {"cpu": 16}
    assert processes_on(torch.device("cuda")) == {"cuda": 4, "cpu": 12}


@pytest.mark.slow
def test_two_processes_give_the_rows_of_one() -> None:
    plan = small_plan()
    groups = generated_groups(plan)[:3]
    expected: list[Row] = []
    train_groups(plan, groups, {"cpu": 1}, expected.extend)
    found: list[Row] = []
    train_groups(plan, groups, {"cpu": 2}, found.extend)
    in_order = sorted(found, key=lambda row: row.key)
    assert untimed(in_order) == untimed(sorted(expected, key=lambda row: row.key))
