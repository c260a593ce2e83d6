"""The search for the recipe of graphs of which nothing is known."""

from tempergat.study.default_recipe.page import DefaultReport, reproduce_default
from tempergat.study.default_recipe.plan import (
    PLAN_FILE,
    DefaultPlan,
    confirmation_file,
    load_default_plan,
    runs_file,
)
from tempergat.study.default_recipe.search import search_result

__all__ = [
    "PLAN_FILE",
    "DefaultPlan",
    "DefaultReport",
    "confirmation_file",
    "load_default_plan",
    "reproduce_default",
    "runs_file",
    "search_result",
]
