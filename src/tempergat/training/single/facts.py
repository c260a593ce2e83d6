"""What a checkpoint says about its run, besides the tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

import tempergat
from tempergat.base import UserError, first_validation_error
from tempergat.training.config import Count, RunConfig
from tempergat.training.single.checkpoint import TRAIN_AGAIN


class Facts(BaseModel):
    """The settings and the origin of a run.

    Checkpoints of version 0.1.0 lack the fields that have a default.

    Attributes:
        config: The settings.
        seed: The run's seed.
        fingerprint: The fingerprint of the dataset.
        in_channels: Features per node.
        num_classes: Number of classes.
        dataset: The name of the dataset.
        device: The name of the device.
        versions: Versions of the packages that took part.
        gate_means: The mean gate of each layer at the selected epoch.
        time_s: Seconds spent so far. The checkpoint of a finished run does not keep
            them, so that the same run always makes the same file.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    config: RunConfig
    seed: int
    fingerprint: str
    in_channels: Count
    num_classes: Count
    dataset: str = ""
    device: str = "cpu"
    versions: dict[str, str] = {}
    gate_means: list[float | None] = []
    time_s: float = 0.0


def read_facts(path: Path, values: Mapping[str, Any]) -> Facts:
    """The facts of a checkpoint.

    Args:
        path: The checkpoint, for error messages.
        values: Its facts as plain JSON values.

    Raises:
        UserError: A fact is missing or out of its range, or a setting is unknown.
    """
    try:
        return Facts.model_validate(values)
    except ValidationError as error:
        reason = first_validation_error(error, Facts)
        raise UserError(
            f"{path} is not a checkpoint that this version can use ({reason}); "
            f"{_remedy(values)}"
        ) from error


def _remedy(values: Mapping[str, Any]) -> str:
    versions = values.get("versions")
    made_by = versions.get("tempergat") if isinstance(versions, dict) else None
    if not isinstance(made_by, str) or made_by == tempergat.__version__:
        return TRAIN_AGAIN
    return (
        f"it was made by tempergat {made_by[:40]} and this is "
        f"{tempergat.__version__}, so use that version, or {TRAIN_AGAIN}"
    )
