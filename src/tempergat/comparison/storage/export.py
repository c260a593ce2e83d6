"""Runs as CSV, one row each, as studies publish them, and back."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tempergat.base import UserError, counted, csv_text, write_into
from tempergat.comparison.chosen import choose
from tempergat.comparison.storage.rows import EXTRAS, decode_extras, encode_extras
from tempergat.comparison.storage.several import read_stores
from tempergat.training import SELECTION_RULES, LayerRecord, Run, Scores, canonical_json

_PARTS = ("epoch", "train", "val", "test")


# Columns that are attributes of a run, and how each is read.
_READERS: Mapping[str, Callable[[str], Any]] = {
    "dataset": str,
    "fingerprint": str,
    "method": str,
    "seed": int,
    "split": int,
    "status": str,
    "failed_epoch": lambda text: int(text) if text else None,
    "reason": lambda text: text or None,
    "time_s": float,
    "memory_bytes": lambda text: int(text) if text else None,
    "device": str,
    "versions": json.loads,
}
_LAYER_COLUMNS = {
    f"{name}_{moment}": (moment, name)
    for moment in ("selected", "last")
    for name in ("temperatures", "gate_means")
}
COLUMNS = (
    *("dataset", "fingerprint", "method", "seed", "split", "config_hash"),
    *("status", "failed_epoch", "reason"),
    *(f"{rule}_{part}" for rule in SELECTION_RULES for part in _PARTS),
    *_LAYER_COLUMNS,
    *("time_s", "memory_bytes", "device", "versions"),
)
# Columns that are present only where some run has a value.
_SHARPNESS_COLUMNS = {
    f"{name}_{moment}": (moment, name)
    for moment in ("selected", "last")
    for name in ("spread", "entropy")
}
# Too long for a table; only stores have them, and `layers_at_epochs` of most runs.
_ONLY_IN_STORES = ("curves", "gate_counts", "training_nodes", "shares")
_EXTRA_COLUMNS = tuple(name for name in EXTRAS if name not in _ONLY_IN_STORES)
OPTIONAL_COLUMNS = (*_SHARPNESS_COLUMNS, *_EXTRA_COLUMNS)


@dataclass(frozen=True)
class Merged:
    """What was written into a CSV of runs.

    Attributes:
        path: The CSV.
        written: Rows written, by dataset.
        replaced: Rows these datasets had before, by dataset.
        kept: Rows of other datasets, by dataset.
    """

    path: Path
    written: Mapping[str, int]
    replaced: Mapping[str, int]
    kept: Mapping[str, int]

    @property
    def sentence(self) -> str:
        """The same in words."""
        runs = sum(self.written.values())
        parts = [f"wrote {counted(runs, 'run')} to {self.path}"]
        for done, counts in (("replaced", self.replaced), ("kept", self.kept)):
            if counts:
                each = (f"{n} of {name}" for name, n in sorted(counts.items()))
                parts.append(f"{done} {', '.join(each)}")
        return "; ".join(parts)


def configs_path(path: Path) -> Path:
    """The JSON file beside a CSV of runs that holds their configurations by hash."""
    return path.with_suffix(".configs.json")


def export_stores(stores: Sequence[Path], path: Path) -> Merged:
    """Write the runs of stores as `write_runs` does, without their layers.

    Of a method with two recipes, these are the runs that `compare` compares.

    Args:
        stores: The files of the stores, or their folders.
        path: The CSV.

    Returns:
        What was written, replaced and kept.

    Raises:
        UserError: A store is missing or without runs, two stores hold different
            results of one run, or the existing file is not a CSV of runs.
    """
    runs, _ = read_stores(stores)
    compared = choose(runs).compared
    return write_runs([replace(run, layers_at_epochs=None) for run in compared], path)


def write_runs(runs: Sequence[Run], path: Path) -> Merged:
    """Write runs as CSV rows, replacing the rows of their datasets.

    Scores are fractions, lists are separated by spaces. The configurations, by hash,
    go to a JSON file beside the CSV. Attributes that most runs lack are columns of
    JSON, each present only where some run has a value for it. An existing CSV keeps
    the runs of other datasets.

    Returns:
        What was written, replaced and kept.

    Raises:
        UserError: The existing file is not a CSV of runs.
    """
    datasets = {run.dataset for run in runs}
    old = read_runs(path) if path.exists() else []
    kept = [run for run in old if run.dataset not in datasets]
    # The configurations first, so that the CSV can be read whenever the process stops.
    _write_configs(path, [*old, *runs])
    write_into(path.parent, path.name, runs_as_csv([*kept, *runs]))
    _write_configs(path, [*kept, *runs])
    before = Counter(run.dataset for run in old)
    return Merged(
        path,
        Counter(run.dataset for run in runs),
        {name: count for name, count in before.items() if name in datasets},
        {name: count for name, count in before.items() if name not in datasets},
    )


def runs_as_csv(runs: Sequence[Run]) -> str:
    """The text of a CSV of runs, which does not depend on their order."""
    rows = [_to_row(run) for run in sorted(runs, key=_identity)]
    optional = (c for c in OPTIONAL_COLUMNS if any(c in row for row in rows))
    columns = (*COLUMNS, *optional)
    return csv_text([{c: row.get(c) for c in columns} for row in rows])


def _write_configs(path: Path, runs: Sequence[Run]) -> None:
    configs = {run.config_hash: dict(run.config) for run in runs}
    text = json.dumps(configs, indent=1, sort_keys=True) + "\n"
    write_into(path.parent, configs_path(path).name, text)


def read_runs(path: Path) -> list[Run]:
    """The runs of a CSV that `write_runs` wrote.

    Raises:
        UserError: A file is missing, or has other content than `write_runs` wrote.
    """
    try:
        text = path.read_bytes().decode()
        configs = json.loads(configs_path(path).read_text("utf-8"))
    except ValueError as error:
        raise UserError(
            f"cannot read {path} and its settings: {error}; export again"
        ) from error
    except OSError as error:
        raise UserError(
            f"cannot read {error.filename}: {error.strerror}; make a table of runs "
            "and its settings from a store with `tempergat export`, in a new file"
        ) from error
    return runs_of_csv(text, configs, path)


def runs_of_csv(
    text: str, configs: Mapping[str, dict[str, Any]], path: Path
) -> list[Run]:
    """The runs in a text of `runs_as_csv`, whose errors name its path.

    Raises:
        UserError: The text is another one, or a configuration is missing.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = sorted(set(COLUMNS) - set(reader.fieldnames or ()))
    if missing:
        raise UserError(
            f"{path} is no table of runs, it lacks the columns {', '.join(missing)}; "
            "export again, to another file"
        )
    runs = []
    try:
        for row in reader:
            if row["config_hash"] not in configs:
                raise ValueError(f"no configuration {row['config_hash']}")
            run = _from_row(row, configs[row["config_hash"]])
            if run.config_hash != row["config_hash"]:
                raise ValueError("its configuration is not the one it ran with")
            runs.append(run)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}, row {len(runs) + 1}: {error}; export again"
        ) from error
    return runs


def _identity(run: Run) -> tuple[Any, ...]:
    names = ("dataset", "fingerprint", "method", "config_hash", "seed", "numerics")
    return (*(getattr(run, name) for name in names), run.device)


def _to_row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {
        **{name: getattr(run, name) for name in (*_READERS, "config_hash")},
        "versions": json.dumps(dict(run.versions), sort_keys=True),
    }
    for rule in SELECTION_RULES:
        scores = run.scores.get(rule)
        for part in _PARTS:
            row[f"{rule}_{part}"] = None if scores is None else getattr(scores, part)
    for name, (moment, attribute) in (_LAYER_COLUMNS | _SHARPNESS_COLUMNS).items():
        values = getattr(getattr(run, moment), attribute)
        if values or name in _LAYER_COLUMNS:
            row[name] = _join(values)
    for name, value in encode_extras(run).items():
        if name in _EXTRA_COLUMNS:
            row[name] = canonical_json(value)
    return row


def _from_row(row: dict[str, str], config: dict[str, Any]) -> Run:
    if row["status"] not in ("done", "failed"):
        raise ValueError(f"unknown status {row['status']!r}")
    return Run(
        config=config,
        scores={
            rule: Scores(
                int(row[f"{rule}_epoch"]),
                float(row[f"{rule}_train"]) if row[f"{rule}_train"] else None,
                float(row[f"{rule}_val"]),
                float(row[f"{rule}_test"]),
            )
            for rule in SELECTION_RULES
            if row[f"{rule}_epoch"]
        },
        selected=_layers_of(row, "selected"),
        last=_layers_of(row, "last"),
        **{name: read(row[name]) for name, read in _READERS.items()},
        **decode_extras(
            {name: json.loads(row[name]) for name in _EXTRA_COLUMNS if row.get(name)}
        ),
    )


def _layers_of(row: dict[str, str], moment: str) -> LayerRecord:
    return LayerRecord(
        *(
            _split(row.get(f"{name}_{moment}") or "")
            for name in ("temperatures", "gate_means", "spread", "entropy")
        )
    )


def _join(values: Sequence[float]) -> str:
    return " ".join("nan" if math.isnan(value) else repr(value) for value in values)


def _split(text: str) -> tuple[float, ...]:
    return tuple(float(value) for value in text.split())
