"""Every finished run as one row of an SQLite file.

A run is identified by what it is (the data's fingerprint, method, seed and the hash of
its configuration), so a row can be written once only. Groups of seeds that train
together are cut once and kept, because a seed's last bits depend on its company.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from tempergat.base.errors import UserError
from tempergat.study.engine.encoding import decode, encode
from tempergat.training import Run
from tempergat.training.hardware.grouping import even_groups
from tempergat.training.record import canonical_json

SCHEMA_VERSION = 1
# Tells our files from other SQLite files: "tgat" in ASCII.
APPLICATION_ID = 0x74676174
BUSY_TIMEOUT_S = 60.0
_LONGEST_REASON = 80

_SCHEMA = """
CREATE TABLE groups (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    method TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    seeds TEXT NOT NULL
);
CREATE INDEX groups_of_a_study ON groups (fingerprint, method, config_hash);
CREATE TABLE runs (
    fingerprint TEXT NOT NULL,
    method TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    seed INTEGER NOT NULL,
    dataset TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    group_id INTEGER REFERENCES groups (id),
    record TEXT NOT NULL,
    checksum TEXT NOT NULL,
    PRIMARY KEY (fingerprint, method, config_hash, seed)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Group:
    """Seeds of one method on one dataset that train together."""

    id: int
    fingerprint: str
    method: str
    config_hash: str
    seeds: tuple[int, ...]


class Store:
    """Finished runs in an SQLite file; several processes may share one.

    Every commit is on the disk before it returns. Use it as a context manager, or
    call `close`.

    Args:
        path: The file; it and its folder are made when missing.

    Raises:
        UserError: The file is damaged, is not a store, comes from a newer version, or
            its folder cannot be written to.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot make the folder {self.path.parent} for the store: "
                f"{error.strerror}; choose another with --out"
            ) from error
        with self._user_errors():
            # Autocommit: transactions are opened and closed by `_transaction` alone.
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None
            )
        try:
            with self._user_errors():
                self._open()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def groups(
        self,
        fingerprint: str,
        method: str,
        config_hash: str,
        seeds: Sequence[int],
        size: int,
    ) -> list[Group]:
        """The groups that hold some seeds of one method, cut now where they are new.

        Seeds that were cut before keep their group whatever `size` says now; only
        seeds seen for the first time are cut, in the order given. A group may hold
        seeds beyond those asked for, and is trained whole.

        Args:
            fingerprint: Of the dataset with its splits.
            method: Name of the method.
            config_hash: Hash of the configuration.
            seeds: The seeds wanted, each once.
            size: Most seeds in a new group.

        Returns:
            The groups in the order they were cut.
        """
        if size < 1:
            raise ValueError(f"a group holds at least one seed, not {size}")
        if len(set(seeds)) != len(seeds):
            raise ValueError("a seed is asked for twice")
        study = (fingerprint, method, config_hash)
        with self._user_errors(), self._transaction():
            known = self._read_groups(study)
            cut = {seed for group in known for seed in group.seeds}
            new = [seed for seed in seeds if seed not in cut]
            self._cut(study, new, size)
            known = self._read_groups(study)
        return [group for group in known if not set(seeds).isdisjoint(group.seeds)]

    def pending(self, groups: Iterable[Group]) -> list[Group]:
        """Those groups of which some run is not in the store."""
        return [
            group
            for group in groups
            if not set(group.seeds)
            <= self.finished_seeds(group.fingerprint, group.method, group.config_hash)
        ]

    def finished_seeds(
        self, fingerprint: str, method: str, config_hash: str
    ) -> set[int]:
        """Seeds of one method that are in the store, failed runs included."""
        with self._user_errors():
            rows = self._connection.execute(
                "SELECT seed FROM runs "
                "WHERE fingerprint = ? AND method = ? AND config_hash = ?",
                (fingerprint, method, config_hash),
            ).fetchall()
        return {seed for (seed,) in rows}

    def has(self, group: Group) -> bool:
        """Whether a group is still as it was read; another process may have cut it."""
        with self._user_errors():
            return self._has(group)

    def put_group(self, runs: Sequence[Run]) -> int:
        """Write runs in one transaction: all of them are kept, or none.

        A run already in the store is left as it is.

        Returns:
            How many were new.
        """
        with self._user_errors(), self._transaction():
            return self._insert(runs)

    def put_part(self, group: Group, runs: Sequence[Run]) -> list[Group]:
        """Write the runs of a group's first seeds, where all do not fit memory at once.

        In the same transaction the group is cut down to these seeds, and the others
        into further groups of that size.

        Args:
            group: The group.
            runs: Of its first seeds.

        Returns:
            The groups that hold its seeds now.
        """
        study = (group.fingerprint, group.method, group.config_hash)
        size = len(runs)
        with self._user_errors(), self._transaction():
            self._insert(runs)
            # Where there are no locks, another process may have been faster.
            if self._has(group):
                self._connection.execute(
                    "UPDATE groups SET seeds = ? WHERE id = ?",
                    (canonical_json(group.seeds[:size]), group.id),
                )
                self._cut(study, group.seeds[size:], size)
            known = self._read_groups(study)
        return [g for g in known if not set(group.seeds).isdisjoint(g.seeds)]

    def runs(
        self,
        *,
        dataset: str | None = None,
        fingerprint: str | None = None,
        methods: Sequence[str] | None = None,
        config_hashes: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> list[Run]:
        """Stored runs that match everything given, in an order of their own.

        The order (dataset, fingerprint, method, configuration, seed) does not depend
        on when runs were written.
        """
        wanted: list[tuple[str, Sequence[str | int]]] = [
            (column, values)
            for column, values in (
                ("dataset", None if dataset is None else [dataset]),
                ("fingerprint", None if fingerprint is None else [fingerprint]),
                ("method", methods),
                ("config_hash", config_hashes),
                ("seed", seeds),
            )
            if values is not None
        ]
        # json_each takes a list of any length; a row of question marks would not.
        conditions = " AND ".join(
            f"{column} IN (SELECT value FROM json_each(?))" for column, _ in wanted
        )
        with self._user_errors():
            rows = self._connection.execute(
                "SELECT fingerprint, method, config_hash, seed, dataset, status, "
                "group_id, record, checksum FROM runs "
                + (f"WHERE {conditions} " if conditions else "")
                + "ORDER BY dataset, fingerprint, method, config_hash, seed",
                [canonical_json(list(values)) for _, values in wanted],
            ).fetchall()
        return [self._run(row) for row in rows]

    def _open(self) -> None:
        # One transaction, so that another process making the tables is seen before
        # or after, not in between.
        with self._transaction("DEFERRED"):
            application, version, tables = (
                self._connection.execute(query).fetchone()[0]
                for query in (
                    "PRAGMA application_id",
                    "PRAGMA user_version",
                    "SELECT count(*) FROM sqlite_master",
                )
            )
        if tables and application != APPLICATION_ID:
            raise UserError(
                f"{self.path} is an SQLite file of another program; choose another "
                "place for the store with --out"
            )
        if version > SCHEMA_VERSION:
            raise UserError(
                f"{self.path} was written by a newer tempergat (store version "
                f"{version}, this one reads up to {SCHEMA_VERSION}); upgrade tempergat "
                "or choose another folder with --out"
            )
        found = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise UserError(self._damaged(found))
        if version and tables < 3:
            raise UserError(self._damaged("a table is missing"))
        mode = self._write_ahead_log()
        if mode != "wal":
            raise UserError(
                f"{self.path} is on a file system without shared memory (journal mode "
                f"{mode}); choose a local folder with --out"
            )
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        with self._transaction():
            # Another process may have made the tables while this one waited.
            made = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if not made:
                for statement in _SCHEMA.split(";"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _write_ahead_log(self) -> str:
        # SQLite does not wait its busy timeout out when two processes switch at once.
        give_up = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                query = self._connection.execute("PRAGMA journal_mode = WAL")
                return str(query.fetchone()[0])
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY":
                    raise
                if time.monotonic() > give_up:
                    raise
            time.sleep(0.005)

    @contextmanager
    def _transaction(
        self, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE"
    ) -> Iterator[None]:
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _user_errors(self) -> Iterator[None]:
        """Turn SQLite's complaints about the file into lines a user can act on."""
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except sqlite3.OperationalError as error:
            # Text that is not UTF-8 is reported without a name.
            name = getattr(error, "sqlite_errorname", "")
            if not name:
                raise UserError(self._damaged(str(error))) from error
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                remedy = (
                    f"another process has held it for {BUSY_TIMEOUT_S:.0f} s; wait for "
                    "it to end"
                )
            elif name.startswith(
                ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
            ):
                remedy = "make its folder writable or choose another with --out"
            elif name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
                remedy = "check the disk and its free space, then run again"
            else:
                raise
            raise UserError(
                f"cannot use the store {self.path}: {error}; {remedy}"
            ) from (error)
        except sqlite3.DatabaseError as error:
            raise UserError(self._damaged(str(error))) from error

    def _damaged(self, detail: str) -> str:
        # Some of SQLite's complaints quote the damaged text.
        reason = detail.splitlines()[0][:_LONGEST_REASON]
        return (
            f"the store {self.path} is damaged ({reason}); restore it from a copy, or "
            "move it away and run again"
        )

    def _has(self, group: Group) -> bool:
        study = (group.fingerprint, group.method, group.config_hash)
        return group in self._read_groups(study)

    def _cut(
        self, study: tuple[str, str, str], seeds: Sequence[int], size: int
    ) -> None:
        for group in even_groups(seeds, size):
            self._connection.execute(
                "INSERT INTO groups (fingerprint, method, config_hash, seeds) "
                "VALUES (?, ?, ?, ?)",
                (*study, canonical_json(group)),
            )

    def _insert(self, runs: Sequence[Run]) -> int:
        before = self._connection.total_changes
        self._connection.executemany(
            "INSERT INTO runs (fingerprint, method, config_hash, seed, dataset, "
            "status, group_id, record, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (fingerprint, method, config_hash, seed) DO NOTHING",
            [encode(run) for run in runs],
        )
        return self._connection.total_changes - before

    def _read_groups(self, study: tuple[str, str, str]) -> list[Group]:
        rows = self._connection.execute(
            "SELECT id, seeds FROM groups "
            "WHERE fingerprint = ? AND method = ? AND config_hash = ? ORDER BY id",
            study,
        ).fetchall()
        return [Group(id_, *study, tuple(json.loads(seeds))) for id_, seeds in rows]

    def _run(self, row: tuple[Any, ...]) -> Run:
        try:
            return decode(row)
        except ValueError as error:
            raise UserError(self._damaged(str(error))) from error
