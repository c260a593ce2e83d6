"""The results of the studies, as tables of runs.

A table of runs is a CSV that bzip2 compresses, because the same rows then are the same
bytes on every machine. The settings of all runs of a study are one table beside it, and
a run names its own by their hash.
"""

import bz2
import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from tempergat.base import FileLock, csv_text, write_into
from tempergat.comparison.storage.export import runs_as_csv, runs_of_csv
from tempergat.training import CLEAN, Run, canonical_json

STUDIES = Path(__file__).parent
_HASH = "config_hash"


def result_path(file: str) -> Path:
    """Where a file of results is: `when/real.csv` is the file real.csv of `when`."""
    study, _, name = file.partition("/")
    return STUDIES / study / "results" / name


def runs_path(file: str) -> Path:
    """Where a table of runs is: `when/real.csv` is the file real.csv.bz2 of `when`."""
    return result_path(f"{file}.bz2")


def settings_path(file: str) -> Path:
    """Where the settings of the runs of a table's study are."""
    return result_path(f"{file.partition('/')[0]}/settings.csv")


@cache
def read_plan(study: str) -> dict[str, Any]:
    """The plan of a study."""
    text = (STUDIES / study / "plan.yaml").read_text(encoding="utf-8")
    plan: dict[str, Any] = yaml.safe_load(text)
    return plan


@cache
def read_csv(file: str) -> pd.DataFrame:
    """A file of results; do not change it in place.

    Args:
        file: Its path, as `result_path` takes it.
    """
    return pd.read_csv(result_path(file))


@cache
def read_runs(file: str) -> pd.DataFrame:
    """Runs with their settings; do not change them in place.

    Columns are those of the file and one for each setting and each attribute of a
    `Condition`. `train`, `val` and `test` are the scores in percent at the epoch that
    the run's own selection rule chooses.

    Args:
        file: The table, as `runs_path` takes it.
    """
    runs, known = read_csv(f"{file}.bz2"), _read_settings(file)
    mine = {name: known[name] for name in runs[_HASH].unique()}
    settings = pd.DataFrame.from_dict(mine, orient="index").drop(columns="method")
    runs = runs.join(settings, on=_HASH)
    if "condition" in runs:
        texts = runs["condition"].fillna("{}")
        facts = [{**asdict(CLEAN), **json.loads(text)} for text in texts]
        runs = runs.join(pd.DataFrame(facts))
    for part in ("train", "val", "test"):
        runs[part] = float("nan")
        for rule in runs["selection"].unique():
            chosen = runs["selection"] == rule
            runs.loc[chosen, part] = 100.0 * runs[f"{rule}_{part}"]
    return runs


def read_whole_runs(file: str) -> list[Run]:
    """The runs of a table, each with all that was recorded; none if there is no table.

    Raises:
        UserError: The table or its settings have other content than `write_runs` wrote.
    """
    path = runs_path(file)
    if not path.exists():
        return []
    text = bz2.decompress(path.read_bytes()).decode()
    return runs_of_csv(text, _read_settings(file), path)


def write_runs(file: str, runs: Sequence[Run]) -> None:
    """Write runs as rows of a table in place of the rows of their datasets.

    Args:
        file: The table, as `runs_path` takes it.
        runs: All its runs of these datasets.
    """
    path, settings = runs_path(file), settings_path(file)
    with FileLock(settings.with_suffix(".csv.lock"), "make it writable"):
        datasets = {run.dataset for run in runs}
        kept = [run for run in read_whole_runs(file) if run.dataset not in datasets]
        every = [*kept, *runs]
        known = _read_settings(file)
        known |= {run.config_hash: dict(run.config) for run in runs}
        # The settings first, so that runs can be read whenever the process stops.
        _write_settings(settings, known)
        text = runs_as_csv(every)
        write_into(path.parent, path.name, bz2.compress(text.encode()))
        used = {name for table in _tables_of(settings.parent) for name in table[_HASH]}
        _write_settings(settings, {name: known[name] for name in used})


def row_count(study: str) -> int:
    """How many rows of results a study has."""
    folder = result_path(f"{study}/")
    computed = [file for file in folder.rglob("*.csv") if file.name != "settings.csv"]
    rows = sum(len(pd.read_csv(file)) for file in computed)
    return rows + sum(map(len, _tables_of(folder)))


def datasets_with_rows(study: str) -> set[str]:
    """The datasets that the runs of a study are on."""
    tables = _tables_of(result_path(f"{study}/"), "dataset")
    return {name for table in tables for name in table["dataset"]}


def _tables_of(folder: Path, column: str = _HASH) -> list[pd.DataFrame]:
    """One column of the runs, for each table of runs of a study."""
    files = folder.rglob("*.csv.bz2")
    return [pd.read_csv(file, usecols=[column], dtype=str) for file in files]


def _read_settings(file: str) -> dict[str, dict[str, Any]]:
    path = settings_path(file)
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            row.pop(_HASH): {name: _value(cell) for name, cell in row.items() if cell}
            for row in csv.DictReader(file)
        }


def _write_settings(path: Path, settings: Mapping[str, Mapping[str, Any]]) -> None:
    names = sorted({name for of_run in settings.values() for name in of_run})
    rows = [
        {_HASH: key}
        | {name: _cell(of_run[name]) if name in of_run else "" for name in names}
        for key, of_run in sorted(settings.items())
    ]
    write_into(path.parent, path.name, csv_text(rows))


def _cell(value: Any) -> str:
    """A value as JSON, or a text as it is where reading it as JSON fails."""
    is_plain = isinstance(value, str) and value and _value(value) == value
    return value if is_plain else canonical_json(value)


@cache
def _value(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell
