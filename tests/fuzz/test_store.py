"""A damaged store gives the same runs or one line; never other runs in silence."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.storage.database import checksum
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.sweep import sweep
from tempergat.training import Run
from tests.fuzz.harness import Failed, fuzz, run_callable
from tests.fuzz.mutations import VALUES, WORDS, mutated_bytes, mutated_value, pick
from tests.support.run_settings import config, small_graph

METHODS = ("gat", "temp_gated")
Scores = list[tuple[str, int, float]]


@pytest.mark.parametrize("count", [40, pytest.param(700, marks=pytest.mark.slow)])
def test_a_store_gives_its_runs_or_is_refused_in_one_line(
    tmp_path: Path, count: int
) -> None:
    graph = small_graph(30)
    configs = [config(method, epochs=1, hidden_channels=2) for method in METHODS]
    path = tmp_path / "store.sqlite"
    found: list[Run] = []

    def read() -> None:
        with Store(path) as store:
            runs = sweep(graph, configs, range(3), store, torch.device("cpu"))
        dataset_result(runs, METHODS, "gat")
        found[:] = runs

    read()
    whole = path.read_bytes()
    expected = _scores(found)

    def attempt(rng: np.random.Generator) -> bool:
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(whole)
        match int(rng.integers(4)):
            case 0:
                path.write_bytes(mutated_bytes(whole, rng, most=2))
                is_signed = False
            case 1:
                _change_a_column(path, rng)
                is_signed = False
            case _:
                _change_and_sign(path, rng, pick(rng, ("runs", "groups")))
                is_signed = True
        is_read = run_callable(read)
        if is_read and not is_signed and _scores(found) != expected:
            raise Failed(f"other runs: {_scores(found)}")
        if is_read and len(found) != len(expected):
            raise Failed(f"{len(found)} runs instead of {len(expected)}")
        return is_read

    fuzz(count, attempt, more_than=count // 14)


def _scores(runs: list[Run]) -> Scores:
    return [
        (run.method, run.seed, run.scores["best_val_accuracy"].test) for run in runs
    ]


def _change_a_column(path: Path, rng: np.random.Generator) -> None:
    """Alter a value without its checksum, drop a row, or alter the schema."""
    choices = (
        ("runs", "fingerprint method config_hash seed device status record checksum"),
        ("groups", "fingerprint method numerics device config_hashes seeds checksum"),
    )
    table, columns = pick(rng, choices)
    column = pick(rng, columns.split())
    values = (None, 7, -1, 0.5, "", "[]", "{}", "[0,1", b"\xff\x00", *WORDS[-8:])
    value = pick(rng, values)
    where = f"rowid = {rng.integers(1, 3)}"
    if table == "runs":
        where = f"seed = {rng.integers(3)} AND method = '{METHODS[rng.integers(2)]}'"
    statements = [
        (f"UPDATE {table} SET {column} = ? WHERE {where}", (value,)),
        (f"UPDATE {table} SET {column} = ? WHERE {where}", (value,)),
        (f"UPDATE {table} SET {column} = CAST({column} AS BLOB)", ()),
        (f"DELETE FROM {table} WHERE {where}", ()),
        (f"PRAGMA user_version = {rng.integers(-2, 6)}", ()),
        (f"ALTER TABLE {table} RENAME COLUMN {column} TO other", ()),
        (f"ALTER TABLE {table} ADD COLUMN other", ()),
        (f"ALTER TABLE {table} RENAME TO other", ()),
    ]
    _execute(path, *pick(rng, statements))


def _change_and_sign(path: Path, rng: np.random.Generator, table: str) -> None:
    """Alter a row and give it the checksum that fits."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    row = dict(pick(rng, rows))
    before = dict(row)
    if table == "runs" and rng.integers(4):
        row["record"] = _text(mutated_value(json.loads(row["record"]), rng, most=2))
    elif table == "groups" and rng.integers(4):
        name = pick(rng, ("seeds", "config_hashes"))
        row[name] = _text(mutated_value(json.loads(row[name]), rng, most=2))
    else:
        name, value = pick(rng, list(row)), pick(rng, VALUES)
        row[name] = value if isinstance(value, str | float | None) else str(value)
    connection.close()
    signed = [value for name, value in row.items() if name not in ("id", "checksum")]
    try:
        row["checksum"] = checksum(signed)
    except ValueError:
        return
    keys = ("id",) if table == "groups" else ("method", "seed")
    _execute(
        path,
        f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in row)} WHERE "
        + " AND ".join(f"{key} = ?" for key in keys),
        (*row.values(), *(before[key] for key in keys)),
    )


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _execute(path: Path, statement: str, values: tuple[Any, ...] = ()) -> None:
    """Run a statement where SQLite itself allows it."""
    connection = sqlite3.connect(path)
    try:
        connection.execute(statement, values)
        connection.commit()
    except (sqlite3.Error, OverflowError, UnicodeError):
        connection.rollback()
    finally:
        connection.close()
