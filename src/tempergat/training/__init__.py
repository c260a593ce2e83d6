"""Training: one run, or many seeds at once."""

from tempergat.training.config import SELECTION_RULES, RunConfig
from tempergat.training.devices import choose_device
from tempergat.training.grouping import bytes_per_seed, even_groups, group_size
from tempergat.training.recipes import (
    AttentionBlock,
    GcnBlock,
    Recipe,
    load_recipe,
    recipe_for,
    recipe_names,
)
from tempergat.training.record import (
    NUMERICS,
    Condition,
    LayerRecord,
    Run,
    Scores,
    config_hash,
)
from tempergat.training.run import OutOfMemory, device_name, train_group
from tempergat.training.seeds import seeded_weights
from tempergat.training.single import predict, train_single
from tempergat.training.trackers import TensorBoardTracker, Tracker, WandbTracker

__all__ = [
    "NUMERICS",
    "SELECTION_RULES",
    "AttentionBlock",
    "Condition",
    "GcnBlock",
    "LayerRecord",
    "OutOfMemory",
    "Recipe",
    "Run",
    "RunConfig",
    "Scores",
    "TensorBoardTracker",
    "Tracker",
    "WandbTracker",
    "bytes_per_seed",
    "choose_device",
    "config_hash",
    "device_name",
    "even_groups",
    "group_size",
    "load_recipe",
    "predict",
    "recipe_for",
    "recipe_names",
    "seeded_weights",
    "train_group",
    "train_single",
]
