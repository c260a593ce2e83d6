"""A run that the tests train whole, and in a process of its own that they kill."""

from collections.abc import Callable
from pathlib import Path

import torch

from tests.support.run_settings import config, train_run

PROGRAM = """
import sys
from pathlib import Path
from tests.support.interrupted_run import train
train(Path(sys.argv[1]), lambda epoch: print(epoch, flush=True))
"""


def train(folder: Path, on_epoch: Callable[[int], None] | None = None) -> None:
    torch.set_num_threads(1)
    train_run(
        config("temp_gated", epochs=40, feature_dropout=0.3, attention_dropout=0.3),
        folder,
        seed=4,
        checkpoint_every=7,
        on_epoch=on_epoch,
    )
