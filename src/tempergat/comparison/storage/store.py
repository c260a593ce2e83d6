"""Every finished run as one row of an SQLite file.

A run is identified by its `RunKey`, so a row is written only once. Runs that train
together form a group. Groups are cut once and stored, because the last bits of a run's
results depend on the others in its group.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from tempergat.base import UserError, counted, file_stem
from tempergat.comparison.storage.database import Database, check_row, with_checksum
from tempergat.comparison.storage.rows import (
    Group,
    Origin,
    RunKey,
    Study,
    decode,
    encode,
    even_groups,
    group_of,
    group_row,
)
from tempergat.training import NUMERICS, Run, canonical_json

STORE_NAME = "store.sqlite"
# Digits of a graph's fingerprint that tell it from another of the same name.
_DIGITS = 6
_OF_A_STUDY = "WHERE fingerprint = ? AND method = ? AND numerics = ? AND device = ? "


class Store(Database):
    """Finished runs in an SQLite file; several processes may share one.

    Every commit is on the disk before it returns. Use it as a context manager, or call
    `close`.

    Args:
        path: The file; it and its folder are made when missing.
        read_only: Whether to read a copy of an existing file in memory; the file is
            then not changed.

    Raises:
        UserError: The file is damaged, is not a store, comes from another version, or
            its folder cannot be written to.
    """

    def groups(
        self,
        fingerprint: str,
        method: str,
        config_hash: str,
        seeds: Sequence[int],
        size: int,
        *,
        device: str = "cpu",
        numerics: int = NUMERICS,
    ) -> list[Group]:
        """The groups that hold some runs of one method; new runs are cut into groups.

        Runs that were cut before stay in their group whatever `size` says now; only
        runs seen for the first time are cut, in the order given. A group may hold
        runs beyond those asked for, and is trained whole. Runs that are in the store
        without a group need none.

        Args:
            fingerprint: Of the dataset with its splits.
            method: Name of the method.
            config_hash: Hash of the configuration.
            seeds: The seeds wanted, each once.
            size: Most runs in a new group.
            device: The device the runs are made on.
            numerics: The numerics they are made with.

        Returns:
            The groups in the order they were cut.
        """
        if size < 1:
            raise ValueError(f"a group holds at least one run, not {size}")
        if len(set(seeds)) != len(seeds):
            raise ValueError("a seed is asked for twice")
        study = (fingerprint, method, numerics, device)
        with self._transaction():
            groups = self._groups_of(study, config_hash)
            cut = {key for group in groups for key in group.keys}
            cut |= self._finished(study)
            keys = (RunKey(*study, config_hash, seed) for seed in seeds)
            new = [key.seed for key in keys if key not in cut]
            self._cut(study, config_hash, new, size)
            groups = self._groups_of(study, config_hash)
        return [g for g in groups if not set(seeds).isdisjoint(g.seeds)]

    def parts_of(self, group: Group) -> list[Group]:
        """The groups that hold a group's runs now.

        That is the group itself, or what another process has cut it into.
        """
        groups = self._groups_of(group.study, group.config_hashes[0])
        if group in groups:
            return [group]
        return [g for g in groups if not g.keys.isdisjoint(group.keys)]

    def pending(self, groups: Iterable[Group]) -> list[Group]:
        """Those groups of which some run is not in the store."""
        finished: dict[Study, set[RunKey]] = {}
        pending = []
        for group in groups:
            if group.study not in finished:
                finished[group.study] = self._finished(group.study)
            if not group.keys <= finished[group.study]:
                pending.append(group)
        return pending

    def put_group(self, runs: Sequence[Run]) -> int:
        """Write runs in one transaction: all of them, or none.

        A run already in the store is left as it is.

        Returns:
            How many were new.
        """
        with self._transaction():
            return self._insert("runs", map(encode, runs))

    def put_part(self, group: Group, runs: Sequence[Run]) -> list[Group]:
        """Write the runs of a group, or a part where the rest does not fit memory.

        In the same transaction the group is reduced to this part, and the others of
        its runs are cut into further groups of that size.

        Args:
            group: The group.
            runs: Those of its first seeds.

        Returns:
            The groups that hold its runs now.
        """
        size = len(runs)
        part, rest = group.seeds[:size], group.seeds[size:]
        with self._transaction():
            self._insert("runs", map(encode, runs))
            # Without file locks, another process may have written first.
            if rest and self.parts_of(group) == [group]:
                (config_hash,) = group.config_hashes
                *_, seeds, signature = group_row(group.study, [config_hash], part)
                self._connection.execute(
                    "UPDATE groups SET seeds = ?, checksum = ? WHERE id = ?",
                    (seeds, signature, group.id),
                )
                self._cut(group.study, config_hash, rest, size)
            return self.parts_of(group)

    def runs(
        self,
        *,
        dataset: str | None = None,
        fingerprint: str | None = None,
        methods: Sequence[str] | None = None,
        config_hashes: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
        origin: Origin | None = None,
    ) -> list[Run]:
        """Stored runs that match everything given, in a fixed order.

        The order (dataset, fingerprint, method, configuration, seed, numerics, device)
        does not depend on when runs were written.
        """
        where, values = _where(
            dataset=None if dataset is None else [dataset],
            fingerprint=None if fingerprint is None else [fingerprint],
            method=methods,
            config_hash=config_hashes,
            seed=seeds,
            device=None if origin is None else [origin.device],
            numerics=None if origin is None else [origin.numerics],
        )
        order = "dataset, fingerprint, method, config_hash, seed, numerics, device"
        rows = self._select("runs", f"{where}ORDER BY {order}", values)
        with self._altered_rows():
            return [decode(row) for row in rows]

    def all_groups(self, study: Study | None = None) -> list[Group]:
        """Every group, or those of one study, in the order they were cut."""
        where = "" if study is None else _OF_A_STUDY
        rows = self._select("groups", f"{where}ORDER BY id", study or ())
        with self._altered_rows():
            return [group_of(row) for row in rows]

    def count_by_origin(
        self,
        fingerprints: Sequence[str],
        config_hashes: Sequence[str] | None,
        seeds: Sequence[int],
        methods: Sequence[str] | None = None,
    ) -> dict[Origin, int]:
        """How many stored runs of these data, settings and seeds each origin has.

        None stands for all settings or all methods.
        """
        where, values = _where(
            fingerprint=fingerprints,
            config_hash=config_hashes,
            seed=seeds,
            method=methods,
        )
        rows = self._read(
            f"SELECT device, numerics, count(*) FROM runs {where}"
            "GROUP BY device, numerics ORDER BY device, numerics",
            values,
        )
        return {Origin(device, numerics): count for device, numerics, count in rows}

    def lacks(self, count: int) -> UserError:
        """The error for runs that were stored but are not found again."""
        runs = counted(count, "run")
        return UserError(self._damaged(f"{runs} cannot be read back"))

    def table_name(
        self, dataset: str, graph: str, fingerprints: Collection[str]
    ) -> str:
        """The name of a graph's tables, the same in every later call.

        The first graph of a name has its tables under that name. Another graph of the
        same name has `-` and six digits of its fingerprint added.

        Args:
            dataset: The name of the graph.
            graph: Fingerprint of the graph without a split.
            fingerprints: Fingerprints of the graph with each of its splits.
        """
        stem = file_stem(dataset)
        with self._transaction():
            owner = self.all_names().get(stem)
            if owner is None and self._is_first(stem, fingerprints):
                self._insert("names", [with_checksum((stem, graph))])
                owner = graph
        return stem if owner == graph else f"{stem}-{graph[:_DIGITS]}"

    def all_names(self) -> dict[str, str]:
        """The fingerprint of the graph that has its tables under each name."""
        rows = self._select("names")
        with self._altered_rows():
            for row in rows:
                check_row(row, f"of the name {row[0]}")
            return {str(name): str(graph) for name, graph, _ in rows}

    def _cut(
        self, study: Study, config_hash: str, seeds: Sequence[int], size: int
    ) -> None:
        parts = even_groups(seeds, size)
        rows = (group_row(study, [config_hash], part) for part in parts)
        self._insert("groups", rows)

    def _groups_of(self, study: Study, config_hash: str) -> list[Group]:
        groups = self.all_groups(study)
        return [group for group in groups if group.config_hashes == (config_hash,)]

    def _finished(self, study: Study) -> set[RunKey]:
        """The keys of stored runs, failed ones included."""
        rows = self._read(f"SELECT config_hash, seed FROM runs {_OF_A_STUDY}", study)
        return {RunKey(*study, config_hash, seed) for config_hash, seed in rows}

    def _is_first(self, stem: str, fingerprints: Collection[str]) -> bool:
        """Whether no other graph of this name has runs from before names were kept."""
        rows = self._read(
            "SELECT dataset, fingerprint FROM runs "
            "GROUP BY dataset, fingerprint ORDER BY min(group_id)"
        )
        same_name = [print_ for dataset, print_ in rows if file_stem(dataset) == stem]
        return not same_name or same_name[0] in fingerprints


def store_file(path: Path) -> Path:
    """The file of a store that is given by its file or by its folder."""
    is_new_folder = not path.exists() and path.suffix != ".sqlite"
    return path / STORE_NAME if path.is_dir() or is_new_folder else path


def _where(**wanted: Sequence[str | int] | None) -> tuple[str, list[str]]:
    """The WHERE clause for columns that have one of the given values, and its values.

    A column whose values are None is left out.
    """
    given = {column: values for column, values in wanted.items() if values is not None}
    if not given:
        return "", []
    # json_each takes a list of any length; a row of question marks would not.
    conditions = " AND ".join(
        f"{column} IN (SELECT value FROM json_each(?))" for column in given
    )
    return f"WHERE {conditions} ", [canonical_json(list(v)) for v in given.values()]
