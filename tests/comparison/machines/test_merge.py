"""Shards trained apart and merged are the sweep of one machine."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import tempergat
from tempergat.base import UserError
from tempergat.comparison.machines import merge as merge_module
from tempergat.comparison.machines.merge import merge
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps import workers
from tempergat.comparison.sweeps.shards import Shard
from tempergat.comparison.sweeps.sweep import sweep
from tempergat.training import OutOfMemory, Run, config_hash
from tests.comparison.sweeps.test_sweep import (
    CPU,
    METHODS,
    configs,
    graph,
    timeless,
)
from tests.support.made_up_runs import failed_run, run

PRINT = "print-of-cora"


def planned(
    path: Path,
    trained: dict[str, list[int]],
    plan: dict[str, list[int]] | None = None,
    device: str = "cpu",
    learning_rate: float = 0.005,
    make: Callable[..., Run] = run,
) -> Path:
    """A store with a group per method, and the runs of some of them."""
    config = {"learning_rate": learning_rate}
    with Store(path) as store:
        for method, seeds in (trained if plan is None else plan).items():
            key = config_hash(config)
            store.groups(PRINT, method, key, seeds, len(seeds), device=device)
        for method, seeds in trained.items():
            store.put_group(
                [make(method, seed, config=config, device=device) for seed in seeds]
            )
    return path


def runs_of(path: Path) -> list[Run]:
    with Store(path, read_only=True) as store:
        return store.runs()


def test_three_shards_merged_are_the_sweep_of_one_machine(tmp_path: Path) -> None:
    settings = configs()
    with Store(tmp_path / "whole.sqlite") as store:
        whole = sweep(graph(), settings, range(3), store, CPU)
        groups = store.all_groups()
    parts = []
    for number in (1, 2, 3):
        with Store(tmp_path / f"{number}.sqlite") as store:
            shard = Shard(number, 3)
            parts.append(sweep(graph(), settings, range(3), store, CPU, shard=shard))
    assert [{run.method for run in part} for part in parts] == [{m} for m in METHODS]
    files = [tmp_path / f"{number}.sqlite" for number in (3, 1, 2)]
    merged = tempergat.merge(files, tmp_path / "merged")
    assert (merged.runs, merged.new, merged.repeated, merged.missing) == (9, 9, 0, {})
    with Store(tmp_path / "merged" / "store.sqlite") as store:
        assert store.all_groups() == groups
        again = sweep(graph(), settings, range(3), store, CPU)
        assert len(store.runs()) == 9
    assert [replace(run, time_s=0.0) for run in again] == [
        replace(run, time_s=0.0) for run in whole
    ]


def test_a_shard_that_stops_keeps_its_groups_after_some_did_not_fit_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = workers.train_group

    def train_two(
        dataset: object, config: object, seeds: list[int], *rest: object
    ) -> list[Run]:
        if len(seeds) > 2:
            raise OutOfMemory("too much")
        return train(dataset, config, seeds, *rest)  # type: ignore[arg-type]

    settings = configs()
    monkeypatch.setattr(workers, "train_group", train_two)
    found = {}
    for number in (1, 2, 1):
        with Store(tmp_path / f"{number}.sqlite") as store:
            shard = Shard(number, 2)
            runs = sweep(graph(), settings, range(4), store, CPU, shard=shard)
            found[number] = [(run.method, run.seed) for run in runs]
    assert found == {
        1: [(m, seed) for m in (METHODS[0], METHODS[2]) for seed in range(4)],
        2: [(METHODS[1], seed) for seed in range(4)],
    }
    files = [tmp_path / "1.sqlite", tmp_path / "2.sqlite"]
    assert merge(files, tmp_path / "all.sqlite").missing == {}
    with Store(tmp_path / "all.sqlite") as store:
        # The groups that did not fit are gone; nothing is left to train.
        assert store.pending(store.all_groups()) == []
        assert {len(group.seeds) for group in store.all_groups()} == {2}


def test_more_shards_than_groups_leave_some_without_runs(tmp_path: Path) -> None:
    with Store(tmp_path / "5.sqlite") as store:
        runs = sweep(graph(), configs(), range(2), store, CPU, shard=Shard(5, 5))
    assert runs == []
    merged = merge(tmp_path / "5.sqlite", tmp_path / "all")
    assert merged.missing == dict.fromkeys(METHODS, 2)


def test_every_group_is_in_exactly_one_shard(tmp_path: Path) -> None:
    splits = {number: graph() for number in range(2)}
    changed = splits[1].data.clone()
    changed.train_mask, changed.val_mask = changed.val_mask, changed.train_mask
    splits[1] = replace(splits[1], data=changed, fingerprint="another")
    found = []
    for number in range(1, 5):
        with Store(tmp_path / f"{number}") as store:
            settings = configs(epochs=2)
            runs = sweep(splits, settings, range(4), store, CPU, shard=Shard(number, 4))
            found += [(run.method, run.seed) for run in runs]
    assert sorted(found) == sorted((m, seed) for m in METHODS for seed in range(4))


@pytest.mark.parametrize("shard", [(0, 3), (4, 3), (1, 0), (-1, 3)])
def test_a_shard_out_of_range_is_refused(shard: tuple[int, int]) -> None:
    with pytest.raises(UserError, match="there is no shard"):
        Shard(*shard)


@pytest.mark.parametrize("text", ["", "1", "1/", "/3", "a/b", "1/3/5", "1.0/3", "-1/3"])
def test_a_shard_in_other_words_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="like 1/3"):
        Shard.parse(text)


def test_merging_twice_changes_nothing(tmp_path: Path) -> None:
    files = [
        planned(tmp_path / "a", {"gat": [0, 1]}, {"gat": [0, 1], "gcn": [0, 1]}),
        planned(tmp_path / "b", {"gcn": [0, 1]}, {"gat": [0, 1], "gcn": [0, 1]}),
    ]
    out = tmp_path / "all.sqlite"
    assert merge(files, out).new == 4
    before = runs_of(out)
    again = merge(files, out)
    assert (again.new, again.runs) == (0, 4)
    assert runs_of(out) == before


def test_runs_of_overlapping_shards_are_kept_once(tmp_path: Path) -> None:
    def slower(*arguments: object, **fields: object) -> Run:
        return replace(run(*arguments, **fields), time_s=9.0)  # type: ignore[arg-type]

    a = planned(tmp_path / "a", {"gat": [0, 1], "gcn": [0]})
    b = planned(tmp_path / "b", {"gat": [0, 1]}, make=slower)
    merged = merge([a, b], tmp_path / "all")
    assert (merged.runs, merged.repeated) == (3, 2)
    assert "2 runs in more than one of the stores" in merged.sentences[1]
    assert {found.time_s for found in runs_of(merged.path)} == {1.5}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda *a, **k: run(*a, test=0.7, **k), "seed 0 on cora"),
        (failed_run, "seed 0 on cora"),
    ],
)
def test_different_results_of_one_run_are_refused(
    tmp_path: Path, make: Callable[..., Run], words: str
) -> None:
    a = planned(tmp_path / "a", {"gat": [0]})
    b = planned(tmp_path / "b", {"gat": [0]}, make=make)
    with pytest.raises(UserError, match=f"different results of gat {words}"):
        merge([a, b], tmp_path / "all")
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"learning_rate": 0.1}, "they have other settings for gat"),
        ({"plan": {"gat": [0], "gcn": [0]}}, "one has 1 seeds of gat, the other 2"),
        ({"device": "cuda A"}, "one is for cpu, the other for cuda A"),
    ],
)
def test_shards_of_different_comparisons_are_refused(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    both = {"gat": [0, 1], "gcn": [0, 1]}
    a = planned(tmp_path / "a", {"gcn": [0, 1]}, both)
    options = {"plan": both} | changes
    b = planned(tmp_path / "b", {}, **options)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=words):
        merge([a, b], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_finished_stores_of_several_recipes_can_be_merged(tmp_path: Path) -> None:
    a = planned(tmp_path / "a", {"gat": [0, 1]})
    b = planned(tmp_path / "b", {"gat": [0, 1, 2]}, learning_rate=0.1)
    assert merge([a, b], tmp_path / "all").runs == 5


def test_a_damaged_store_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    a = planned(tmp_path / "a.sqlite", {"gat": [0]})
    b = planned(tmp_path / "b.sqlite", {"gcn": [0]})
    with sqlite3.connect(b) as connection:
        connection.execute("UPDATE runs SET record = replace(record, '0.8', '0.9')")
    connection.close()
    with pytest.raises(UserError, match=r"b.sqlite is damaged \(the row of gcn seed 0"):
        merge([a, b], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_a_shard_from_python_needs_a_folder() -> None:
    with pytest.raises(UserError, match="shard 1/2 would keep nothing"):
        tempergat.compare(graph(), runs=2, shard=(1, 2))


def test_a_shard_from_python_says_what_it_has(tmp_path: Path) -> None:
    done = tempergat.compare(
        graph(),
        methods=["gcn", "gat"],
        runs=2,
        settings={"epochs": 2},
        device=torch.device("cpu"),
        out=tmp_path / "one",
        progress=False,
        shard=(1, 2),
    )
    assert [run.method for run in done.runs] == ["gcn", "gcn"]
    assert str(done).startswith("shard 1/2: 2 of 4 runs")
    assert timeless(done.runs) == timeless(runs_of(done.store))
    assert not list((tmp_path / "one").glob("*.md"))


@pytest.mark.parametrize("trained", [{"gatv2": [0, 1]}, {}], ids=["runs", "a plan"])
def test_a_store_that_changes_during_the_merge_keeps_what_was_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: dict[str, list[int]]
) -> None:
    first = planned(tmp_path / "first.sqlite", {"gat": [0, 1]})
    out = planned(tmp_path / "out.sqlite", {}, {"gatv2": [0, 1]})

    def other_process(*_: object) -> None:
        planned(out, trained, {"gatv2": [0, 1], "gcn": [0]})

    monkeypatch.setattr(merge_module, "refuse_other_sweeps", other_process)
    with pytest.raises(UserError, match=r"changed .*out.sqlite during the merge; wait"):
        merge(first, out)
    with Store(out, read_only=True) as store:
        assert len(store.runs()) == sum(map(len, trained.values()))
        assert {group.method for group in store.all_groups()} == {"gatv2", "gcn"}
