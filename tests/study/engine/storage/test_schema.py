"""Stores of version 0.1.0 are migrated and continued."""

import csv
import io
import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.data import load
from tempergat.study.engine import Progress, Run, Store, sweep
from tempergat.study.engine.storage.schema import SCHEMA_VERSION
from tempergat.study.report import as_csv, as_json
from tempergat.study.results import dataset_result
from tempergat.training import load_recipe

OLD = Path(__file__).parents[3] / "fixtures" / "v0_1_0"
METHODS = ("gcn", "gat", "gated", "temp_gated")
AGAINST = {"gated": "gat", "temp_gated": "gat"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD / "store.sqlite", tmp_path))


def continued(
    path: Path, seeds: range, events: list[Progress] | None = None
) -> list[Run]:
    """The comparison that made the fixture, run again."""
    recipe = load_recipe(OLD / "recipe.yaml")
    with Store(path) as store:
        return sweep(
            replace(load(str(OLD / "graph")), name="graph"),
            [recipe.config_for(method) for method in METHODS],
            seeds,
            store,
            torch.device("cpu"),
            None if events is None else events.append,
        )


def version_of(path: Path) -> int:
    connection = sqlite3.connect(path)
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return version


def test_a_store_of_0_1_0_repeats_the_numbers_of_its_table(path: Path) -> None:
    events: list[Progress] = []
    runs = continued(path, range(4), events)
    assert not any(progress.epoch for progress in events)
    assert version_of(path) == SCHEMA_VERSION == 3
    result = dataset_result(runs, METHODS, AGAINST)
    with (OLD / "comparison.csv").open(newline="") as file:
        expected = list(csv.DictReader(file))
    found = list(csv.DictReader(io.StringIO(as_csv(result))))
    # Wilcoxon's p stays uncorrected since, and there are further columns.
    for row, old in zip(found, expected, strict=True):
        del old["wilcoxon_p_holm"]
        assert {name: row[name] for name in old} == old
    printed = json.loads((OLD / "compare.json").read_text())
    facts = as_json(result)
    for new, old in zip(facts.pop("results"), printed["results"], strict=True):
        for comparison in filter(None, (new["comparison"], old["comparison"])):
            comparison.pop("wilcoxon_p_holm", None)
            comparison.pop("plain_p_holm", None)
        # Later versions say more about a method.
        assert {name: new[name] for name in old} == old
    assert all(facts[name] == printed[name] for name in facts.keys() & printed.keys())


def test_a_store_of_0_1_0_is_continued(path: Path) -> None:
    events: list[Progress] = []
    old = continued(path, range(4))
    runs = continued(path, range(6), events)
    assert [run for run in runs if run.seed < 4] == old
    assert {progress.group_runs for progress in events if progress.epoch} == {2}
    for run in runs:
        assert (run.numerics, run.device) == (1, "cpu")
        assert (run.parameter_count is None) == (run.seed < 4)


def test_groups_that_0_1_0_cut_and_did_not_train_are_kept(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM runs WHERE method = 'temp_gated'")
    connection.execute("UPDATE groups SET seeds = '[0,1]' WHERE method = 'temp_gated'")
    connection.commit()
    connection.close()
    events: list[Progress] = []
    continued(path, range(4), events)
    trained = [progress for progress in events if progress.epoch == 1]
    assert [progress.method for progress in trained] == ["temp_gated", "temp_gated"]
    assert [progress.group_runs for progress in trained] == [2, 2]


def test_an_altered_row_of_0_1_0_is_reported_and_the_file_left_as_it_was(
    path: Path,
) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE runs SET record = replace(record, '0.75', '0.76')")
    connection.commit()
    connection.close()
    with pytest.raises(UserError, match=r"is damaged.*was altered"):
        Store(path)
    assert version_of(path) == 1


def test_a_migration_that_fails_leaves_the_old_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def fail(table: str, columns: tuple[str, ...]) -> str:
            raise KeyboardInterrupt

        patch.setattr("tempergat.study.engine.storage.schema.insert_statement", fail)
        with pytest.raises(KeyboardInterrupt):
            Store(path)
    assert version_of(path) == 1
    with Store(path) as store:
        assert len(store.runs()) == 16
