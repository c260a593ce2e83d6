"""The gains at settings that the paper leaves open, under three selection rules."""

import math
from functools import cache
from typing import NamedTuple

import pandas as pd

from studies.homogeneous.beside import RULES, moments, paper_moments
from studies.results import read_plan, read_runs
from tempergat.nn import METHODS
from tempergat.stats import Summary, deviation_distance, summarise, welch

PLAN = read_plan("calibration")


class Cell(NamedTuple):
    """Settings that the paper leaves open, and their distance from its baselines."""

    distance: float
    training: str
    rule: str


@cache
def scores(rule: str) -> pd.DataFrame:
    """Test scores in percent by variation, dataset, training, seed; methods as columns.

    Runs without a variation have an empty one.
    """
    runs = pd.concat(read_runs(f"calibration/{name}.csv") for name in PLAN["datasets"])
    runs["variation"] = ""
    for name, settings in PLAN["variations"].items():
        for setting, value in settings.items():
            runs.loc[runs[setting] == value, "variation"] = name
    drops = runs["attention_dropout"] > 0.0
    trainings = (runs["normalize_features"], drops, runs["weight_decay"])
    runs["training"] = [str(values) for values in zip(*trainings, strict=True)]
    index = ["variation", "dataset", "training", "seed"]
    return 100.0 * runs.pivot(index=index, columns="method", values=f"{rule}_test")


@cache
def cells() -> list[Cell]:
    """The cells where all variants were run, nearest to the paper's baselines first."""
    return sorted(
        Cell(_distance(found), training, rule)
        for rule in RULES
        for training, found in scores(rule).loc[""].dropna().groupby("training")
    )


def _distance(found: pd.DataFrame) -> float:
    """Root mean square distance of the baselines' means and deviations."""
    squares = []
    for dataset in PLAN["datasets"]:
        for method in PLAN["baselines"]:
            ours = moments(found.loc[dataset][method])
            theirs = paper_moments(dataset, method)
            squares.append(welch(ours, theirs).in_standard_errors ** 2)
            squares.append(deviation_distance(*ours[1:], *theirs[1:]) ** 2)
    return math.sqrt(sum(squares) / len(squares))


@cache
def gains(dataset: str, method: str) -> dict[Cell, Summary]:
    """A variant's gain over its backbone in every cell, nearest first."""
    found = {}
    for cell in cells():
        of_cell = scores(cell.rule).loc["", dataset, cell.training]
        gain = of_cell[method] - of_cell[METHODS[method].backbone]
        # Equal scores have a difference of 0, whatever their last bits.
        found[cell] = summarise(gain.round(9))
    return found


def side(gain: Summary) -> str:
    """Where the interval of a gain is: above 0, below 0 or around it."""
    return "above" if gain.low > 0.0 else "below" if gain.high < 0.0 else "around"


def change(variation: str, dataset: str, rule: str) -> tuple[int, Summary]:
    """How many methods a variation concerns, and their average change of the score."""
    varied, plain = (scores(rule).loc[name, dataset] for name in (variation, ""))
    changes = (varied - plain).dropna(how="all").dropna(axis=1)
    return changes.shape[1], summarise(changes.mean(axis=1))
