"""A sampled run that is stopped within an epoch, through its checkpoint file."""

from pathlib import Path

import pytest
import torch

from tempergat.training.single import checkpoint
from tempergat.training.single.training import train_model
from tests.support.run_settings import config, small_graph

CPU = torch.device("cpu")


class Killed(BaseException):
    pass


def test_a_run_stopped_within_an_epoch_makes_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(
        "temp_gated",
        training="sampled",
        fanout=(3, 2),
        batch_size=5,
        epochs=3,
        feature_dropout=0.3,
    )
    train_model(small_graph(), settings, 1, CPU, tmp_path / "whole")
    module = "tempergat.training.single.run_file._MOST_SECONDS_BETWEEN_CHECKPOINTS"
    monkeypatch.setattr(module, 0.0)
    write, writes = checkpoint.write, []

    def write_and_stop(*arguments: object) -> None:
        write(*arguments)
        writes.append(arguments)
        if len(writes) == 4:
            raise Killed

    monkeypatch.setattr(checkpoint, "write", write_and_stop)
    with pytest.raises(Killed):
        train_model(small_graph(), settings, 1, CPU, tmp_path / "stopped")
    saved = checkpoint.read(tmp_path / "stopped" / checkpoint.CHECKPOINT_NAME)
    assert int(saved.tensors["steps_done"]) == 3
    train_model(small_graph(), settings, 1, CPU, tmp_path / "stopped")
    whole, stopped = (
        (tmp_path / name / checkpoint.CHECKPOINT_NAME).read_bytes()
        for name in ("whole", "stopped")
    )
    assert whole == stopped
