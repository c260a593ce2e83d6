"""Training: one run, or many seeds at once."""

from tempergat.training.config import (
    SELECTION_RULES,
    Recipe,
    RunConfig,
    load_recipe,
    recipe_names,
)
from tempergat.training.devices import choose_device
from tempergat.training.grouping import even_groups, group_size
from tempergat.training.recipe_choice import recipe_for
from tempergat.training.run import RunResult, train_group
from tempergat.training.seeds import seeded_weights
from tempergat.training.single import predict, train_single
from tempergat.training.trackers import TensorBoardTracker, Tracker, WandbTracker

__all__ = [
    "SELECTION_RULES",
    "Recipe",
    "RunConfig",
    "RunResult",
    "TensorBoardTracker",
    "Tracker",
    "WandbTracker",
    "choose_device",
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
