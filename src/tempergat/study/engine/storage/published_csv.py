"""Writing runs into a published CSV without touching the rows of other datasets."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempergat.base import UserError, csv_text, write_into

Configs = Mapping[str, Mapping[str, Any]]
# Optional columns that are part of a run's identity.
_IDENTIFYING = ("condition", "matmul_precision", "numerics")


@dataclass(frozen=True)
class Merged:
    """What a merge did to a CSV of runs.

    Attributes:
        path: The CSV.
        written: Rows written, by dataset.
        replaced: Rows these datasets had before, by dataset.
        kept: Rows of other datasets that were left as they are, by dataset.
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
        if self.replaced:
            parts.append(f"replaced {_by_dataset(self.replaced)}")
        if self.kept:
            parts.append(f"kept {_by_dataset(self.kept)}")
        return "; ".join(parts)


def configs_path(path: Path) -> Path:
    """The JSON file beside a CSV of runs that holds their configurations by hash."""
    return path.with_suffix(".configs.json")


def merge_rows(
    path: Path,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    columns: Sequence[str],
    optional: Sequence[str],
    configs: Configs,
) -> Merged:
    """Write some datasets' rows into a CSV of runs; other datasets keep theirs.

    Rows are ordered by dataset. Both files appear whole or not at all, and the
    configurations first, so that the CSV can be read whenever the process stops.

    Args:
        path: The CSV; made when missing.
        rows: The cells of the new rows by column, by dataset.
        columns: The columns of every such CSV.
        optional: Further columns; each is there only where some row has a value.
            A CSV that keeps rows of other datasets gets only those that are part of a
            run's identity.
        configs: The configurations of the new rows by hash.

    Raises:
        UserError: The existing files are not a CSV of runs.
    """
    old = _read_rows(path, columns, optional)
    written = {dataset: len(found) for dataset, found in rows.items()}
    kept = {name: len(found) for name, found in old.items() if name not in rows}
    replaced = {name: len(found) for name, found in old.items() if name in rows}
    known = {**(_read_configs(path) if old else {}), **configs}
    merged = {**old, **rows}
    used = set(configs) | {
        row["config_hash"]
        for name in kept
        for row in old[name]
        if row["config_hash"] in known
    }
    _write_configs(path, known)
    lines = [row for dataset in sorted(merged) for row in merged[dataset]]
    filled = [name for name in optional if any(row.get(name) for row in lines)]
    if kept:
        # A new column would change every row of the datasets that are left alone.
        there = {name for found in old.values() for row in found for name in row}
        filled = [name for name in filled if name in there or name in _IDENTIFYING]
    header = (*columns, *filled)
    text = csv_text([{c: row.get(c) for c in header} for row in lines])
    write_into(path.parent, path.name, text)
    if used != set(known):
        _write_configs(path, {key: known[key] for key in used})
    return Merged(path, written, replaced, kept)


def _read_rows(
    path: Path, columns: Sequence[str], optional: Sequence[str]
) -> dict[str, list[dict[str, str]]]:
    """The cells of each dataset's rows as text, which is written back unchanged."""
    if not path.exists():
        return {}
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text ({error}); move it away") from error
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}; make it readable"
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader, [])
    if header[: len(columns)] != list(columns) or not set(
        header[len(columns) :]
    ) <= set(optional):
        raise UserError(
            f"{path} does not have the columns of runs; move it away, or write to "
            "another file"
        )
    found: dict[str, list[dict[str, str]]] = {}
    start = reader.line_num
    for cells in reader:
        if len(cells) != len(header):
            raise UserError(
                f"{path}, line {start + 1}, has {len(cells)} cells instead of "
                f"{len(header)}; restore the file"
            )
        row = dict(zip(header, cells, strict=True))
        found.setdefault(row["dataset"], []).append(row)
        start = reader.line_num
    return found


def _read_configs(path: Path) -> dict[str, Mapping[str, Any]]:
    where = configs_path(path)
    try:
        found = json.loads(where.read_text("utf-8"))
    except OSError as error:
        raise UserError(
            f"cannot read {where}: {error.strerror}; restore it, or move {path} away"
        ) from error
    except ValueError as error:
        raise UserError(f"{where} is not JSON ({error}); restore it") from error
    if not isinstance(found, dict):
        raise UserError(f"{where} is not a JSON object; restore it")
    return found


def _write_configs(path: Path, configs: Configs) -> None:
    text = json.dumps(dict(configs), indent=1, sort_keys=True) + "\n"
    write_into(path.parent, configs_path(path).name, text)


def _by_dataset(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} of {name}" for name, number in sorted(counts.items()))
