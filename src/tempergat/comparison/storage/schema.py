"""The tables of a store."""

import hashlib
import sqlite3
from collections.abc import Sequence
from typing import Any

from tempergat.training import canonical_json

SCHEMA_VERSION = 3
# Distinguishes these files from other SQLite files: "tgat" in ASCII.
APPLICATION_ID = 0x74676174

RUN_COLUMNS = (
    "fingerprint",
    "method",
    "config_hash",
    "seed",
    "numerics",
    "device",
    "dataset",
    "status",
    "group_id",
    "record",
    "checksum",
)
GROUP_COLUMNS = (
    "id",
    "fingerprint",
    "method",
    "numerics",
    "device",
    "config_hashes",
    "seeds",
    "checksum",
)
NAME_COLUMNS = ("name", "graph", "checksum")

_TABLES = (
    """CREATE TABLE groups (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    method TEXT NOT NULL,
    numerics INTEGER NOT NULL,
    device TEXT NOT NULL,
    config_hashes TEXT NOT NULL,
    seeds TEXT NOT NULL,
    checksum TEXT NOT NULL
)""",
    """CREATE INDEX groups_of_a_study
    ON groups (fingerprint, method, numerics, device)""",
    """CREATE TABLE runs (
    fingerprint TEXT NOT NULL,
    method TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    seed INTEGER NOT NULL,
    numerics INTEGER NOT NULL,
    device TEXT NOT NULL,
    dataset TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    group_id INTEGER REFERENCES groups (id),
    record TEXT NOT NULL,
    checksum TEXT NOT NULL,
    PRIMARY KEY (fingerprint, method, config_hash, seed, numerics, device)
) WITHOUT ROWID""",
    """CREATE TABLE names (
    name TEXT PRIMARY KEY,
    graph TEXT NOT NULL,
    checksum TEXT NOT NULL
) WITHOUT ROWID""",
)


# Without the indexes that SQLite makes by itself.
_STATEMENTS = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new store, or check those that are there.

    To be called inside a transaction.

    Raises:
        ValueError: The tables are not those of their version.
    """
    # Another process may have made them while this one waited for the transaction.
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    statements = [sql for (sql,) in connection.execute(_STATEMENTS)]
    if version == SCHEMA_VERSION:
        if sorted(statements) != sorted(_TABLES):
            raise ValueError("its tables were altered")
        return
    if version or statements:
        raise ValueError(f"its version is {version}, which does not fit its tables")
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def insert_statement(table: str, columns: tuple[str, ...]) -> str:
    """SQL that inserts a row into a table, a question mark per column."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


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
