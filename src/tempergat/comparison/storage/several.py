"""The finished runs of one store or of several, such as those of several machines."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tempergat.base import UserError
from tempergat.comparison.storage.rows import Group, RunKey
from tempergat.comparison.storage.store import STORE_NAME, Store, store_file
from tempergat.training import Run, metric_of_settings


def read_stores(paths: Sequence[Path]) -> tuple[list[Run], list[Group]]:
    """Every run of some stores once, and the groups that were trained there.

    The files are only read. Groups, and the groups of runs, are numbered in the order
    in which they were cut, store by store.

    Args:
        paths: The files of stores, or the folders that hold them.

    Raises:
        UserError: A store is missing, damaged or without runs, or two of them hold
            different results of one run.
    """
    runs: dict[RunKey, Run] = {}
    places: dict[RunKey, Path] = {}
    groups: list[Group] = []
    before = 0
    for path in paths:
        file = _existing(path)
        with Store(file, read_only=True) as store:
            stored, cut = store.runs(), store.all_groups()
        if not stored:
            raise UserError(f"there are no finished runs in {file}; name another store")
        keys = {RunKey.of(run): run for run in stored}
        for key, run in keys.items():
            if key not in runs:
                number = run.group_id and run.group_id + before
                runs[key], places[key] = replace(run, group_id=number), file
            elif _result(run) != _result(runs[key]):
                raise _conflict(runs[key], places[key], run, file)
        groups += [
            replace(group, id=group.id + before)
            for group in cut
            if not group.keys.isdisjoint(keys)
        ]
        before += max((group.id for group in cut), default=0)
    return list(runs.values()), groups


def _existing(path: Path) -> Path:
    """The file of a store that is there."""
    file = store_file(path)
    if not file.is_file():
        missing = f"the folder {path} has no {STORE_NAME} with runs"
        if not path.exists():
            missing = f"there is no file or folder {path}"
        remedy = "make one with `tempergat compare`, or name another with its path"
        raise UserError(f"{missing}; {remedy}")
    return file


def _result(run: Run) -> Run:
    """A run without what may differ between two trainings of it."""
    return replace(
        run,
        time_s=0.0,
        memory_bytes=None,
        versions={},
        group_id=None,
        dataset="",
        split=0,
    )


def _conflict(first: Run, place: Path, second: Run, other_place: Path) -> UserError:
    words = []
    for run in (first, second):
        scores = run.scores.get(str(run.config.get("selection")))
        metric = metric_of_settings(run.config.get("metric"))
        shown = None if scores is None else metric.shown(scores.test)
        words.append("failed" if shown is None else f"{shown:.4f}")
    scores_differ = f" (test scores {words[0]} and {words[1]})"
    return UserError(
        f"{place} and {other_place} hold different results of {first.method} seed "
        f"{first.seed} on {first.dataset}"
        f"{scores_differ if words[0] != words[1] else ''}; leave one of them out"
    )
