"""Every finished run as one row of an SQLite file.

A run is identified by the data's fingerprint, its method, its seed, the hash of its
configuration and condition, the device and the numerics, so a row is written only once.
Runs that train together form a group. Groups are cut once and stored, because the last
bits of a run's results depend on the others in its group.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tempergat.base import UserError, counted
from tempergat.comparison.storage.checked_values import distinct, text, whole
from tempergat.comparison.storage.encoding import check_row, decode, encode
from tempergat.comparison.storage.names import Names
from tempergat.comparison.storage.schema import (
    GROUP_COLUMNS,
    RUN_COLUMNS,
    insert_statement,
    sealed,
)
from tempergat.comparison.sweeps.cutting import GroupContent, cut_runs
from tempergat.comparison.sweeps.origin import Origin
from tempergat.training import NUMERICS, Run, canonical_json

# As `Group.study`.
_Study = tuple[str, str, int, str]


@dataclass(frozen=True)
class Group:
    """Runs of one method on one dataset that train together.

    It holds every seed under every configuration. The configurations are those of one
    method under several conditions, and mostly there is only one.
    """

    id: int
    fingerprint: str
    method: str
    config_hashes: tuple[str, ...]
    seeds: tuple[int, ...]
    device: str = "cpu"
    numerics: int = NUMERICS

    @property
    def units(self) -> set[tuple[str, int]]:
        """The configuration hash and seed of each of its runs."""
        return {(key, seed) for key in self.config_hashes for seed in self.seeds}

    @property
    def study(self) -> tuple[str, str, int, str]:
        """Fingerprint, method, numerics and device: what its runs share."""
        return (self.fingerprint, self.method, self.numerics, self.device)


class Store(Names):
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
        config_hashes: str | Sequence[str],
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
            config_hashes: Hash of the configuration, or one hash per condition for
                runs under several conditions that may train together.
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
        hashes = (config_hashes,) if isinstance(config_hashes, str) else config_hashes
        study = (fingerprint, method, numerics, device)
        with self._user_errors(), self._transaction():
            finished = self._finished(study)
            self._drop_other_configurations(study, hashes, finished)
            known = self._read_groups(study)
            cut = finished | {unit for group in known for unit in group.units}
            # Configurations that lack the same seeds can be cut together.
            new: dict[tuple[int, ...], list[str]] = {}
            for key in hashes:
                missing = tuple(seed for seed in seeds if (key, seed) not in cut)
                new.setdefault(missing, []).append(key)
            for missing, keys in new.items():
                self._cut(study, keys, missing, size)
            known = self._read_groups(study)
        return _holding(known, {(key, seed) for key in hashes for seed in seeds})

    def pending(self, groups: Iterable[Group]) -> list[Group]:
        """Those groups of which some run is not in the store."""
        finished: dict[_Study, set[tuple[str, int]]] = {}
        found = []
        for group in groups:
            study = group.study
            if study not in finished:
                with self._user_errors():
                    finished[study] = self._finished(study)
            if not group.units <= finished[study]:
                found.append(group)
        return found

    def has(self, group: Group) -> bool:
        """Whether a group is still as it was read; another process may have cut it."""
        with self._user_errors():
            return self._has(group)

    def put_group(self, runs: Sequence[Run]) -> int:
        """Write runs in one transaction: all of them, or none.

        A run already in the store is left as it is.

        Returns:
            How many were new.
        """
        with self._user_errors(), self._transaction():
            return self._insert(runs)

    def put_part(self, group: Group, runs: Sequence[Run]) -> list[Group]:
        """Write a part of a group, where the whole does not fit memory at once.

        In the same transaction the group is reduced to this part, and the others of
        its runs are cut into further groups of that size.

        Args:
            group: The group.
            runs: Those of its first configurations, or of the first seeds of its
                first configuration.

        Returns:
            The groups that hold its runs now.
        """
        study = group.study
        hashes = len({run.config_hash for run in runs})
        seeds = len({run.seed for run in runs})
        part = replace(
            group,
            config_hashes=group.config_hashes[:hashes],
            seeds=group.seeds[:seeds],
        )
        with self._user_errors(), self._transaction():
            self._insert(runs)
            # Without file locks, another process may have written first.
            if self._has(group):
                self._update(part)
                size = len(runs)
                self._cut(study, part.config_hashes, group.seeds[seeds:], size)
                self._cut(study, group.config_hashes[hashes:], group.seeds, size)
            known = self._read_groups(study)
        return _holding(known, group.units)

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
        with self._user_errors():
            rows = self._connection.execute(
                f"SELECT {', '.join(RUN_COLUMNS)} FROM runs {where}"
                "ORDER BY dataset, fingerprint, method, config_hash, seed, numerics, "
                "device",
                values,
            ).fetchall()
        with self._altered_rows():
            return [decode(row) for row in rows]

    def all_groups(self) -> list[Group]:
        """Every group, trained or only planned, in the order they were cut."""
        with self._user_errors():
            return self._read_groups()

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
        with self._user_errors():
            rows = self._connection.execute(
                f"SELECT device, numerics, count(*) FROM runs {where}"
                "GROUP BY device, numerics ORDER BY device, numerics",
                values,
            ).fetchall()
        return {Origin(device, numerics): count for device, numerics, count in rows}

    def lacks(self, count: int) -> UserError:
        """The error for runs that were stored but are not found again."""
        runs = counted(count, "run")
        return UserError(self._damaged(f"{runs} cannot be read back"))

    def altered_group(self, group: Group) -> UserError:
        """The error for a group that holds runs nobody asked to train together."""
        return UserError(
            self._damaged(f"group {group.id} of {group.method} was altered")
        )

    def _has(self, group: Group) -> bool:
        return group in self._read_groups(group.study)

    def _cut(
        self, study: _Study, hashes: Sequence[str], seeds: Sequence[int], size: int
    ) -> None:
        """Cut all runs of these configurations and seeds into groups of some size."""
        self._add_groups(study, cut_runs(hashes, seeds, size))

    def _add_groups(self, study: _Study, contents: Iterable[GroupContent]) -> None:
        self._connection.executemany(
            insert_statement("groups", GROUP_COLUMNS),
            [(None, *_sealed_group(study, keys, seeds)) for keys, seeds in contents],
        )

    def _update(self, group: Group) -> None:
        """Write what a group holds now."""
        *_, hashes, seeds, signature = _sealed_group(
            group.study, group.config_hashes, group.seeds
        )
        self._connection.execute(
            "UPDATE groups SET config_hashes = ?, seeds = ?, checksum = ? WHERE id = ?",
            (hashes, seeds, signature, group.id),
        )

    def _drop_other_configurations(
        self, study: _Study, hashes: Sequence[str], finished: set[tuple[str, int]]
    ) -> None:
        """Reduce untrained groups that hold one of these configurations to them.

        The caller cannot train others: it does not know what they are.
        """
        for group in self._read_groups(study):
            asked = [key for key in group.config_hashes if key in hashes]
            if asked in ([], list(group.config_hashes)):
                continue
            if group.units.isdisjoint(finished):
                self._update(replace(group, config_hashes=tuple(asked)))

    def _finished(self, study: _Study) -> set[tuple[str, int]]:
        """Configuration hash and seed of stored runs, failed ones included."""
        rows = self._connection.execute(
            "SELECT config_hash, seed FROM runs "
            "WHERE fingerprint = ? AND method = ? AND numerics = ? AND device = ?",
            study,
        )
        return set(rows)

    def _insert(self, runs: Sequence[Run]) -> int:
        before = self._connection.total_changes
        self._connection.executemany(
            f"{insert_statement('runs', RUN_COLUMNS)} ON CONFLICT DO NOTHING",
            [encode(run) for run in runs],
        )
        return self._connection.total_changes - before

    def _read_groups(self, study: _Study | None = None) -> list[Group]:
        where = (
            "WHERE fingerprint = ? AND method = ? AND numerics = ? AND device = ? "
            if study is not None
            else ""
        )
        rows = self._connection.execute(
            f"SELECT {', '.join(GROUP_COLUMNS)} FROM groups {where}ORDER BY id",
            study or (),
        ).fetchall()
        with self._altered_rows():
            return [_group(row) for row in rows]


def _group(row: Sequence[Any]) -> Group:
    """The group of a row of the table.

    Raises:
        ValueError: The row does not match its checksum, or holds no group.
    """
    id_, fingerprint, method, numerics, device, hashes, seeds, _ = row
    check_row(row[1:], f"of group {id_}")
    keys, numbers = distinct(hashes, text), distinct(seeds, whole)
    return Group(id_, fingerprint, method, keys, numbers, device, numerics)


def _sealed_group(
    study: _Study, hashes: Sequence[str], seeds: Sequence[int]
) -> tuple[Any, ...]:
    """The columns of a group's row but for its number."""
    return sealed((*study, canonical_json(list(hashes)), canonical_json(list(seeds))))


def _holding(groups: Iterable[Group], units: set[tuple[str, int]]) -> list[Group]:
    """Those groups that hold one of these runs."""
    return [group for group in groups if not units.isdisjoint(group.units)]


def _where(**wanted: Sequence[str | int] | None) -> tuple[str, list[str]]:
    """The WHERE clause for columns that have one of the given values, and its values.

    A column whose values are None is left out.
    """
    given = {column: found for column, found in wanted.items() if found is not None}
    if not given:
        return "", []
    # json_each takes a list of any length; a row of question marks would not.
    conditions = " AND ".join(
        f"{column} IN (SELECT value FROM json_each(?))" for column in given
    )
    return f"WHERE {conditions} ", [canonical_json(list(v)) for v in given.values()]
