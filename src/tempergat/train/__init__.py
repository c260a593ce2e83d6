"""Training: one run, or many seeds at once."""

from tempergat.train.config import (
    SELECTION_RULES,
    Recipe,
    RunConfig,
    load_recipe,
    recipe_names,
)
from tempergat.train.grouping import group_size
from tempergat.train.run import RunResult, train_group

__all__ = [
    "SELECTION_RULES",
    "Recipe",
    "RunConfig",
    "RunResult",
    "group_size",
    "load_recipe",
    "recipe_names",
    "train_group",
]
