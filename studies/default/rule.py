"""The rule of docs/default.md: per method and split, the recipe by validation."""

from functools import cache

import pandas as pd

from studies.default.study import REAL
from studies.results import read_plan, read_runs

METHODS = read_plan("default")["methods"]
RECIPES = ("plain", "default")


@cache
def runs() -> pd.DataFrame:
    """All runs on real graphs with one of the two recipes."""
    return with_recipe(pd.concat([read_runs(f"default/{graph}.csv") for graph in REAL]))


def with_recipe(every: pd.DataFrame) -> pd.DataFrame:
    """Those of some runs that have one of the two recipes, with its name."""
    found = every.copy()
    residual, norm = found["residual"].astype(bool), found["norm"].fillna("none")
    found["recipe"] = "other"
    found.loc[~residual & (norm == "none"), "recipe"] = "plain"
    found.loc[residual & (norm == "batch"), "recipe"] = "default"
    return found[found["recipe"] != "other"]


@cache
def scores_of(kind: str = "real") -> pd.DataFrame:
    """`chosen_of` all runs on the real graphs, or on the generated ones."""
    if kind == "real":
        return chosen_of(runs())
    return chosen_of(with_recipe(read_runs("default/generated.csv")))


def chosen_of(those: pd.DataFrame) -> pd.DataFrame:
    """Mean test scores by graph and method: with each recipe, and with the chosen one.

    Per method and split, the recipe with the better mean validation score is chosen; on
    a tie it is `plain`. No run failed.
    """
    keys = ["dataset", "method", "split"]
    means = those.groupby([*keys, "recipe"])[["val", "test"]].mean()
    means = means.unstack("recipe").round(9)
    test = means["test"].copy()
    takes_default = means["val", "default"] > means["val", "plain"]
    test["chosen"] = test["default"].where(takes_default, test["plain"])
    test["share"] = 100.0 * takes_default
    # Every split has as many runs as any other of its graph.
    found = test.groupby(level=[0, 1]).mean()
    found["behind"] = found[[*RECIPES]].max(axis=1) - found["chosen"]
    return found
