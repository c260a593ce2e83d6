"""The stores of several machines, merged into one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from tempergat.base import UserError, counted
from tempergat.comparison.storage.database import with_checksum
from tempergat.comparison.storage.rows import Group, RunKey, encode, group_row
from tempergat.comparison.storage.store import Store, store_file
from tempergat.training import Run


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
        sentences = [
            f"merged {counted(self.stores, 'store')} into {self.path}: "
            f"{counted(self.runs, 'run')}, {self.new} of them new"
        ]
        if self.repeated:
            sentences.append(
                f"{counted(self.repeated, 'run')} in more than one of the stores, with "
                "the same results: kept once"
            )
        if self.missing:
            methods = ", ".join(f"{n} of {name}" for name, n in self.missing.items())
            sentences.append(
                f"{counted(sum(self.missing.values()), 'planned run')} in none of the "
                f"stores ({methods}): merge the other shards too, or compare without "
                "--shard and with this --out, which trains the rest"
            )
        return sentences


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
    contents = [_StoreContent.read(store_file(Path(path))) for path in given]
    target = store_file(Path(out))
    there = _StoreContent.read(target) if target.exists() else _StoreContent(target)
    runs = _united_runs([there, *contents])
    refuse_other_sweeps(contents, runs)
    groups = list(_united_groups([there, *contents]))
    with _MergedStore(target) as merged:
        new = merged.take([there, *contents], groups, runs)
    planned = {key for content in [there, *contents] for key in content.planned}
    counts = Counter(key for content in contents for key in content.runs)
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


@dataclass(frozen=True)
class _StoreContent:
    """Everything that a store holds.

    Attributes:
        path: Its file.
        groups: Its groups, in the order they were cut.
        runs: Its finished runs.
        names: The graph that has its tables under each name.
    """

    path: Path
    groups: list[Group] = field(default_factory=list)
    runs: dict[RunKey, Run] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a store; every row is checked.

        Raises:
            UserError: There is no such store, or it is damaged.
        """
        with Store(path, read_only=True) as store:
            runs = {RunKey.of(run): run for run in store.runs()}
            return cls(path, store.all_groups(), runs, store.all_names())

    @property
    def planned(self) -> set[RunKey]:
        """Its finished runs, and those that its groups hold."""
        return set(self.runs).union(*(group.keys for group in self.groups))


class _MergedStore(Store):
    """A store that takes the groups, runs and names of others."""

    def take(
        self,
        contents: Sequence[_StoreContent],
        groups: Sequence[Group],
        runs: Mapping[RunKey, Run],
    ) -> int:
        """Write everything in one transaction: all of it, or nothing.

        Args:
            contents: What the stores hold; the first is what this store holds.
            groups: The groups of all of them, in the order they were cut.
            runs: The runs of all of them.

        Returns:
            How many runs were new.

        Raises:
            UserError: Another process has changed the store since it was read.
        """
        there = contents[0]
        with self._transaction():
            ((rows,),) = self._read("SELECT COUNT(*) FROM runs")
            if self.all_groups() != there.groups or rows != len(there.runs):
                raise UserError(
                    f"another process has changed {self.path} during the merge; wait "
                    "until it ends, and merge again"
                )
            numbers = self._put_groups(groups)
            for content in contents:
                # A name that is there stays.
                self._insert("names", map(with_checksum, content.names.items()))
            numbered = (replace(runs[k], group_id=numbers.get(k)) for k in runs)
            return self._insert("runs", map(encode, numbered))

    def _put_groups(self, groups: Sequence[Group]) -> dict[RunKey, int]:
        """Write groups that are not there, and drop planned ones that are not given.

        Returns:
            The number of the group that each run belongs to.
        """
        wanted = {replace(group, id=0) for group in groups}
        there = {replace(group, id=0): group.id for group in self.all_groups()}
        for group, number in there.items():
            if group not in wanted:
                self._connection.execute("DELETE FROM groups WHERE id = ?", (number,))
        new = [group for group in groups if replace(group, id=0) not in there]
        rows = (group_row(g.study, g.config_hashes, g.seeds) for g in new)
        self._insert("groups", rows)
        return {
            key: group.id for group in reversed(self.all_groups()) for key in group.keys
        }


def _united_runs(contents: Sequence[_StoreContent]) -> dict[RunKey, Run]:
    """Every run once, from the first store that has it.

    Raises:
        UserError: Two stores hold different results of one run.
    """
    runs: dict[RunKey, Run] = {}
    paths: dict[RunKey, Path] = {}
    for content in contents:
        for key, run in content.runs.items():
            if key not in runs:
                runs[key], paths[key] = run, content.path
            elif _result(run) != _result(runs[key]):
                raise _conflict(runs[key], paths[key], run, content.path)
    return runs


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


def _united_groups(contents: Sequence[_StoreContent]) -> Iterator[Group]:
    """The groups of all stores, each once, in the order they were cut.

    A group that was only planned is left out where another store has trained some of
    its runs in other groups: it did not fit memory there.
    """
    trained: list[Group] = []
    planned: list[Group] = []
    for content in contents:
        for group in content.groups:
            is_trained = not group.keys.isdisjoint(content.runs)
            (trained if is_trained else planned).append(group)
    taken = {key for group in trained for key in group.keys}
    groups: dict[Group, Group] = {}
    for group in sorted(
        [*trained, *(g for g in planned if g.keys.isdisjoint(taken))],
        key=lambda group: group.id,
    ):
        groups.setdefault(replace(group, id=0), group)
    yield from groups.values()


def refuse_other_sweeps(
    contents: Sequence[_StoreContent], finished: Mapping[RunKey, Run]
) -> None:
    """Refuse stores that cannot be shards of one sweep.

    Every shard plans the whole sweep and trains a part of it. Where a planned run is in
    none of the stores, although another one has the same method on the same graph, that
    one must have planned the run too. Stores without missing runs may hold anything.

    Args:
        contents: The stores.
        finished: The runs that are in any of them.

    Raises:
        UserError: Two stores planned different runs, and some are missing.
    """
    plans = [(content.path, content.planned) for content in contents]
    for path, plan in plans:
        missing = sorted(plan - finished.keys())
        for other_path, other_plan in plans:
            others = {(key.fingerprint, key.method) for key in other_plan}
            for run in missing:
                if run in other_plan or (run.fingerprint, run.method) not in others:
                    continue
                raise UserError(
                    f"{path} and {other_path} are not shards of one comparison: "
                    f"{_difference(run, plan, other_plan)}; run the shards with the "
                    "same arguments"
                )


def _difference(run: RunKey, plan: set[RunKey], other_plan: set[RunKey]) -> str:
    """By what two plans differ, as seen from a run that only the first one has."""
    others = [
        key
        for key in other_plan
        if (key.fingerprint, key.method) == (run.fingerprint, run.method)
    ]
    if run.device not in {key.device for key in others}:
        return f"one is for {run.device}, the other for {others[0].device}"
    if run.numerics not in {key.numerics for key in others}:
        return "they were trained by versions of tempergat that round differently"
    if run.config_hash not in {key.config_hash for key in others}:
        return f"they have other settings for {run.method}"
    counts = sorted(
        len({key.seed for key in keys if key.method == run.method})
        for keys in (plan, other_plan)
    )
    return f"one has {counts[0]} seeds of {run.method}, the other {counts[1]}"
