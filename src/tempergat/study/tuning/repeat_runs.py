"""Runs the further searches that results/ lacks, alone or beside other processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tempergat.base import FileLock, GroupLocks, csv_text, write_into
from tempergat.data import Dataset
from tempergat.study.engine import (
    Run,
    Store,
    config_hash,
    read_runs,
    sweep,
    write_runs,
)
from tempergat.study.search import best_trial
from tempergat.study.tuning.repeats import (
    REPEATS_FILE,
    REPEATS_TRIALS_FILE,
    RepeatsPlan,
    SearchId,
    whole_searches,
)
from tempergat.study.tuning.searching import read_trials, search
from tempergat.training import load_recipe

Lines = list[dict[str, Any]]
# How many searches are whole, and how many there will be.
OnSearchEnd = Callable[[int, int], None]


def count_searches(plan: RepeatsPlan, results: Path, graph: str) -> tuple[int, int]:
    """How many searches a graph needs, and how many of them are whole in results/.

    Raises:
        UserError: A file of results/ cannot be read.
    """
    found = whole_searches(
        plan,
        graph,
        _runs(results / REPEATS_FILE),
        _lines(results / REPEATS_TRIALS_FILE),
    )
    return len(_planned(plan)), len(found)


def run_repeats(
    plan: RepeatsPlan,
    graph: Dataset,
    results: Path,
    store: Store,
    device: torch.device,
    on_search_end: OnSearchEnd = lambda done, of: None,
) -> int:
    """Search and train what results/ lacks on a graph.

    Several processes may do this at once with the same store: each takes a search that
    no other works on. A search that was stopped continues from its stored runs. When
    the work ends or is stopped, what the store holds is added to results/.

    Args:
        plan: The plan.
        graph: The graph.
        results: The project's folder of results.
        store: Where runs are stored.
        device: Where to train.
        on_search_end: Called when a search has all its runs.

    Returns:
        How many searches are whole in results/.

    Raises:
        UserError: Optuna is missing, or a file cannot be read or written.
    """
    published = [r for r in _runs(results / REPEATS_FILE) if r.dataset == graph.name]
    store.put_group(published)
    lines = _lines(results / REPEATS_TRIALS_FILE)
    in_results = set(whole_searches(plan, graph.name, published, lines))
    planned = _planned(plan)
    left = [pair for pair in enumerate(planned) if pair[1] not in in_results]
    # Beside the store: the trials of the searches in it that have ended.
    ended = store.path.with_name(f"{graph.name}_repeats_trials.csv")
    try:
        with GroupLocks(store.path.with_name(f"{graph.name}_repeats")) as locks:
            # At first the searches that no other process works on, then the others.
            for wait in (False, True):
                held = []
                for number, key in left:
                    if not locks.acquire(number, wait=wait):
                        held.append((number, key))
                        continue
                    try:
                        if key not in _searches(_lines(ended)):
                            new = _run_search(plan, graph, key, store, device)
                            with _locked(ended):
                                _add_lines(ended, new)
                            done = in_results | _searches(_lines(ended))
                            on_search_end(len(done), len(planned))
                    finally:
                        locks.release(number)
                left = held
    finally:
        _publish(plan, graph.name, results, store, ended)
    return count_searches(plan, results, graph.name)[1]


def _planned(plan: RepeatsPlan) -> list[SearchId]:
    """All searches of a graph, repeat by repeat."""
    return [
        SearchId(number, method)
        for number in range(1, len(plan.repeats) + 1)
        for method in plan.methods
    ]


def _run_search(
    plan: RepeatsPlan,
    graph: Dataset,
    key: SearchId,
    store: Store,
    device: torch.device,
) -> Lines:
    """Search settings, train the reported runs with the best; the lines of the trials.

    Runs that are in the store are not trained again.
    """
    one = plan.search(graph.name, plan.repeats[key.repeat - 1])
    trials = search(graph, one, key.method, store, device, own_first=True)
    base, best = load_recipe(one.base).config_for(key.method), best_trial(trials)
    sweep(graph, [base.with_changes(**best.settings)], plan.run_seeds, store, device)
    return [
        {
            "dataset": graph.name,
            "repeat": key.repeat,
            "method": key.method,
            "trial": trial.number,
            "config_hash": config_hash(
                base.with_changes(**trial.settings).model_dump(mode="json")
            ),
            "val_mean": _rounded(trial.score),
            "failed": trial.validation.failed,
            "chosen": trial is best,
        }
        for trial in trials
    ]


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def _publish(
    plan: RepeatsPlan, graph: str, results: Path, store: Store, ended: Path
) -> None:
    """Add the runs of the store, and the trials of the searches that have ended."""
    path = results / REPEATS_FILE
    searched = [plan.search(graph, repeat).run_seeds for repeat in plan.repeats]
    seeds = [seed for part in (*searched, plan.run_seeds) for seed in part]
    table = results / REPEATS_TRIALS_FILE
    with _locked(store.path.with_name("repeats")):
        lines = [line for line in _lines(table) if line["dataset"] == graph]
        if len(_searches(lines)) == len(_planned(plan)):
            # Another process has added all of it.
            return
        new = store.runs(dataset=graph, methods=plan.methods, seeds=seeds)
        # Of a run that was made on two devices, the one made here stays.
        runs = {
            (run.method, run.config_hash, run.seed): run
            for run in (*_runs(path), *new)
            if run.dataset == graph
        }
        if runs:
            write_runs(list(runs.values()), path)
        # After the runs, so that a search in the table has all its runs.
        _add_lines(table, _lines(ended))


def _add_lines(path: Path, new: Lines) -> None:
    """Add the trials of searches to a table, in place of those they had there."""
    if not new:
        return
    replaced = {(line["dataset"], _id(line)) for line in new}
    kept = [x for x in _lines(path) if (x["dataset"], _id(x)) not in replaced]
    lines = [*kept, *new]
    lines.sort(key=lambda x: (x["dataset"], int(x["repeat"]), x["method"]))
    write_into(path.parent, path.name, csv_text(lines))


def _searches(lines: Lines) -> set[SearchId]:
    return {_id(line) for line in lines}


def _id(line: dict[str, Any]) -> SearchId:
    return SearchId(int(line["repeat"]), line["method"])


def _locked(path: Path) -> FileLock:
    return FileLock(
        path.with_name(f"{path.name}.lock"), "make its folder writable, then run again"
    )


def _runs(path: Path) -> list[Run]:
    return read_runs(path) if path.exists() else []


def _lines(path: Path) -> Lines:
    return [dict(line) for line in read_trials(path)] if path.exists() else []
