"""The rows of the study: one per run, in three CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from tempergat.base import UserError, csv_text, write_into

Stage = Literal["generated", "search", "real"]
# A graph, a backbone and an arm.
Case = tuple[str, str, str]
CSV_OF_STAGE: dict[Stage, str] = {
    "generated": "when/generated.csv",
    "search": "when/search.csv",
    "real": "when/real.csv",
}


@dataclass(frozen=True, order=True)
class Key:
    """What identifies a run within its stage.

    Attributes:
        graph: The graph's name.
        backbone: What the arm is built on.
        arm: The arm's name.
        setting: The number of the searched setting, -1 where none was searched.
        split: The number of the split.
        seed: The seed.
    """

    graph: str
    backbone: str
    arm: str
    setting: int
    split: int
    seed: int


@dataclass(frozen=True)
class Row:
    """One run.

    Attributes:
        key: What identifies it.
        val: Validation score in points; None for a run that failed.
        test: Test score in points; None for a run that failed.
        epoch: The selected epoch.
        parameters: How many parameters were trained.
        temperatures: The learned temperature of each layer.
        gates: The mean gate of each layer.
        device: Where it was trained.
        time_s: Its share of the time of its group.
    """

    key: Key
    val: float | None
    test: float | None
    epoch: int | None
    parameters: int
    temperatures: tuple[float, ...]
    gates: tuple[float, ...]
    device: str
    time_s: float


def case_of(key: Key) -> Case:
    """The graph, backbone and arm of a run."""
    return key.graph, key.backbone, key.arm


def read_rows(path: Path) -> list[Row]:
    """The rows of a file; none where there is no file.

    Raises:
        UserError: It is not such a file.
    """
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    try:
        return [_row(line) for line in lines]
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(
            f"{path} is not a table of this study ({error}); restore it, or delete it "
            "and run again"
        ) from error


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Writes rows in the order of their keys, in place of what the file held."""
    ordered = sorted(rows, key=lambda row: row.key)
    write_into(path.parent, path.name, csv_text([_line(row) for row in ordered]))


def _line(row: Row) -> dict[str, object]:
    return {
        **asdict(row.key),
        "val": None if row.val is None else round(row.val, 4),
        "test": None if row.test is None else round(row.test, 4),
        "epoch": row.epoch,
        "parameters": row.parameters,
        "temperatures": _joined(row.temperatures),
        "gates": _joined(row.gates),
        "device": row.device,
        "time_s": round(row.time_s, 3),
    }


def _row(line: dict[str, str]) -> Row:
    words = {field.name: line[field.name] for field in fields(Key)}
    numbers = {name: int(words[name]) for name in ("setting", "split", "seed")}
    key = Key(words["graph"], words["backbone"], words["arm"], **numbers)
    return Row(
        key,
        float(line["val"]) if line["val"] else None,
        float(line["test"]) if line["test"] else None,
        int(line["epoch"]) if line["epoch"] else None,
        int(line["parameters"]),
        _numbers(line["temperatures"]),
        _numbers(line["gates"]),
        line["device"],
        float(line["time_s"]),
    )


def _joined(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4f}" for value in values)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split())
