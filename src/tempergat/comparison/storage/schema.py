"""The tables of a store."""

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tempergat.training import canonical_json

SCHEMA_VERSION = 3
# Distinguishes these files from other SQLite files: "tgat" in ASCII.
APPLICATION_ID = 0x74676174

_TEXT = "TEXT NOT NULL"
_NUMBER = "INTEGER NOT NULL"
# The columns of each table and their types. The last is a checksum of the others.
RUN_COLUMNS = {
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
}
GROUP_COLUMNS = {
    "id": "INTEGER PRIMARY KEY",
    "fingerprint": _TEXT,
    "method": _TEXT,
    "numerics": _NUMBER,
    "device": _TEXT,
    "config_hashes": _TEXT,
    "seeds": _TEXT,
    "checksum": _TEXT,
}
NAME_COLUMNS = {"name": "TEXT PRIMARY KEY", "graph": _TEXT, "checksum": _TEXT}


def _table(name: str, columns: Mapping[str, str], *rest: str) -> str:
    """SQL that makes a table; a store's text of it never changes."""
    lines = [*(f"{column} {kind}" for column, kind in columns.items()), *rest]
    return f"CREATE TABLE {name} (\n    " + ",\n    ".join(lines) + "\n)"


_KEY = "PRIMARY KEY (fingerprint, method, config_hash, seed, numerics, device)"
_STATEMENTS = (
    _table("groups", GROUP_COLUMNS),
    """CREATE INDEX groups_of_a_study
    ON groups (fingerprint, method, numerics, device)""",
    f"{_table('runs', RUN_COLUMNS, _KEY)} WITHOUT ROWID",
    f"{_table('names', NAME_COLUMNS)} WITHOUT ROWID",
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new store, or check those that are there.

    To be called inside a transaction.

    Raises:
        ValueError: The tables are not those of their version.
    """
    # Another process may have made them while this one waited for the transaction.
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    # Without the indexes that SQLite makes by itself.
    query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
    statements = [sql for (sql,) in connection.execute(query)]
    if version == SCHEMA_VERSION:
        if sorted(statements) != sorted(_STATEMENTS):
            raise ValueError("its tables were altered")
        return
    if version or statements:
        raise ValueError(f"its version is {version}, which does not fit its tables")
    for statement in _STATEMENTS:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def insert_statement(table: str, columns: Iterable[str]) -> str:
    """SQL that inserts a row into a table, a question mark per column."""
    names = list(columns)
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"


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
