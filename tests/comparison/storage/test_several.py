"""The stores of several machines, read as one."""

import math
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tempergat
from tempergat.base import UserError
from tempergat.comparison.results.from_store import stored_comparisons
from tempergat.comparison.storage.several import read_stores
from tempergat.comparison.storage.store import Store
from tempergat.training import LayerRecord, Run
from tests.support.made_up_runs import failed_run, run, study
from tests.support.run_settings import small_graph


def filled(path: Path, runs: list[Run], planned: int = 0) -> Path:
    """A store with a group of each method; some have further seeds planned."""
    methods = list(dict.fromkeys(one.method for one in runs))
    with Store(path / "store.sqlite") as store:
        for method in methods:
            own = [one for one in runs if one.method == method]
            seeds = [*(one.seed for one in own), *range(100, 100 + planned)]
            what = (own[0].fingerprint, method, own[0].config_hash)
            (group,) = store.groups(*what, seeds, len(seeds), numerics=own[0].numerics)
            store.put_group([replace(one, group_id=group.id) for one in own])
    return path


def test_methods_of_several_machines_stand_in_one_table(tmp_path: Path) -> None:
    scores = {"gcn": 79.0, "gat": 80.0, "temp_gated": 81.0}
    runs = study("cora", scores, range(5))
    (whole,) = stored_comparisons(filled(tmp_path / "all", runs))
    machines = [
        filled(tmp_path / name, [one for one in runs if one.method == name])
        for name in scores
    ]
    (found,) = stored_comparisons(machines)
    assert found.table == whole.table
    assert found.verdict == whole.verdict


def test_machines_that_choose_between_recipes_give_the_table_of_one(
    tmp_path: Path,
) -> None:
    def compared(methods: list[str], name: str) -> Path:
        options = {"settings": {"epochs": 3, "hidden": 8}}
        where = {"out": tmp_path / name, "device": "cpu", "progress": False}
        tempergat.compare(small_graph(), methods, 2, **options, **where)
        return tmp_path / name

    methods = ["gcn", "gat", "mlp", "gated"]
    (whole,) = stored_comparisons(compared(methods, "whole"))
    parts = [compared(methods[:1], "A"), compared(methods[1:], "B")]
    (found,) = stored_comparisons(parts)
    same = ("method", "mean", "std", "runs")
    tables = [[[row[k] for k in same] for row in of.table] for of in (whole, found)]
    assert tables[0] == tables[1]
    assert found.chosen == whole.chosen
    assert found.verdict == whole.verdict


def test_a_run_that_stands_in_two_stores_counts_once(tmp_path: Path) -> None:
    failed = failed_run(seed=2, last=LayerRecord((math.nan,), ()))
    both = [run(seed=1), failed]
    one = filled(tmp_path / "one", [run(seed=0), *both])
    two = filled(tmp_path / "two", [replace(again, time_s=9.0) for again in both])
    runs, groups = read_stores([one, two])
    assert [(found.seed, found.time_s) for found in runs] == [
        (0, 1.5),
        (1, 1.5),
        (2, 1.5),
    ]
    assert [group.id for group in groups] == [1, 2]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: run(test=0.7), r" \(test scores .*\)"),
        (failed_run, r" \(test scores .* and failed\)"),
        (lambda: run(selected=LayerRecord((0.1, 0.75), (0.25,))), ""),
    ],
    ids=["score", "failure", "temperature"],
)
def test_two_results_of_one_run_are_an_error_that_names_both_stores(
    tmp_path: Path, other: Callable[[], Run], words: str
) -> None:
    config = {"learning_rate": 0.005, "selection": "best_val_accuracy"}
    a, b = (
        filled(tmp_path / name, [replace(one, config=config)])
        for name, one in (("a", run()), ("b", other()))
    )
    message = (
        f"{a}/store.sqlite and {b}/store.sqlite hold different results of gat seed 0 "
        f"on cora{words}; leave one of them out"
    )
    with pytest.raises(UserError, match=message):
        read_stores([a, b])


def test_what_one_machine_planned_and_another_trained_is_not_called_lost(
    tmp_path: Path,
) -> None:
    runs = study("cora", {"gat": 80.0}, range(4))
    planner = filled(tmp_path / "a", study("cora", {"gcn": 79.0}, range(4)))
    with Store(planner / "store.sqlite") as store:
        what = (runs[0].fingerprint, "gat", runs[0].config_hash)
        store.groups(*what, range(8), 8, numerics=runs[0].numerics)
    (found,) = stored_comparisons([planner, filled(tmp_path / "b", runs)])
    assert not any("no longer in the store" in note for note in found.notes)


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    a, b = (filled(tmp_path / m, [run(m)]) for m in ("gat", "gcn"))
    with sqlite3.connect(b / "store.sqlite") as connection:
        connection.execute("UPDATE runs SET record = replace(record, '0.8', '0.9')")
    connection.close()
    with pytest.raises(UserError, match=r"gcn/store.sqlite is damaged"):
        read_stores([a, b])
