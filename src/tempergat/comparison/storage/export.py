"""Runs as CSV, one row each, as studies publish them, and back."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tempergat.base import UserError, csv_text, write_into
from tempergat.comparison.storage.rows import EXTRAS, decode_extras, encode_extras
from tempergat.comparison.storage.store import Store
from tempergat.training import SELECTION_RULES, LayerRecord, Run, Scores, canonical_json

_PARTS = ("epoch", "train", "val", "test")
COLUMNS = (
    "dataset",
    "fingerprint",
    "method",
    "seed",
    "split",
    "config_hash",
    "status",
    "failed_epoch",
    "reason",
    *(f"{rule}_{part}" for rule in SELECTION_RULES for part in _PARTS),
    "temperatures_selected",
    "gate_means_selected",
    "temperatures_last",
    "gate_means_last",
    "time_s",
    "memory_bytes",
    "device",
    "versions",
)
# Columns that are present only where some run has a value.
_SHARPNESS_COLUMNS = {
    f"{name}_{moment}": (moment, name)
    for moment in ("selected", "last")
    for name in ("spread", "entropy")
}
# Too long for a table; only stores have them, and `layers_at_epochs` of most runs.
_ONLY_IN_STORES = ("curves", "gate_counts", "training_nodes")
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
        parts = [f"wrote {runs} run{'' if runs == 1 else 's'} to {self.path}"]
        for done, counts in (("replaced", self.replaced), ("kept", self.kept)):
            if counts:
                each = (f"{n} of {name}" for name, n in sorted(counts.items()))
                parts.append(f"{done} {', '.join(each)}")
        return "; ".join(parts)


def configs_path(path: Path) -> Path:
    """The JSON file beside a CSV of runs that holds their configurations by hash."""
    return path.with_suffix(".configs.json")


def export_runs(stores: Store | Sequence[Store], path: Path) -> Merged:
    """Write the runs of one or more stores as `write_runs` does, without their layers.

    Args:
        stores: The stores.
        path: The CSV.

    Returns:
        What was written, replaced and kept.

    Raises:
        UserError: Two stores hold different results for one run, there are none, or
            the existing file is not a CSV of runs.
    """
    stores = [stores] if isinstance(stores, Store) else stores
    runs: dict[tuple[object, ...], Run] = {}
    for store in stores:
        for run in store.runs():
            short = replace(run, layers_at_epochs=None)
            known = runs.setdefault(_identity(run), short)
            if known.scores != run.scores:
                raise UserError(
                    f"two stores differ on {run.dataset} {run.method} seed {run.seed}; "
                    "export one of them"
                )
    if not runs:
        seen = ", ".join(str(store.path) for store in stores)
        raise UserError(f"there are no finished runs in {seen}; nothing to export")
    return write_runs(list(runs.values()), path)


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
    every = sorted([*kept, *runs], key=_identity)
    rows = [_to_row(run) for run in every]
    columns = (
        *COLUMNS,
        *(c for c in OPTIONAL_COLUMNS if any(c in row for row in rows)),
    )
    # The configurations first, so that the CSV can be read whenever the process stops.
    _write_configs(path, [*old, *every])
    text = csv_text([{c: row.get(c) for c in columns} for row in rows])
    write_into(path.parent, path.name, text)
    _write_configs(path, every)
    before = Counter(run.dataset for run in old)
    return Merged(
        path,
        Counter(run.dataset for run in runs),
        {name: count for name, count in before.items() if name in datasets},
        {name: count for name, count in before.items() if name not in datasets},
    )


def _write_configs(path: Path, runs: Sequence[Run]) -> None:
    configs = {run.config_hash: dict(run.config) for run in runs}
    text = json.dumps(configs, indent=1, sort_keys=True) + "\n"
    write_into(path.parent, configs_path(path).name, text)


def _identity(run: Run) -> tuple[str, str, str, str, int, int, str]:
    return (
        run.dataset,
        run.fingerprint,
        run.method,
        run.config_hash,
        run.seed,
        run.numerics,
        run.device,
    )


def export_stores(paths: Sequence[Path], path: Path) -> Merged:
    """Write the runs of the stores at `paths` as `export_runs` does.

    Raises:
        UserError: As in `export_runs`, or a store is missing.
    """
    with ExitStack() as stack:
        stores = []
        for store in paths:
            if not store.is_file():
                raise UserError(f"there is no store {store}; check its path")
            stores.append(stack.enter_context(Store(store)))
        return export_runs(stores, path)


def read_runs(path: Path) -> list[Run]:
    """The runs of a CSV that `export_runs` wrote.

    Raises:
        UserError: A file is missing, or has other content than `export_runs` wrote.
    """
    try:
        text, configs_text = (
            path.read_bytes().decode(),
            configs_path(path).read_text("utf-8"),
        )
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text ({error}); export again") from error
    except OSError as error:
        raise UserError(
            f"cannot read {error.filename}: {error.strerror}; make a table of runs "
            "and its settings from a store with `tempergat export`, in a new file"
        ) from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = sorted(set(COLUMNS) - set(reader.fieldnames or ()))
    if missing:
        raise UserError(
            f"{path} is no table of runs, it lacks the columns {', '.join(missing)}; "
            "export again, to another file"
        )
    runs = []
    try:
        configs = json.loads(configs_text)
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


def _to_row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {
        "dataset": run.dataset,
        "fingerprint": run.fingerprint,
        "method": run.method,
        "seed": run.seed,
        "split": run.split,
        "config_hash": run.config_hash,
        "status": run.status,
        "failed_epoch": run.failed_epoch,
        "reason": run.reason,
        "temperatures_selected": _join(run.selected.temperatures),
        "gate_means_selected": _join(run.selected.gate_means),
        "temperatures_last": _join(run.last.temperatures),
        "gate_means_last": _join(run.last.gate_means),
        "time_s": run.time_s,
        "memory_bytes": run.memory_bytes,
        "device": run.device,
        "versions": json.dumps(dict(run.versions), sort_keys=True),
    }
    for rule in SELECTION_RULES:
        scores = run.scores.get(rule)
        for part in _PARTS:
            row[f"{rule}_{part}"] = None if scores is None else getattr(scores, part)
    for name, (moment, attribute) in _SHARPNESS_COLUMNS.items():
        if values := getattr(getattr(run, moment), attribute):
            row[name] = _join(values)
    for name, value in encode_extras(run).items():
        if name in _EXTRA_COLUMNS:
            row[name] = canonical_json(value)
    return row


def _from_row(row: dict[str, str], config: dict[str, Any]) -> Run:
    status = row["status"]
    if status not in ("done", "failed"):
        raise ValueError(f"unknown status {status!r}")
    return Run(
        dataset=row["dataset"],
        fingerprint=row["fingerprint"],
        method=row["method"],
        seed=int(row["seed"]),
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
        status="done" if status == "done" else "failed",
        failed_epoch=int(row["failed_epoch"]) if row["failed_epoch"] else None,
        reason=row["reason"] or None,
        split=int(row["split"]),
        selected=_layers_of(row, "selected"),
        last=_layers_of(row, "last"),
        time_s=float(row["time_s"]),
        memory_bytes=int(row["memory_bytes"]) if row["memory_bytes"] else None,
        versions=json.loads(row["versions"]),
        device=row["device"],
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
