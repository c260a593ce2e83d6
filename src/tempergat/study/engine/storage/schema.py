"""The tables of a store, and how those of older versions are brought up to date.

Schema 1 is that of version 0.1.0. Schema 2 adds the device and the numerics to the
identity of a run, and lets a group hold several configurations. Schema 3 adds checksums
to groups, and the names under which graphs have their tables.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tempergat.study.engine.storage.encoding import (
    checksum,
    decode,
    decode_schema_1,
    encode,
)
from tempergat.training import Run, canonical_json

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


def create_or_migrate(connection: sqlite3.Connection) -> None:
    """Make the tables, or bring those of an older schema up to date.

    To be called inside a transaction with foreign keys off.

    Raises:
        ValueError: A row does not match its checksum, or the tables are not those of
            their version.
    """
    # Another process may have done it while this one waited for the transaction.
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    found = [sql for (sql,) in connection.execute(_STATEMENTS)]
    if version == SCHEMA_VERSION:
        if sorted(found) != sorted(_TABLES):
            raise ValueError("its tables were altered")
        return
    if version == 0 and not found:
        _create_tables(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    elif version == 1:
        _migrate_schema_1(connection)
    elif version == 2:
        _migrate_schema_2(connection)
    else:
        raise ValueError(f"its version is {version}, which does not fit its tables")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def sealed(fields: Sequence[Any]) -> tuple[Any, ...]:
    """A row of groups or names: its fields, then their checksum."""
    return (*fields, checksum(fields))


def insert_statement(table: str, columns: tuple[str, ...]) -> str:
    """SQL that inserts a row into a table, a question mark per column."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)


def _migrate_schema_1(connection: sqlite3.Connection) -> None:
    runs = [
        decode_schema_1(row)
        for row in connection.execute(
            "SELECT fingerprint, method, config_hash, seed, dataset, status, group_id, "
            "record, checksum FROM runs"
        )
    ]
    device_of_group = {run.group_id: run.device for run in runs}
    # A group that was planned but not trained gets the device that trained most runs.
    # Without any run in the store, the groups may be planned again.
    usual = Counter(run.device for run in runs).most_common(1)
    groups = [
        (
            id_,
            fingerprint,
            method,
            1,
            device_of_group.get(id_) or usual[0][0],
            canonical_json([config_hash]),
            canonical_json(json.loads(seeds)),
        )
        for id_, fingerprint, method, config_hash, seeds in connection.execute(
            "SELECT id, fingerprint, method, config_hash, seeds FROM groups ORDER BY id"
        )
        if id_ in device_of_group or usual
    ]
    _replace_tables(connection, groups, runs)


def _migrate_schema_2(connection: sqlite3.Connection) -> None:
    names = [row[1] for row in connection.execute("PRAGMA table_info(groups)")]
    if names != list(GROUP_COLUMNS[:-1]):
        raise ValueError("its version is 2, which does not fit its tables")
    runs = [
        decode(row)
        for row in connection.execute(f"SELECT {', '.join(RUN_COLUMNS)} FROM runs")
    ]
    groups = connection.execute(
        f"SELECT {', '.join(names)} FROM groups ORDER BY id"
    ).fetchall()
    _replace_tables(connection, groups, runs)


def _replace_tables(
    connection: sqlite3.Connection,
    groups: Sequence[Sequence[Any]],
    runs: Sequence[Run],
) -> None:
    """Make the tables of this version, with these groups without checksums."""
    connection.execute("DROP TABLE runs")
    connection.execute("DROP TABLE groups")
    _create_tables(connection)
    for id_, *fields in groups:
        connection.execute(
            insert_statement("groups", GROUP_COLUMNS), (id_, *sealed(fields))
        )
    connection.executemany(
        insert_statement("runs", RUN_COLUMNS), [encode(run) for run in runs]
    )
