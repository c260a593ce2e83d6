"""The search for the recipe of graphs of which nothing is known."""

from tempergat.study.default_recipe.page import (
    DefaultReport,
    default_json,
    reproduce_default,
)
from tempergat.study.default_recipe.plan import (
    PLAN_FILE,
    DefaultPlan,
    confirmation_file,
    load_default_plan,
    runs_file,
)
from tempergat.study.default_recipe.search import search_result
from tempergat.study.default_recipe.second_plan import (
    SecondPlan,
    load_second_plan,
    second_file,
    second_graphs,
)

__all__ = [
    "PLAN_FILE",
    "DefaultPlan",
    "DefaultReport",
    "SecondPlan",
    "confirmation_file",
    "default_json",
    "load_default_plan",
    "load_second_plan",
    "reproduce_default",
    "runs_file",
    "search_result",
    "second_file",
    "second_graphs",
]
