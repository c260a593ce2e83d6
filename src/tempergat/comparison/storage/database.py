"""An SQLite file that holds a store: its tables, opened safely, errors in words."""

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from tempergat.base import UserError
from tempergat.training import canonical_json

BUSY_TIMEOUT_S = 60.0
_LONGEST_REASON = 80
SCHEMA_VERSION = 3
# Distinguishes these files from other SQLite files: "tgat" in ASCII.
_APPLICATION_ID = 0x74676174

_TEXT = "TEXT NOT NULL"
_NUMBER = "INTEGER NOT NULL"
# The columns of each table and their types. The last is a checksum of the others.
TABLES = {
    "groups": {
        "id": "INTEGER PRIMARY KEY",
        "fingerprint": _TEXT,
        "method": _TEXT,
        "numerics": _NUMBER,
        "device": _TEXT,
        "config_hashes": _TEXT,
        "seeds": _TEXT,
        "checksum": _TEXT,
    },
    "runs": {
        "fingerprint": _TEXT,
        "method": _TEXT,
        "config_hash": _TEXT,
        "seed": _NUMBER,
        "numerics": _NUMBER,
        "device": _TEXT,
        "dataset": _TEXT,
        "status": "TEXT NOT NULL CHECK (status IN ('done', 'failed'))",
        "group_id": "INTEGER REFERENCES groups (id)",
        "record": _TEXT,
        "checksum": _TEXT,
    },
    "names": {"name": "TEXT PRIMARY KEY", "graph": _TEXT, "checksum": _TEXT},
}


def _table(name: str, *rest: str) -> str:
    """SQL that makes a table; a store's text of it never changes."""
    columns = (f"{column} {kind}" for column, kind in TABLES[name].items())
    return f"CREATE TABLE {name} (\n    " + ",\n    ".join([*columns, *rest]) + "\n)"


_KEY = "PRIMARY KEY (fingerprint, method, config_hash, seed, numerics, device)"
_STATEMENTS = (
    _table("groups"),
    """CREATE INDEX groups_of_a_study
    ON groups (fingerprint, method, numerics, device)""",
    f"{_table('runs', _KEY)} WITHOUT ROWID",
    f"{_table('names')} WITHOUT ROWID",
)


class Database:
    """A connection to the file of a store.

    Args:
        path: The file; it and its folder are made when missing.
        read_only: Whether to read a copy of an existing file in memory; the file is
            then not changed.

    Raises:
        UserError: The file is damaged, is not a store, comes from another version, or
            its folder cannot be written to.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        with self._user_errors():
            self._connection = self._copied() if read_only else self._connected()
            try:
                self._open(read_only)
            except BaseException:
                self.close()
                raise

    def _connected(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot make the folder {self.path.parent} for the store: "
                f"{error.strerror}; choose another with --out (out= in Python)"
            ) from error
        if self.path.is_symlink():
            # SQLite would make or change the file that it leads to.
            raise UserError(
                f"the store {self.path} is a link to {os.readlink(self.path)}; remove "
                "it, or choose another folder with --out (out= in Python)"
            )
        # Autocommit: transactions are opened and closed by `_transaction` alone.
        return sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None)

    def _copied(self) -> sqlite3.Connection:
        """A copy in memory of a file that may be on a read-only disk."""
        if not self.path.is_file():
            raise UserError(f"there is no store {self.path}; check its path")
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        # Without a log beside it, the file can be read where SQLite may not make one.
        logged = self.path.with_name(f"{self.path.name}-wal").exists()
        if not logged and not os.access(self.path.parent, os.W_OK):
            address += "&immutable=1"
        copy = sqlite3.connect(":memory:", isolation_level=None)
        source = sqlite3.connect(address, timeout=BUSY_TIMEOUT_S, uri=True)
        try:
            source.backup(copy)
        except BaseException:
            copy.close()
            raise
        finally:
            source.close()
        return copy

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _open(self, in_memory: bool) -> None:
        # One transaction, so that another process making the tables is seen before
        # or after, not in between.
        with self._transaction("DEFERRED"):
            ((application,),) = self._read("PRAGMA application_id")
            ((version,),) = self._read("PRAGMA user_version")
            ((tables,),) = self._read("SELECT count(*) FROM sqlite_master")
        if tables and application != _APPLICATION_ID:
            raise UserError(
                f"{self.path} is an SQLite file of another program; choose another "
                "place for the store with --out (out= in Python)"
            )
        if 0 < version != SCHEMA_VERSION:
            age, reads, remedy = "an older", "reads", "move it away,"
            if version > SCHEMA_VERSION:
                age, reads, remedy = "a newer", "reads up to", "upgrade tempergat"
            raise UserError(
                f"{self.path} was written by {age} tempergat (store version {version}, "
                f"this one {reads} {SCHEMA_VERSION}); {remedy} or choose another "
                "folder with --out (out= in Python)"
            )
        ((verdict,),) = self._read("PRAGMA integrity_check(1)")
        if verdict != "ok":
            raise UserError(self._damaged(verdict))
        mode = "wal" if in_memory else self._write_ahead_log()
        if mode != "wal":
            raise UserError(
                f"{self.path} is on a file system without shared memory (journal mode "
                f"{mode}); choose a local folder with --out (out= in Python)"
            )
        self._connection.execute("PRAGMA synchronous = FULL")
        with self._transaction(), self._altered_rows():
            self._create_tables()
        self._connection.execute("PRAGMA foreign_keys = ON")

    def _create_tables(self) -> None:
        """Make the tables of a new store, or check those that are there."""
        # Another process may have made them while this one waited for the transaction.
        ((version,),) = self._read("PRAGMA user_version")
        # Without the indexes that SQLite makes by itself.
        rows = self._read("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        statements = [sql for (sql,) in rows]
        if version == SCHEMA_VERSION:
            if sorted(statements) != sorted(_STATEMENTS):
                raise ValueError("its tables were altered")
            return
        if version or statements:
            raise ValueError(f"its version is {version}, which does not fit its tables")
        for statement in _STATEMENTS:
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _write_ahead_log(self) -> str:
        # SQLite ignores its busy timeout when two processes switch the mode at once.
        give_up = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                query = self._connection.execute("PRAGMA journal_mode = WAL")
                return str(query.fetchone()[0])
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorname == "SQLITE_BUSY"
                if not is_busy or time.monotonic() > give_up:
                    raise
            time.sleep(0.005)

    @contextmanager
    def _transaction(
        self, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE"
    ) -> Iterator[None]:
        with self._user_errors():
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _read(self, query: str, values: Sequence[str | int] = ()) -> list[Any]:
        """The rows that a query selects."""
        with self._user_errors():
            return self._connection.execute(query, values).fetchall()

    def _select(
        self, table: str, rest: str = "", values: Sequence[str | int] = ()
    ) -> list[Any]:
        """All columns of rows of a table; `rest` is the end of the query."""
        return self._read(
            f"SELECT {', '.join(TABLES[table])} FROM {table} {rest}", values
        )

    def _insert(self, table: str, rows: Iterable[Sequence[Any]]) -> int:
        """Write rows, but for those that are there; return how many were new."""
        names = ", ".join(TABLES[table])
        marks = ", ".join("?" * len(TABLES[table]))
        before = self._connection.total_changes
        self._connection.executemany(
            f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING",
            rows,
        )
        return self._connection.total_changes - before

    @contextmanager
    def _user_errors(self) -> Iterator[None]:
        """Turn SQLite's errors about the file into messages a user can act on."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except UnicodeDecodeError as error:
            raise UserError(self._damaged("a text is not UTF-8")) from error
        except sqlite3.OperationalError as error:
            # Text that is not UTF-8 is reported without a name.
            name = getattr(error, "sqlite_errorname", "")
            if not name:
                raise UserError(self._damaged(str(error))) from error
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                held = f"another process has held it for {BUSY_TIMEOUT_S:.0f} s"
                remedy = f"{held}; wait for it to end"
            elif name.startswith(
                ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
            ):
                other = "choose another with --out (out= in Python)"
                remedy = f"make its folder writable or {other}"
            elif name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
                remedy = "check the disk and its free space, then run again"
            else:
                # The tables have other columns than the ones that were made.
                raise UserError(self._damaged(str(error))) from error
            message = f"cannot use the store {self.path}: {error}; {remedy}"
            raise UserError(message) from error
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
                raise UserError(self._not_a_database(str(error))) from error
            raise UserError(self._damaged(str(error))) from error

    @contextmanager
    def _altered_rows(self) -> Iterator[None]:
        """Turn what is wrong with the content of rows into a message.

        Raises:
            UserError: A row is not what was written.
        """
        try:
            yield
        except (ValueError, RecursionError) as error:
            raise UserError(self._damaged(str(error))) from error

    def _not_a_database(self, detail: str) -> str:
        if self.path.suffix == ".sqlite":
            return (
                f"{self.path} is not a store, or is damaged ({detail}); restore it "
                "from a copy, or move it away and run again"
            )
        return (
            f"{self.path} is not a store of tempergat; name a store.sqlite, or the "
            "folder of a comparison"
        )

    def _damaged(self, detail: str) -> str:
        # Some of SQLite's messages quote the damaged text.
        reason = detail.splitlines()[0][:_LONGEST_REASON]
        return (
            f"the store {self.path} is damaged ({reason}); restore it from a copy, or "
            "move it away and run again"
        )


def checksum(columns: Sequence[Any]) -> str:
    """The checksum of the other columns of a row."""
    return hashlib.sha256(canonical_json(list(columns)).encode()).hexdigest()[:16]


def with_checksum(columns: Sequence[Any]) -> tuple[Any, ...]:
    """A row: its columns, then their checksum."""
    return (*columns, checksum(columns))


def check_row(row: Sequence[Any], which: str) -> None:
    """Compare a row with the checksum in its last column.

    Args:
        row: All columns that the checksum is of, and the checksum.
        which: Which row it is, for the error.

    Raises:
        ValueError: They do not match.
    """
    try:
        matches = checksum(row[:-1]) == row[-1]
    except TypeError:
        # Bytes in the place of text.
        matches = False
    if not matches:
        raise ValueError(f"the row {which} was altered")
