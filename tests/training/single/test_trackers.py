"""Trackers are optional; without their packages the remedy is named."""

import importlib.util
from pathlib import Path

import pytest

from tempergat.base.errors import UserError
from tempergat.training import TensorBoardTracker, WandbTracker


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@pytest.mark.skipif(installed("tensorboard"), reason="tensorboard is installed")
def test_without_tensorboard_the_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tempergat\[track\]"):
        TensorBoardTracker(tmp_path)


@pytest.mark.skipif(installed("wandb"), reason="wandb is installed")
def test_without_wandb_the_extra_is_named() -> None:
    with pytest.raises(UserError, match=r"tempergat\[track\]"):
        WandbTracker("project", {})


@pytest.mark.skipif(not installed("tensorboard"), reason="tensorboard is absent")
def test_tensorboard_files_are_written(tmp_path: Path) -> None:
    tracker = TensorBoardTracker(tmp_path)
    tracker.log(1, {"loss": 0.5})
    tracker.finish()
    assert list(tmp_path.glob("events.out.tfevents.*"))


@pytest.mark.skipif(not installed("wandb"), reason="wandb is absent")
def test_wandb_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    tracker = WandbTracker("project", {"method": "gat"}, tmp_path)
    tracker.log(1, {"loss": 0.5})
    tracker.finish()
    assert list(tmp_path.glob("wandb/offline-run-*"))
