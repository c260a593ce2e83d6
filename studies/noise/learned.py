"""Learned values of the second study by layer and epoch, and their trends."""

import json
from functools import cache
from typing import NamedTuple

import pandas as pd

from studies.noise.trends import page_p, rises
from studies.results import read_plan, read_runs, runs_path
from tempergat.nn import METHODS
from tempergat.stats import ALPHA, holm

# Folders of results: the first study, the second, and the test on fresh seeds.
FIRST, SECOND, FRESH = "noise/first", "noise/epochs", "noise/confirm"
PLAN = read_plan("noise")["epochs"]
DATASETS = tuple(read_plan("noise")["datasets"])
# In the figure alone, once they have runs.
FURTHER = tuple(read_plan("noise")["further"])
GATED = [m for m in PLAN["methods"] if METHODS[m].gate and METHODS[m].in_paper]
# The paper's methods with temperature, and the same without.
TEMPERED = {
    "temp_only": "gat",
    "temp_gated": "gated",
    "gated_temp": "gated_first",
    "temp_only_v2": "gatv2",
    "temp_gated_v2": "gated_v2",
    "gated_temp_v2": "gated_first_v2",
}
# A learned value, a kind of noise and the name of its level, by quantity.
QUANTITIES = {
    "temperature": ("temperatures", "gaussian", "sigma"),
    "flatness": ("entropy", "gaussian", "sigma"),
    "gate": ("gate_means", "missing", "rho"),
}
# Moments: a selection rule, or an epoch.
LAST, SELECTED, BEST_LOSS = "last_epoch", "best_val_accuracy", "best_val_loss"
FIXED = [str(epoch) for epoch in PLAN["epochs"]]
CELLS = [(dataset, layer) for dataset in DATASETS for layer in (1, 2)]


@cache
def read_study(study: str, datasets: tuple[str, ...] = DATASETS) -> pd.DataFrame:
    """The runs with theta decayed, of seeds that have all their runs on a dataset."""
    files = [read_runs(f"{study}/{name}.csv") for name in datasets]
    runs = pd.concat(files, ignore_index=True)
    runs = runs[runs["decay_temperature"]]
    finished = runs.groupby(["dataset", "seed"])["test"].transform("count")
    return runs[finished == finished.max()]


class Trend(NamedTuple):
    """Page's test of a quantity over levels, on one dataset and in one layer."""

    values: pd.DataFrame  # a row for each seed, a column for each level
    p: float  # corrected over all datasets and layers
    direction: str  # rises, falls or no trend


def shown_datasets() -> tuple[str, ...]:
    """The datasets of the plan, and further ones that have runs."""
    have = [d for d in FURTHER if runs_path(f"{SECOND}/{d}.csv").exists()]
    return (*DATASETS, *have)


@cache
def learned_values() -> pd.DataFrame:
    """The runs of the second study with each layer's learned values at all moments."""
    runs = read_study(SECOND, shown_datasets())
    found = []
    for _, run in runs.iterrows():
        at_epochs = json.loads(run["layers_at_epochs"])
        epochs = {rule: run[f"{rule}_epoch"] for rule in (LAST, SELECTED, BEST_LOSS)}
        epochs |= {epoch: epoch for epoch in FIXED}
        found.append(
            {
                f"{name}_{layer}_{moment}": value
                for moment, epoch in epochs.items()
                for name, values in at_epochs[str(epoch)].items()
                for layer, value in enumerate(values, 1)
            }
        )
    return runs.join(pd.DataFrame(found, runs.index))


@cache
def mean_values(methods: tuple[str, ...], noise: str) -> pd.DataFrame:
    """All learned values by dataset, seed and level, mean over methods and tau."""
    runs = learned_values()
    runs = runs[runs["method"].isin(methods) & runs["noise"].isin(["none", noise])]
    return runs.groupby(["dataset", "seed", "level"]).mean(numeric_only=True)


def over_levels(quantity: str, dataset: str, layer: int, moment: str) -> pd.DataFrame:
    """A quantity at one moment: a row for each seed, a column for each level."""
    column, noise, _ = QUANTITIES[quantity]
    values = mean_values(tuple(GATED if quantity == "gate" else TEMPERED), noise)
    if quantity == "flatness":
        values = values - mean_values(tuple(TEMPERED.values()), noise)
    name = f"{column}_{layer}_{moment}"
    if name not in values:
        return pd.DataFrame()
    return values[name].loc[dataset].unstack("level").dropna(how="all")


@cache
def trends(quantity: str, moment: str = LAST) -> dict[tuple[str, int], Trend]:
    """The trend of a quantity on each dataset and in each layer, at one moment."""
    tables = [over_levels(quantity, *cell, moment) for cell in CELLS]
    found = {}
    corrected = holm([page_p(table.to_numpy()) for table in tables])
    for cell, table, p in zip(CELLS, tables, corrected, strict=True):
        direction = "rises" if rises(table.to_numpy()) else "falls"
        found[cell] = Trend(table, p, direction if p < ALPHA else "no trend")
    return found
