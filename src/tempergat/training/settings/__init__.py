"""The settings of runs: their values, the recipes they come from, a user's changes."""

from tempergat.training.settings.config import (
    SELECTION_RULES,
    Count,
    RunConfig,
    settings_on,
)
from tempergat.training.settings.overrides import METRICS, Overrides, make_overrides
from tempergat.training.settings.recipes import (
    AttentionBlock,
    GcnBlock,
    Recipe,
    load_recipe,
    metric_of,
    metric_of_run,
    recipe_for,
    recipe_names,
)

__all__ = [
    "METRICS",
    "SELECTION_RULES",
    "AttentionBlock",
    "Count",
    "GcnBlock",
    "Overrides",
    "Recipe",
    "RunConfig",
    "load_recipe",
    "make_overrides",
    "metric_of",
    "metric_of_run",
    "recipe_for",
    "recipe_names",
    "settings_on",
]
