"""Trains by the processes that `torchrun` starts; one of them kills itself once.

The first run is left alone. In the second, process 1 kills itself in the middle of the
second epoch; after torchrun has started all processes again, both runs are finished.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from tempergat.training.loop import Loop
from tempergat.training.single import run_file
from tests.support.run_settings import config, train_run

KILLED_AT = 5


def train(folder: Path) -> None:
    settings = config(
        "temp_gated",
        epochs=3,
        feature_dropout=0.3,
        attention_dropout=0.3,
        norm="batch",
        training="sampled",
        fanout=(3, 2),
        batch_size=10,
    )
    train_run(settings, folder, seed=4)


def die_once(self: Loop, batch: Any, step: Any = Loop.train_on) -> None:
    is_first_start = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if os.environ["RANK"] == "1" and is_first_start and self.global_step == KILLED_AT:
        os.kill(os.getpid(), signal.SIGKILL)
    step(self, batch)


if __name__ == "__main__":
    torch.set_num_threads(1)
    # A checkpoint after every step.
    run_file._MOST_SECONDS_BETWEEN_CHECKPOINTS = 0.0
    train(Path(sys.argv[1]))
    Loop.train_on = die_once  # type: ignore[method-assign]
    train(Path(sys.argv[2]))
    print("finished after restart", os.environ["TORCHELASTIC_RESTART_COUNT"])
