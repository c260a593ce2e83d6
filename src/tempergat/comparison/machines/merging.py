"""The stores of several machines, merged into one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tempergat.base import UserError, counted
from tempergat.comparison.machines.same_sweep import refuse_other_sweeps
from tempergat.comparison.machines.store_content import RunKey, StoreContent, keys_of
from tempergat.comparison.machines.store_writing import MergedStore
from tempergat.comparison.storage.store import Group
from tempergat.training import Run

_STORE_NAME = "store.sqlite"


@dataclass(frozen=True)
class MergedStores:
    """What a merge of stores did.

    Attributes:
        path: The store that holds all runs now.
        stores: How many stores were merged into it.
        runs: How many runs it holds.
        new: How many of them it did not hold before.
        repeated: How many runs were in several of the stores, with equal results.
        missing: How many runs of each method were planned and are in none of the
            stores.
    """

    path: Path
    stores: int
    runs: int
    new: int
    repeated: int
    missing: dict[str, int]

    @property
    def facts(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return {**vars(self), "path": str(self.path)}

    @property
    def sentences(self) -> list[str]:
        """The same in words."""
        found = [
            f"merged {counted(self.stores, 'store')} into {self.path}: "
            f"{counted(self.runs, 'run')}, {self.new} of them new"
        ]
        if self.repeated:
            found.append(
                f"{counted(self.repeated, 'run')} in more than one of the stores, with "
                "the same results: kept once"
            )
        if self.missing:
            methods = ", ".join(f"{n} of {name}" for name, n in self.missing.items())
            found.append(
                f"{counted(sum(self.missing.values()), 'planned run')} in none of the "
                f"stores ({methods}): merge the other shards too, or compare without "
                "--shard and with this --out, which trains the rest"
            )
        return found


def merge(stores: str | Path | Sequence[str | Path], out: str | Path) -> MergedStores:
    """Merge the stores of several machines, such as the shards of a comparison.

    The stores are only read. Merging the same stores again changes nothing. After all
    shards of a comparison are merged, the same comparison without `shard` and with
    this `out` trains nothing, and gives the table that one machine would have given.

    Args:
        stores: Files of stores, or the folders that hold them.
        out: The store that takes the runs: a file that ends in `.sqlite`, or a folder,
            in which the store is called `store.sqlite`. Runs that are there stay.

    Raises:
        UserError: A store is missing or damaged, two stores hold different results of
            one run, or they are shards of different comparisons. Nothing is written.
    """
    given = [stores] if isinstance(stores, (str, Path)) else list(stores)
    if not given:
        raise UserError("there are no stores to merge; name some")
    contents = [StoreContent.read(store_file(Path(path))) for path in given]
    target = store_file(Path(out))
    there = StoreContent.read(target) if target.exists() else StoreContent(target)
    runs = _united_runs([there, *contents])
    refuse_other_sweeps(contents, runs.keys())
    groups = list(_united_groups([there, *contents]))
    with MergedStore(target) as merged:
        new = merged.take([there, *contents], groups, runs)
    planned = {key for content in [there, *contents] for key in content.planned}
    counts = Counter(key for content in contents for key in {*content.runs})
    return MergedStores(
        path=target,
        stores=len(contents),
        runs=len(runs),
        new=new,
        repeated=sum(count > 1 for count in counts.values()),
        missing=dict(
            sorted(Counter(key.method for key in planned - runs.keys()).items())
        ),
    )


def store_file(path: Path) -> Path:
    """The file of a store that is given by its file or by its folder."""
    if path.is_file() or path.suffix == ".sqlite":
        return path
    return path / _STORE_NAME


def _united_runs(contents: Sequence[StoreContent]) -> dict[RunKey, Run]:
    """Every run once, from the first store that has it.

    Raises:
        UserError: Two stores hold different results of one run.
    """
    found: dict[RunKey, tuple[Run, Path]] = {}
    for content in contents:
        for key, run in content.runs.items():
            if key not in found:
                found[key] = (run, content.path)
            elif _result(run) != _result(found[key][0]):
                raise _conflict(*found[key], run, content.path)
    return {key: run for key, (run, _) in found.items()}


def _result(run: Run) -> Run:
    """A run without what may differ between two trainings of the same run."""
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
        words.append("failed" if scores is None else f"{100 * scores.test:.4f}")
    scores_differ = f" (test scores {words[0]} and {words[1]})"
    return UserError(
        f"{place} and {other_place} hold different results of {first.method} seed "
        f"{first.seed} on {first.dataset}"
        f"{scores_differ if words[0] != words[1] else ''}; leave one of them out"
    )


def _united_groups(contents: Sequence[StoreContent]) -> Iterator[Group]:
    """The groups of all stores, each once, in the order they were cut.

    A group that was only planned is left out where another store has trained some of
    its runs in other groups: it did not fit memory there.
    """
    trained: list[Group] = []
    planned: list[Group] = []
    for content in contents:
        for group in content.groups:
            is_trained = any(key in content.runs for key in keys_of(group))
            (trained if is_trained else planned).append(group)
    taken = {key for group in trained for key in keys_of(group)}
    groups: dict[Group, Group] = {}
    for group in sorted(
        [*trained, *(g for g in planned if taken.isdisjoint(keys_of(g)))],
        key=lambda group: group.id,
    ):
        groups.setdefault(replace(group, id=0), group)
    yield from groups.values()
