"""Writing runs into a published CSV without touching the rows of other datasets."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempergat.base import files
from tempergat.base.errors import UserError

Configs = Mapping[str, Mapping[str, Any]]


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
    path: Path, rows: Mapping[str, Sequence[str]], header: str, configs: Configs
) -> Merged:
    """Write some datasets' rows into a CSV of runs; other datasets keep theirs.

    Rows are ordered by dataset. Both files appear whole or not at all, and the
    configurations first, so that the CSV can be read whenever the process stops.

    Args:
        path: The CSV; made when missing.
        rows: The new rows as CSV text, each with its line end, by dataset.
        header: The first line of the CSV, with its line end.
        configs: The configurations of the new rows by hash.

    Raises:
        UserError: The files that are there are not a CSV of runs.
    """
    old = _read_rows(path, header)
    written = {dataset: len(texts) for dataset, texts in rows.items()}
    kept = {name: len(texts) for name, texts in old.items() if name not in rows}
    replaced = {name: len(texts) for name, texts in old.items() if name in rows}
    known = {**(_read_configs(path) if old else {}), **configs}
    merged = {**{name: [t for t, _ in texts] for name, texts in old.items()}, **rows}
    used = set(configs) | {key for name in kept for _, key in old[name] if key in known}
    _write_configs(path, known)
    body = "".join(text for dataset in sorted(merged) for text in merged[dataset])
    files.write_text(path, header + body)
    if used != set(known):
        _write_configs(path, {key: known[key] for key in used})
    return Merged(path, written, replaced, kept)


def _read_rows(path: Path, header: str) -> dict[str, list[tuple[str, str]]]:
    """Each dataset's rows: the text as it stands, and the configuration's hash."""
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
    # Only "\n" ends a line here: splitlines would also cut at other characters.
    lines = [f"{line}\n" for line in text.removesuffix("\n").split("\n")]
    if lines[0] != header:
        raise UserError(
            f"{path} has other columns than runs have; move it away, or write to "
            "another file"
        )
    columns = next(csv.reader([header]))
    place = columns.index("dataset"), columns.index("config_hash")
    found: dict[str, list[tuple[str, str]]] = {}
    reader = csv.reader(lines[1:])
    start = 0
    for row in reader:
        if len(row) != len(columns):
            raise UserError(
                f"{path}, line {start + 2}, has {len(row)} cells instead of "
                f"{len(columns)}; restore the file"
            )
        dataset, key = (row[index] for index in place)
        raw = "".join(lines[1 + start : 1 + reader.line_num])
        found.setdefault(dataset, []).append((raw, key))
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
    files.write_text(configs_path(path), text)


def _by_dataset(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} of {name}" for name, number in sorted(counts.items()))
