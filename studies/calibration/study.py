"""The paper's baselines with every choice of the settings that it leaves open."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import pandas as pd

from studies.results import read_csv, read_plan, read_runs
from studies.runner import Stage, Stages
from tempergat.training import Recipe, RunConfig, load_recipe

PLAN = read_plan("calibration")
GRAPHS = tuple(PLAN["datasets"])
SEEDS = range(PLAN["first_seed"], PLAN["first_seed"] + PLAN["seeds"])


@dataclass(frozen=True)
class Training:
    """One choice of the settings that the paper leaves open, for all datasets.

    Attributes:
        normalize_features: Whether each node's features are divided by their sum.
        dropout: The name of the convention of dropout.
        weight_decay: The weight decay.
    """

    normalize_features: bool
    dropout: str
    weight_decay: float

    @property
    def words(self) -> str:
        """The settings in words."""
        features = "rows sum to one" if self.normalize_features else "raw features"
        return f"{features}, dropout on {self.dropout}, decay {self.weight_decay:g}"

    def config(self, graph: str, method: str) -> RunConfig:
        """The settings of one method on one dataset."""
        return (
            _recipe(graph)
            .config_for(method)
            .with_changes(
                normalize_features=self.normalize_features,
                attention_dropout=PLAN["attention_dropout"][self.dropout][graph],
                weight_decay=self.weight_decay,
            )
        )


def trainings() -> Iterator[Training]:
    """Every training, in the order in which they are run."""
    names = ("normalize_features", "attention_dropout", "weight_decay")
    return (Training(*values) for values in product(*(PLAN[name] for name in names)))


def stages(graph: str) -> Stages:
    """The baselines in every training that the datasets before this leave near."""
    left = list(trainings())
    if graph != GRAPHS[0]:
        near = _cells().query("distance <= @PLAN['near_standard_errors']")
        left = [one for one in left if one.words in near.index.unique("training")]
    configs = [one.config(graph, name) for one in left for name in PLAN["baselines"]]
    yield Stage(f"calibration/{graph}.csv", graph, configs, SEEDS)


def near_trainings() -> list[Training]:
    """The trainings in which variants are run, nearest to the paper first."""
    whole = _cells().query("not partly")
    near = whole[whole["near"]].index.unique("training")
    nearest = list(whole.index.unique("training"))
    named = {one.words: one for one in trainings()}
    least = nearest[: PLAN["least_trainings"]]
    return [named[words] for words in nearest if words in near or words in least]


def _cells() -> pd.DataFrame:
    """The cells by the runs that are there now."""
    from studies.calibration import tables

    for kept in (read_csv, read_runs, tables.baselines, tables.cells):
        kept.cache_clear()
    return tables.cells()


@cache
def _recipe(graph: str) -> Recipe:
    return load_recipe(f"paper/{graph}")
