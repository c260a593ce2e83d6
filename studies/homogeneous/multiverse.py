"""The gains at settings that the paper leaves open, under three selection rules.

A cell is a choice of these settings and a rule that selects a run's epoch. The settings
are those of the recipes, chosen for each dataset, or one choice for all datasets.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from studies.homogeneous import beside
from studies.homogeneous.beside import DATASETS, GATED, RULES, moments, paper_moments
from studies.results import read_plan, read_runs
from tempergat.nn import METHODS
from tempergat.stats import Summary, deviation_distance, summarise, welch

PLAN = read_plan("calibration")
RECIPES = "the recipes"


class Cell(NamedTuple):
    """Settings, the rule, and their distance from the paper's baselines."""

    distance: float
    settings: str
    rule: str


@cache
def calibration_runs() -> pd.DataFrame:
    """The runs with one choice of settings for all datasets."""
    return pd.concat(read_runs(f"calibration/{name}.csv") for name in DATASETS)


@cache
def _one_choice(rule: str) -> pd.DataFrame:
    """Test scores by variation, settings, dataset and seed; methods as columns.

    Runs without a variation have an empty one.
    """
    runs = calibration_runs().copy()
    runs["variation"] = ""
    for name, settings in PLAN["variations"].items():
        for setting, value in settings.items():
            runs.loc[runs[setting] == value, "variation"] = name
    features = runs["normalize_features"].map({True: "rows sum to one, "}).fillna("")
    drops = runs["attention_dropout"].gt(0.0).map({True: "", False: "no dropout, "})
    runs["settings"] = features + drops + runs["weight_decay"].map("decay {:g}".format)
    index = ["variation", "settings", "dataset", "seed"]
    return 100.0 * runs.pivot(index=index, columns="method", values=f"{rule}_test")


def scores(settings: str, dataset: str, rule: str) -> pd.DataFrame:
    """Test scores in percent: a row for each seed, a column for each method."""
    if settings == RECIPES:
        return beside.scores(dataset, rule)
    return _one_choice(rule).loc["", settings, dataset]


@cache
def cells() -> list[Cell]:
    """The cells where all variants were run, nearest to the paper's baselines first."""
    found = []
    for rule in RULES:
        whole = _one_choice(rule).loc[""].dropna()
        names = [RECIPES, *whole.index.unique("settings")]
        found += [Cell(_distance(name, rule), name, rule) for name in names]
    return sorted(found)


def _distance(settings: str, rule: str) -> float:
    """Root mean square distance of the baselines' means and deviations."""
    squares = []
    for dataset in DATASETS:
        found = scores(settings, dataset, rule)
        for method in PLAN["baselines"]:
            ours, theirs = moments(found[method]), paper_moments(dataset, method)
            squares.append(welch(ours, theirs).in_standard_errors ** 2)
            squares.append(deviation_distance(*ours[1:], *theirs[1:]) ** 2)
    return math.sqrt(sum(squares) / len(squares))


def held(cell: Cell, methods: list[str], datasets: tuple[str, ...]) -> tuple[int, int]:
    """How many of the paper's gains of some variants hold in a cell, and of how many.

    A gain holds where our runs show the variant to be better than its backbone.
    """
    verdicts = [
        beside.gains(scores(cell.settings, name, cell.rule))[method].verdict
        for name in datasets
        for method in methods
        if beside.paper_gain(name, method) > 0.0
    ]
    return verdicts.count("better"), len(verdicts)


def correlation(cell: Cell, *, within: bool = False) -> float:
    """Pearson's correlation of the gated variants' gains with the paper's.

    Args:
        cell: The cell.
        within: Whether each dataset's average gain is taken away first.
    """
    pairs = []
    for name in DATASETS:
        found = beside.gains(scores(cell.settings, name, cell.rule))
        gains = np.array(
            [[found[m].difference, beside.paper_gain(name, m)] for m in GATED]
        )
        pairs.append(gains - gains.mean(axis=0) * within)
    return float(np.corrcoef(np.concatenate(pairs).T)[0, 1])


@cache
def gains(dataset: str, method: str) -> dict[Cell, Summary]:
    """A variant's gain over its backbone in every cell that has it, nearest first."""
    found = {}
    for cell in cells():
        of_cell = scores(cell.settings, dataset, cell.rule)
        if method in of_cell:
            gain = of_cell[method] - of_cell[METHODS[method].backbone]
            # Equal scores have a difference of 0, whatever their last bits.
            found[cell] = summarise(gain.round(9))
    return found


def change(variation: str, dataset: str, rule: str) -> tuple[int, Summary]:
    """How many methods a variation concerns, and their average change of the score."""
    every, nearest = _one_choice(rule), _nearest_choice()
    varied, plain = (every.loc[name, nearest, dataset] for name in (variation, ""))
    changes = (varied - plain).dropna(how="all").dropna(axis=1)
    return changes.shape[1], summarise(changes.mean(axis=1))


def _nearest_choice() -> str:
    return next(cell.settings for cell in cells() if cell.settings != RECIPES)
