"""Training: one run, or many seeds at once."""

from tempergat.training.config import SELECTION_RULES, RunConfig
from tempergat.training.hardware import (
    OutOfMemory,
    bytes_per_seed,
    choose_device,
    device_name,
    even_groups,
    explain_out_of_memory,
    free_memory,
    group_size,
)
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
from tempergat.training.run import train_group
from tempergat.training.seeds import seeded_weights
from tempergat.training.single import predict, train_single
from tempergat.training.source import callable_name, source_hash
from tempergat.training.trackers import TensorBoardTracker, Tracker, WandbTracker
from tempergat.training.user_modules import BuildModule

__all__ = [
    "NUMERICS",
    "SELECTION_RULES",
    "AttentionBlock",
    "BuildModule",
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
    "callable_name",
    "choose_device",
    "config_hash",
    "device_name",
    "even_groups",
    "explain_out_of_memory",
    "free_memory",
    "group_size",
    "load_recipe",
    "predict",
    "recipe_for",
    "recipe_names",
    "seeded_weights",
    "source_hash",
    "train_group",
    "train_single",
]
