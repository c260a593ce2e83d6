"""One run from Python or the command: train, save, load and predict."""

from tempergat.training.single.checkpoint import CHECKPOINT_NAME
from tempergat.training.single.loading import from_pretrained, load_model, predict
from tempergat.training.single.model import TrainedModel
from tempergat.training.single.trackers import (
    TensorBoardTracker,
    Tracker,
    WandbTracker,
)
from tempergat.training.single.training import train, train_single

__all__ = [
    "CHECKPOINT_NAME",
    "TensorBoardTracker",
    "Tracker",
    "TrainedModel",
    "WandbTracker",
    "from_pretrained",
    "load_model",
    "predict",
    "train",
    "train_single",
]
