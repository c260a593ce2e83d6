"""Trains one run in a process of its own, which the tests kill."""

import sys
from pathlib import Path

import torch

from tests.support.run_settings import config, train_run


def train(folder: Path, epochs: int, report: bool) -> None:
    torch.set_num_threads(1)
    train_run(
        config("temp_gated", epochs=epochs, feature_dropout=0.3, attention_dropout=0.3),
        folder,
        seed=4,
        checkpoint_every=7,
        on_epoch=(lambda epoch: print(epoch, flush=True)) if report else None,
    )


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]), report=True)
