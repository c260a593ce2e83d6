"""The runs of the noise study as CSV, one row each, and back.

The first columns have the values at the selected epoch. Where values were recorded at
further epochs, columns like `temperature_1_at_100` and `temperature_1_at_best_val_loss`
follow, and the scores by each selection rule. A row has no configuration and no
fingerprint, only a hash of both, in the column `study`. So a run that was read from a
CSV has a short configuration: what the row says, and that hash.
"""

import csv
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tempergat.base import UserError, write_into
from tempergat.study.noise.moment_columns import (
    LAYER_QUANTITIES,
    further_cells,
    further_layers,
    further_scores,
    layer_values,
)
from tempergat.study.noise.variants import decays_temperature
from tempergat.training import (
    CLEAN,
    Condition,
    LayerRecord,
    Run,
    Scores,
    canonical_json,
)

_SPLITS = ("train", "val", "test")


def write_noise_csv(
    path: Path, runs: Sequence[Run], epochs: Sequence[int] = ()
) -> None:
    """Write one or more runs in a fixed order: the whole file, or nothing.

    Args:
        path: The file.
        runs: The runs.
        epochs: The fixed epochs of the runs' records; without any, a row has
            only the values at the selected epoch.
    """
    ordered = sorted(runs, key=_order)
    depth = max(
        len(layer_values(run, quantity))
        for run in ordered
        for quantity in LAYER_QUANTITIES
    )
    rows = [_to_row(run, depth) for run in ordered]
    if epochs:
        rows = [
            row | further_cells(run, depth, epochs)
            for row, run in zip(rows, ordered, strict=True)
        ]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_into(path.parent, path.name, buffer.getvalue())


def read_noise_csv(path: Path) -> list[Run]:
    """The runs of a CSV; none where there is no file.

    Raises:
        UserError: The file is not a CSV of noise runs.
    """
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8")
        return [_to_run(row) for row in csv.DictReader(io.StringIO(text))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is not a table of noise runs ({error}); move it away, or choose "
            "another folder with --out"
        ) from error


def study_of(run: Run) -> str:
    """Hash of the graph and the settings of a run, as in the column `study`."""
    if "study" in run.config:
        return str(run.config["study"])
    config = canonical_json(dict(run.config))
    return study_hash(run.fingerprint, config, run.matmul_precision)


def study_hash(fingerprint: str, config: str, precision: str) -> str:
    """The hash in the column `study`.

    Args:
        fingerprint: Of the dataset.
        config: The configuration as canonical JSON.
        precision: torch's precision of matrix products.
    """
    text = f"{fingerprint} {config} {precision}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _order(run: Run) -> tuple[Any, ...]:
    condition = run.condition or CLEAN
    return (
        decays_temperature(run) is False,
        run.method,
        condition.noise,
        condition.tau or 0.0,
        condition.level,
        run.seed,
    )


def _to_row(run: Run, depth: int) -> dict[str, Any]:
    condition, scores = run.condition or CLEAN, run.selected_scores
    row: dict[str, Any] = {
        "dataset": run.dataset,
        "method": run.method,
        "decay_temperature": _yes_or_no(decays_temperature(run)),
        "noise": condition.noise,
        "level": f"{condition.level:g}",
        "tau": "" if condition.tau is None else f"{condition.tau:g}",
        "seed": run.seed,
        "epoch": run.selected_epoch,
    }
    for split in _SPLITS:
        row[split] = "" if scores is None else _number(getattr(scores, split))
    for quantity in LAYER_QUANTITIES:
        values = layer_values(run, quantity)
        for layer in range(depth):
            cell = _number(values[layer]) if layer < len(values) else ""
            row[f"{quantity}_{layer + 1}"] = cell
    return row | {
        "time_s": f"{run.time_s:.3g}",
        "study": study_of(run),
        "device": run.device,
        "torch": run.versions["torch"],
        "reason": run.reason or "",
        "numerics": run.numerics,
        "selection": run.config["selection"],
    }


def _to_run(row: dict[str, str]) -> Run:
    config: dict[str, Any] = {
        "method": row["method"],
        "selection": row["selection"],
        "study": row["study"],
    }
    if row["decay_temperature"]:
        config["decay_temperature"] = {"yes": True, "no": False}[
            row["decay_temperature"]
        ]
    failed = not row["epoch"]
    scores = {} if failed else {config["selection"]: _scores_of(row)}
    return Run(
        dataset=row["dataset"],
        fingerprint="",
        method=row["method"],
        seed=int(row["seed"]),
        config=config,
        scores=further_scores(row) | scores,
        status="failed" if failed else "done",
        reason=(row["reason"] or "not recorded") if failed else None,
        condition=_condition_of(row),
        selected=LayerRecord(
            **{
                attribute: _layers_of(row, quantity)
                for quantity, attribute in LAYER_QUANTITIES.items()
            }
        ),
        time_s=float(row["time_s"]),
        versions={"torch": row["torch"]},
        device=row["device"],
        layers_at_epochs=further_layers(row),
        numerics=int(row["numerics"]),
    )


def _scores_of(row: dict[str, str]) -> Scores:
    return Scores(int(row["epoch"]), *(float(row[split]) for split in _SPLITS))


def _condition_of(row: dict[str, str]) -> Condition | None:
    noise, tau = row["noise"], row["tau"]
    if noise == "none":
        return None
    if noise not in ("gaussian", "missing"):
        raise ValueError(f"there is no noise {noise!r}")
    return Condition(
        noise,  # type: ignore[arg-type]
        float(row["level"]),
        float(tau) if tau else None,
    )


def _layers_of(row: dict[str, str], quantity: str) -> tuple[float, ...]:
    columns = [name for name in row if name.rpartition("_")[0] == quantity]
    return tuple(float(row[name]) for name in columns if row[name])


def _yes_or_no(flag: bool | None) -> str:
    return {True: "yes", False: "no", None: ""}[flag]


def _number(value: float) -> str:
    return f"{value:.7g}"
