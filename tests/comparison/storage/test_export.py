"""Runs written as CSV come back as they were."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tempergat.base.errors import UserError
from tempergat.comparison.storage.export import (
    COLUMNS,
    configs_path,
    export_runs,
    read_runs,
)
from tempergat.comparison.storage.store import Store
from tempergat.training import LayerRecord, Run, Scores
from tests.support.made_up_runs import failed_run, full_run, run


def fill(path: Path, runs: list[Run]) -> Path:
    with Store(path) as store:
        store.put_group(runs)
    return path


def test_runs_come_back_as_they_were_but_for_their_group(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        (group,) = store.groups("p", "gat", "h", [0], 1)
        runs = [
            run(seed=0, group_id=group.id, test=1 / 3),
            failed_run(seed=1, failed_epoch=None, reason='broke, "badly"\nand twice'),
            run("temp_only", 2, memory_bytes=None, selected=LayerRecord((0.1,), ())),
            run(seed=3, scores={"last_epoch": Scores(9, None, 0.5, 0.25)}),
        ]
        store.put_group(runs)
        assert export_runs(store, tmp_path / "runs.csv").written == {"cora": 4}
    kept = sorted(read_runs(tmp_path / "runs.csv"), key=lambda r: r.seed)
    assert kept == [replace(r, group_id=None) for r in runs]


def test_every_attribute_that_0_1_0_lacked_comes_back(tmp_path: Path) -> None:
    runs = [full_run(seed=0), run(seed=1)]
    with Store(fill(tmp_path / "s", runs)) as store:
        assert sorted(store.runs(), key=lambda r: r.seed) == runs
        export_runs(store, tmp_path / "runs.csv")
    # What a run records over its epochs is too long for a table.
    kept_out = ("curves", "layers_at_epochs", "gate_counts", "training_nodes")
    in_table = [replace(r, **dict.fromkeys(kept_out)) for r in runs]
    assert sorted(read_runs(tmp_path / "runs.csv"), key=lambda r: r.seed) == in_table


def test_one_row_per_run_with_the_stated_columns(tmp_path: Path) -> None:
    with Store(fill(tmp_path / "s", [run(seed=s) for s in range(4)])) as store:
        export_runs(store, tmp_path / "runs.csv")
    lines = (tmp_path / "runs.csv").read_text().splitlines()
    assert lines[0].split(",") == list(COLUMNS)
    assert len(lines) == 5


def test_stores_are_joined_and_what_they_share_is_written_once(tmp_path: Path) -> None:
    one = fill(tmp_path / "one", [run(seed=0), run(seed=1)])
    two = fill(tmp_path / "two", [run(seed=1, time_s=9.0), run(seed=2)])
    with Store(one) as first, Store(two) as second:
        merged = export_runs([first, second], tmp_path / "runs.csv")
    assert merged.written == {"cora": 3}
    assert [r.seed for r in read_runs(tmp_path / "runs.csv")] == [0, 1, 2]


def test_stores_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    one = fill(tmp_path / "one", [run(test=0.8)])
    two = fill(tmp_path / "two", [run(test=0.9)])
    with (
        Store(one) as first,
        Store(two) as second,
        pytest.raises(UserError, match="two stores differ on cora gat seed 0"),
    ):
        export_runs([first, second], tmp_path / "runs.csv")


def test_an_empty_store_is_not_exported(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "empty") as store,
        pytest.raises(UserError, match="no finished runs"),
    ):
        export_runs(store, tmp_path / "runs.csv")
    assert not (tmp_path / "runs.csv").exists()


def test_learned_values_that_are_not_numbers_survive(tmp_path: Path) -> None:
    path = fill(tmp_path / "s", [failed_run(last=LayerRecord((math.nan,), ()))])
    with Store(path) as store:
        export_runs(store, tmp_path / "runs.csv")
    (kept,) = read_runs(tmp_path / "runs.csv")
    assert math.isnan(kept.last.temperatures[0])


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    with Store(fill(tmp_path / "s", [run()])) as store:
        export_runs(store, tmp_path / "runs.csv")
    return tmp_path / "runs.csv"


def test_a_missing_file_is_named_with_the_remedy(exported: Path) -> None:
    configs_path(exported).unlink()
    with pytest.raises(UserError, match=r"runs\.configs\.json.*tempergat export"):
        read_runs(exported)


def test_a_changed_configuration_is_noticed(exported: Path) -> None:
    configs = json.loads(configs_path(exported).read_text())
    (key,) = configs
    configs_path(exported).write_text(json.dumps({key: {"learning_rate": 1.0}}))
    with pytest.raises(UserError, match="row 1: its configuration is not the one"):
        read_runs(exported)


def test_a_configuration_that_is_missing_is_named(exported: Path) -> None:
    configs_path(exported).write_text("{}")
    with pytest.raises(UserError, match="row 1: no configuration"):
        read_runs(exported)


def test_a_broken_cell_names_its_row(exported: Path) -> None:
    exported.write_text(exported.read_text().replace(",0.8,", ",eighty,"))
    with pytest.raises(UserError, match=r"row 1: could not convert.*eighty"):
        read_runs(exported)


def test_a_missing_column_is_named(exported: Path) -> None:
    exported.write_text(exported.read_text().replace("fingerprint", "print", 1))
    with pytest.raises(UserError, match="lacks the columns fingerprint"):
        read_runs(exported)
