"""The tables of a store, and how those of older versions are brought up to date.

Schema 1 is that of version 0.1.0. Schema 2 adds the device and the numerics to the
identity of a run, and lets a group hold several configurations.
"""

import json
import sqlite3
from collections import Counter

from tempergat.study.engine.encoding import decode_schema_1, encode
from tempergat.training import canonical_json

SCHEMA_VERSION = 2
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
)

_TABLES = (
    """CREATE TABLE groups (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    method TEXT NOT NULL,
    numerics INTEGER NOT NULL,
    device TEXT NOT NULL,
    config_hashes TEXT NOT NULL,
    seeds TEXT NOT NULL
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
)


def create_or_migrate(connection: sqlite3.Connection) -> None:
    """Make the tables, or bring those of schema 1 up to date.

    To be called inside a transaction with foreign keys off.

    Raises:
        ValueError: A row of schema 1 does not match its checksum.
    """
    # Another process may have done it while this one waited for the transaction.
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == SCHEMA_VERSION:
        return
    if version == 1:
        _migrate(connection)
    else:
        _create_tables(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def insert_statement(table: str, columns: tuple[str, ...]) -> str:
    """SQL that inserts a row into a table, a question mark per column."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)


def _migrate(connection: sqlite3.Connection) -> None:
    runs = [
        decode_schema_1(row)
        for row in connection.execute(
            "SELECT fingerprint, method, config_hash, seed, dataset, status, group_id, "
            "record, checksum FROM runs"
        )
    ]
    groups = connection.execute(
        "SELECT id, fingerprint, method, config_hash, seeds FROM groups ORDER BY id"
    ).fetchall()
    connection.execute("DROP TABLE runs")
    connection.execute("DROP TABLE groups")
    _create_tables(connection)
    device_of_group = {run.group_id: run.device for run in runs}
    # A group that was planned but not trained gets the device that trained most runs.
    # Without any run in the store, the groups may be planned again.
    usual = Counter(run.device for run in runs).most_common(1)
    for id_, fingerprint, method, config_hash, seeds in groups:
        if id_ in device_of_group or usual:
            connection.execute(
                insert_statement("groups", GROUP_COLUMNS),
                (
                    id_,
                    fingerprint,
                    method,
                    1,
                    device_of_group.get(id_) or usual[0][0],
                    canonical_json([config_hash]),
                    canonical_json(json.loads(seeds)),
                ),
            )
    connection.executemany(
        insert_statement("runs", RUN_COLUMNS), [encode(run) for run in runs]
    )
