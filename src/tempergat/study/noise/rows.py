"""The published CSV of the noise study, one row per run."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tempergat.base import UserError, write_text
from tempergat.training import Condition

LAYER_QUANTITIES = ("temperature", "gate", "spread", "entropy")
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class NoiseRow:
    """One run, as the CSV has it.

    Attributes:
        decay_temperature: Whether theta was decayed; None without temperature.
        reason: Why the run failed; empty if it did not.
        epoch: The selected epoch; None for a failed run.
        scores: Fractions by split at that epoch; empty for a failed run.
        layers: By quantity one value per layer, at that epoch, in evaluation, over
            all nodes: `temperature`, mean `gate`, `spread` of e/T and relative
            `entropy` of attention; quantities a method does not have are left out.
        study: Hash of the graph and the settings.
    """

    dataset: str
    method: str
    decay_temperature: bool | None
    condition: Condition
    seed: int
    reason: str = ""
    epoch: int | None = None
    scores: dict[str, float] = field(default_factory=dict)
    layers: dict[str, tuple[float, ...]] = field(default_factory=dict)
    time_s: float = 0.0
    study: str = ""
    device: str = ""
    torch: str = ""

    @property
    def variant(self) -> str:
        """The method, and whether its theta went undecayed."""
        undecayed = self.decay_temperature is False
        return f"{self.method}, theta undecayed" if undecayed else self.method

    @property
    def key(self) -> tuple[str, Condition, int, str]:
        """What no two rows share."""
        return (self.variant, self.condition, self.seed, self.study)


def write_rows(path: Path, rows: Iterable[NoiseRow]) -> None:
    """Writes one row or more in a fixed order, the whole file or nothing."""
    ordered = sorted(
        rows,
        key=lambda row: (
            row.decay_temperature is False,
            row.method,
            row.condition.noise,
            row.condition.tau or 0.0,
            row.condition.level,
            row.seed,
        ),
    )
    depth = max(
        (len(values) for row in ordered for values in row.layers.values()), default=0
    )
    lines = [_encode(row, depth) for row in ordered]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    write_text(path, buffer.getvalue())


def read_rows(path: Path) -> list[NoiseRow]:
    """The rows of a file; none where there is no file.

    Raises:
        UserError: The file is not such a table.
    """
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8")
        return [_decode(cells) for cells in csv.DictReader(io.StringIO(text))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is not a table of noise runs ({error}); move it away, or choose "
            "another folder with --out"
        ) from error


def _encode(row: NoiseRow, depth: int) -> dict[str, Any]:
    cells: dict[str, Any] = {
        "dataset": row.dataset,
        "method": row.method,
        "decay_temperature": _word(row.decay_temperature),
        "noise": row.condition.noise,
        "level": f"{row.condition.level:g}",
        "tau": "" if row.condition.tau is None else f"{row.condition.tau:g}",
        "seed": row.seed,
        "epoch": row.epoch,
    }
    cells |= {name: _number(row.scores.get(name)) for name in SPLITS}
    for quantity in LAYER_QUANTITIES:
        values: Sequence[float | None] = row.layers.get(quantity, ())
        for layer in range(depth):
            value = values[layer] if layer < len(values) else None
            cells[f"{quantity}_{layer + 1}"] = _number(value)
    cells |= {
        "time_s": f"{row.time_s:.3g}",
        "study": row.study,
        "device": row.device,
        "torch": row.torch,
        "reason": row.reason,
    }
    return cells


def _decode(cells: dict[str, str]) -> NoiseRow:
    noise, tau = cells["noise"], cells["tau"]
    if noise not in ("none", "gaussian", "missing"):
        raise ValueError(f"there is no noise {noise!r}")
    layers: dict[str, tuple[float, ...]] = {}
    for quantity in LAYER_QUANTITIES:
        names = [name for name in cells if name.rpartition("_")[0] == quantity]
        values = tuple(float(cells[name]) for name in names if cells[name])
        if values:
            layers[quantity] = values
    return NoiseRow(
        dataset=cells["dataset"],
        method=cells["method"],
        decay_temperature={"yes": True, "no": False}.get(cells["decay_temperature"]),
        condition=Condition(
            noise,  # type: ignore[arg-type]
            float(cells["level"]),
            float(tau) if tau else None,
        ),
        seed=int(cells["seed"]),
        reason=cells["reason"],
        epoch=int(cells["epoch"]) if cells["epoch"] else None,
        scores={name: float(cells[name]) for name in SPLITS if cells[name]},
        layers=layers,
        time_s=float(cells["time_s"]),
        study=cells["study"],
        device=cells["device"],
        torch=cells["torch"],
    )


def _word(flag: bool | None) -> str:
    return {True: "yes", False: "no", None: ""}[flag]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"
