"""Runs written as CSV come back as they were; other datasets of a file stay."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from studies.results import read_whole_runs
from tempergat.base import UserError, write_into
from tempergat.comparison.storage import export
from tempergat.comparison.storage.export import (
    COLUMNS,
    configs_path,
    export_stores,
    read_runs,
    write_runs,
)
from tempergat.comparison.storage.store import Store
from tempergat.training import LayerRecord, Run, Scores
from tests.support.made_up_runs import failed_run, full_run, run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The paper's first table on three datasets, as it is published."""
    path = tmp_path / "published.csv"
    write_runs(read_whole_runs("homogeneous/runs.csv"), path)
    return path


@pytest.fixture
def exported(tmp_path: Path, table: Path) -> Path:
    export_stores([fill(tmp_path / "s", [run()])], table)
    return table


def fill(path: Path, runs: list[Run]) -> Path:
    with Store(path) as store:
        store.put_group(runs)
    return path


def lines_of(path: Path, dataset: str) -> list[str]:
    lines = path.read_text().splitlines(keepends=True)
    return [line for line in lines if line.startswith(f"{dataset},")]


def test_runs_come_back_as_they_were_but_for_their_group(
    tmp_path: Path, table: Path
) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        (group,) = store.groups("p", "gat", "h", [0], 1)
        runs = [
            run(seed=0, group_id=group.id, test=1 / 3),
            failed_run(seed=1, failed_epoch=None, reason='broke, "badly"\nand twice'),
            run("temp_only", 2, memory_bytes=None, selected=LayerRecord((0.1,), ())),
            run(seed=3, scores={"last_epoch": Scores(9, None, 0.5, 0.25)}),
        ]
        store.put_group(runs)
    assert export_stores([store.path], table).written == {"cora": 4}
    kept = sorted(read_runs(table), key=lambda r: r.seed)
    assert kept == [replace(r, group_id=None) for r in runs]
    lines = table.read_bytes().split(b"\n", 1)
    assert lines[0].decode().split(",") == [*COLUMNS, "numerics"]


def test_every_attribute_that_0_1_0_lacked_comes_back(
    tmp_path: Path, table: Path
) -> None:
    runs = [full_run(seed=0), run(seed=1)]
    with Store(fill(tmp_path / "s", runs)) as store:
        assert sorted(store.runs(), key=lambda r: r.seed) == runs
    export_stores([store.path], table)
    # What a run records over its epochs is too long for a table.
    kept_out = ("curves", "layers_at_epochs", "gate_counts", "training_nodes")
    in_table = [replace(r, **dict.fromkeys(kept_out)) for r in runs]
    assert sorted(read_runs(table), key=lambda r: r.seed) == in_table
    assert len(table.read_text().splitlines()) == 3


def test_stores_are_joined_and_what_they_share_is_written_once(
    tmp_path: Path, table: Path
) -> None:
    one = fill(tmp_path / "one", [run(seed=0), run(seed=1)])
    two = fill(tmp_path / "two", [run(seed=1, time_s=9.0), run(seed=2)])
    assert export_stores([one, two], table).written == {"cora": 3}
    assert [r.seed for r in read_runs(table)] == [0, 1, 2]


def test_an_empty_store_is_not_exported(tmp_path: Path, table: Path) -> None:
    with pytest.raises(UserError, match="no finished runs"):
        export_stores([fill(tmp_path / "empty", [])], table)
    assert not table.exists()


def test_learned_values_that_are_not_numbers_survive(
    tmp_path: Path, table: Path
) -> None:
    path = fill(tmp_path / "s", [failed_run(last=LayerRecord((math.nan,), ()))])
    export_stores([path], table)
    (kept,) = read_runs(table)
    assert math.isnan(kept.last.temperatures[0])


def other_learning_rate(table: Path) -> None:
    (key,) = json.loads(configs_path(table).read_text())
    configs_path(table).write_text(json.dumps({key: {"learning_rate": 1.0}}))


def replaced(old: str, new: str) -> Callable[[Path], object]:
    return lambda table: table.write_text(table.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda table: configs_path(table).unlink(),
            r"runs\.configs\.json.*tempergat export",
        ),
        (other_learning_rate, "row 1: its configuration is not the one"),
        (
            lambda table: configs_path(table).write_text("{}"),
            "row 1: no configuration",
        ),
        (replaced(",0.8,", ",eighty,"), r"row 1: could not convert.*eighty"),
        (replaced("fingerprint", "print"), "lacks the columns fingerprint"),
        (
            lambda table: table.write_text(table.read_text() + "cora,half a row\n"),
            r"row 2: .*; export again",
        ),
    ],
)
def test_a_damaged_table_is_refused_and_not_overwritten(
    exported: Path, damage: Callable[[Path], object], words: str
) -> None:
    damage(exported)
    before = exported.read_bytes()
    with pytest.raises(UserError, match=words):
        read_runs(exported)
    with pytest.raises(UserError, match=words):
        write_runs([run(dataset="pubmed")], exported)
    assert exported.read_bytes() == before


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(
        UserError, match=r"cannot read .*notes\.configs\.json.*in a new file"
    ):
        write_runs([run()], path)
    assert path.read_text() == "a,b\n1,2\n"


def test_one_dataset_replaces_its_own_rows_only(
    published: Path, tmp_path: Path
) -> None:
    before = {name: lines_of(published, name) for name in ("citeseer", "pubmed")}
    configs = json.loads(configs_path(published).read_text())
    store = fill(tmp_path / "s", [run(seed=seed, numerics=1) for seed in range(3)])
    merged = export_stores([store], published)
    assert {name: lines_of(published, name) for name in before} == before
    assert len(lines_of(published, "cora")) == 3
    assert merged.written == {"cora": 3}
    assert merged.replaced == {"cora": 550}
    assert merged.kept == {"citeseer": 550, "pubmed": 550}
    assert merged.sentence == (
        f"wrote 3 runs to {published}; replaced 550 of cora; kept 550 of citeseer, "
        "550 of pubmed"
    )
    assert len(read_runs(published)) == 1103
    # Configurations that no row has any more are gone, the others are untouched.
    left = json.loads(configs_path(published).read_text())
    assert len(left) < len(configs)
    assert {key: configs[key] for key in left if key in configs}.items() <= left.items()


def test_a_row_with_line_breaks_stays_byte_for_byte(table: Path) -> None:
    write_runs([failed_run(reason='broke, "badly"\r\nand \x0b twice\n')], table)
    before = table.read_bytes()
    write_runs([run(dataset="pubmed")], table)
    assert table.read_bytes().startswith(before)
    assert len(read_runs(table)) == 2


def test_further_columns_of_new_runs_are_added(published: Path) -> None:
    write_runs([run(numerics=2)], published)
    (again,) = (r for r in read_runs(published) if r.dataset == "cora")
    assert again.numerics == 2


def test_a_process_killed_between_the_two_files_leaves_readable_runs(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed_at_the_csv(folder: Path, name: str, content: str) -> Path:
        if name.endswith(".csv"):
            raise KeyboardInterrupt
        return write_into(folder, name, content)

    monkeypatch.setattr(export, "write_into", killed_at_the_csv)
    with pytest.raises(KeyboardInterrupt):
        write_runs([run(config={"learning_rate": 0.5})], published)
    assert len(read_runs(published)) == 1650
