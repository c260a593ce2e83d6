"""A store that was damaged or altered never gives another table without a word."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tempergat.base import UserError
from tempergat.comparison.storage.database import checksum
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.state import Progress
from tempergat.comparison.sweeps.sweep import sweep
from tempergat.data import Dataset
from tempergat.training import Run
from tests.support.made_up_runs import run
from tests.support.run_settings import config, small_graph

CPU = torch.device("cpu")
METHODS = ("gat", "temp_gated")


@pytest.fixture(scope="module")
def graph() -> Dataset:
    return small_graph(40)


@pytest.fixture(scope="module")
def finished(
    graph: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Run]]:
    path = tmp_path_factory.mktemp("finished") / "store.sqlite"
    return path, swept(path, graph)


@pytest.fixture
def path(finished: tuple[Path, list[Run]], tmp_path: Path) -> Path:
    return Path(shutil.copy(finished[0], tmp_path))


def swept(
    path: Path, graph: Dataset, events: list[Progress] | None = None
) -> list[Run]:
    with Store(path) as store:
        return sweep(
            graph,
            [config(method, epochs=3) for method in METHODS],
            range(3),
            store,
            CPU,
            None if events is None else events.append,
        )


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


ALTERATIONS = {
    "other seeds of a group": "UPDATE groups SET seeds = '[0,1,2,3,4,5]'",
    "half a list of seeds": "UPDATE groups SET seeds = '[0'",
    "bytes for text": "UPDATE runs SET record = CAST(record AS BLOB)",
    "text that is not UTF-8": "UPDATE runs SET record = CAST(x'7bff' AS TEXT)",
    "another score": "UPDATE runs SET record = replace(record, '\"test\":', "
    "'\"test\":0')",
    "no version": "PRAGMA user_version = 0",
    "a version nobody wrote": "PRAGMA user_version = -7",
    "another column": "ALTER TABLE groups RENAME COLUMN seeds TO reeds",
    "a table less": "DROP TABLE names",
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_an_altered_store_is_refused_in_one_line(
    path: Path, graph: Dataset, alteration: str
) -> None:
    execute(path, ALTERATIONS[alteration])
    with pytest.raises(
        UserError, match=r"is damaged .*restore it from a copy, or move"
    ):
        swept(path, graph)


def test_altered_seeds_of_a_group_are_noticed(path: Path, graph: Dataset) -> None:
    execute(path, "UPDATE groups SET seeds = '[0,1,2,3,4,5]' WHERE method = 'gat'")
    with pytest.raises(UserError, match="the row of group 1 was altered"):
        swept(path, graph)


def test_a_run_that_is_gone_is_trained_again(
    path: Path, graph: Dataset, finished: tuple[Path, list[Run]]
) -> None:
    execute(path, "DELETE FROM runs WHERE method = 'gat' AND seed = 1")
    runs = swept(path, graph)
    assert [(r.method, r.seed, r.scores) for r in runs] == [
        (r.method, r.seed, r.scores) for r in finished[1]
    ]


def test_a_run_that_cannot_be_read_back_is_an_error(
    path: Path, graph: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Store.runs

    def without_one(store: Store, **wanted: object) -> list[Run]:
        return [r for r in whole(store, **wanted) if r.seed != 2]  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "runs", without_one)
    with pytest.raises(UserError, match="2 runs cannot be read back"):
        swept(path, graph)


def _signed(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change the record of every run, and sign it as the store does."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    for row in connection.execute("SELECT * FROM runs").fetchall():
        record = json.loads(row["record"])
        change(record)
        fields = [row[name] for name in row.keys()[:-2]]
        fields.append(json.dumps(record, sort_keys=True, separators=(",", ":")))
        connection.execute(
            "UPDATE runs SET record = ?, checksum = ? WHERE method = ? AND seed = ?",
            (fields[-1], checksum(fields), row["method"], row["seed"]),
        )
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        {"time_s": "long"},
        {"time_s": None},
        {"scores": {}},
        {"scores": []},
        {"scores": {"last_epoch": {"epoch": 1, "train": 1, "val": 1}}},
        {"scores": {"last_epoch": {"epoch": "1", "train": 1, "val": 1, "test": 1}}},
        {"selected": {"temperatures": ["a"], "gate_means": []}},
        {"selected": {"heat": []}},
        {"split": -1},
        {"config": {"epochs": 3}},
        {"versions": None},
        {"device": 7},
        {"confusion": [["a"]]},
        {"curves": {"loss": {}}},
        {"condition": {"noise": "pink"}},
    ],
    ids=str,
)
def test_a_signed_record_of_other_values_is_refused(
    path: Path, graph: Dataset, change: dict[str, object]
) -> None:
    _signed(path, lambda record: record.update(change))
    with pytest.raises(UserError, match="is damaged"):
        swept(path, graph)


def test_the_first_graph_of_a_name_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    for _ in range(2):
        with Store(path) as store:
            assert store.table_name("a b", "f" * 64, ["1"]) == "a-b"
            assert store.table_name("a b", "0123456789", ["2"]) == "a-b-012345"
            assert store.table_name("a/b", "f" * 64, ["3"]) == "a-b"


def test_a_graph_with_older_runs_keeps_its_name(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        store.put_group([run(dataset="graph")])
        assert store.table_name("graph", "abcdef01", ["other"]) == "graph-abcdef"
        assert store.table_name("graph", "f" * 64, ["print-of-graph"]) == "graph"
        assert store.table_name("graph", "abcdef01", ["other"]) == "graph-abcdef"
