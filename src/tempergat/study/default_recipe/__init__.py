"""The search for the recipe of graphs of which nothing is known."""

from tempergat.study.default_recipe.page import DefaultReport, reproduce_default
from tempergat.study.default_recipe.plan import (
    PLAN_FILE,
    DefaultPlan,
    load_default_plan,
    runs_file,
)

__all__ = [
    "PLAN_FILE",
    "DefaultPlan",
    "DefaultReport",
    "load_default_plan",
    "reproduce_default",
    "runs_file",
]
