"""`tempergat export` writes the runs of stores as CSV."""

import json
from pathlib import Path

from tempergat.comparison.storage.export import read_runs
from tempergat.comparison.storage.store import Store
from tests.cli.conftest import Command
from tests.support.made_up_runs import study


def test_every_run_of_a_store_is_a_row(command: Command, tmp_path: Path) -> None:
    runs = study("cora", {"gat": 80.0, "gated": 81.0}, range(4))
    with Store(tmp_path / "store.sqlite") as store:
        store.put_group(runs)
    table = tmp_path / "runs.csv"
    ended = command("export", tmp_path / "store.sqlite", "--to", table)
    assert (ended.status, ended.out) == (0, f"wrote 8 runs to {table}\n")
    assert {(run.method, run.seed) for run in read_runs(table)} == {
        (run.method, run.seed) for run in runs
    }
    again = command("export", tmp_path / "store.sqlite", "--to", table, "--json")
    assert json.loads(again.out) == {
        "runs": 8,
        "replaced": {"cora": 8},
        "kept": {},
        "file": str(table),
    }


def test_a_missing_store_is_named_and_not_created(
    command: Command, tmp_path: Path
) -> None:
    command.refuses("there is no store", "export", tmp_path / "none")
    assert not (tmp_path / "none").exists()
