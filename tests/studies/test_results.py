"""Tables of runs, compressed, and the one table of the settings of a study."""

from pathlib import Path

import pytest

from studies import results
from studies.results import (
    read_runs,
    read_whole_runs,
    runs_path,
    settings_path,
    write_runs,
)
from tempergat.base import UserError, write_into
from tempergat.training import Run
from tests.support.made_up_runs import run

FILE, OTHER = "toy/one.csv", "toy/folder/two.csv"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "STUDIES", tmp_path)


def with_rate(rate: float, **others: object) -> Run:
    return run(config={"learning_rate": rate}, **others)


def lines() -> list[str]:
    return settings_path(FILE).read_text().splitlines()


def test_settings_of_every_kind_come_back() -> None:
    values = {
        **{"text": "elu", "number": "0.5", "word": "null", "none": None, "yes": True},
        **{"rate": 1e-05, "count": 1, "whole": 1.0, "fanout": [10, 5], "quoted": '"a"'},
        **{"lines": "a,\nb", "empty": ""},
    }
    write_runs(FILE, [run(config=values), with_rate(0.1, seed=1)])
    kept, other = sorted(read_whole_runs(FILE), key=lambda one: one.seed)
    assert repr(sorted(kept.config.items())) == repr(sorted(values.items()))
    assert dict(other.config) == {"learning_rate": 0.1}


def test_a_dataset_replaces_its_own_rows_and_unused_settings_go() -> None:
    write_runs(FILE, [with_rate(0.1), with_rate(0.2, dataset="pubmed")])
    write_runs(OTHER, [with_rate(0.2), with_rate(0.3)])
    before = runs_path(OTHER).read_bytes()
    write_runs(FILE, [with_rate(0.4, seed=seed) for seed in range(2)])
    assert [(one.dataset, one.seed) for one in read_whole_runs(FILE)] == [
        *(("cora", 0), ("cora", 1), ("pubmed", 0))
    ]
    assert runs_path(OTHER).read_bytes() == before
    assert sorted(line.split(",")[1] for line in lines()[1:]) == ["0.2", "0.3", "0.4"]


def test_the_same_runs_are_the_same_bytes() -> None:
    runs = [with_rate(rate, seed=seed) for seed in range(2) for rate in (0.1, 0.2)]
    write_runs(FILE, runs)
    files = runs_path(FILE), settings_path(FILE)
    before = [file.read_bytes() for file in files]
    write_runs(FILE, runs[::-1])
    assert [file.read_bytes() for file in files] == before
    assert before[0].startswith(b"BZh")


def test_a_process_killed_between_table_and_settings_leaves_readable_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_runs(FILE, [with_rate(0.1)])

    def killed_at_the_table(folder: Path, name: str, content: str | bytes) -> Path:
        if name.endswith(".bz2"):
            raise KeyboardInterrupt
        return write_into(folder, name, content)

    monkeypatch.setattr(results, "write_into", killed_at_the_table)
    with pytest.raises(KeyboardInterrupt):
        write_runs(FILE, [with_rate(0.2)])
    assert [dict(one.config) for one in read_whole_runs(FILE)] == [
        {"learning_rate": 0.1}
    ]


def test_a_row_whose_settings_are_others_is_refused() -> None:
    write_runs(FILE, [with_rate(0.1)])
    settings_path(FILE).write_text("\n".join(lines()).replace(",0.1", ",0.2") + "\n")
    with pytest.raises(UserError, match=r"one\.csv\.bz2, row 1: its configuration"):
        read_whole_runs(FILE)


@pytest.mark.parametrize("study", ["homogeneous", "default"])
def test_published_settings_are_those_of_published_runs(
    study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    tables = sorted(runs_path(f"{study}/x").parent.glob("*.bz2"))
    files = [f"{study}/{path.name.removesuffix('.bz2')}" for path in tables]
    used = {one.config_hash for file in files for one in read_whole_runs(file)}
    listed = settings_path(files[0]).read_text().splitlines()[1:]
    assert {line.split(",")[0] for line in listed} == used
    assert all(read_runs(file)["test"].between(0, 100).all() for file in files)
