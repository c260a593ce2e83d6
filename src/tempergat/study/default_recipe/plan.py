"""The plan of the search, read from results/default_recipe/plan.yaml."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from tempergat.base import read_yaml, validated
from tempergat.study.search import Setting
from tempergat.training import RunConfig, load_recipe

FOLDER = "default_recipe"
PLAN_FILE = f"{FOLDER}/plan.yaml"


class Confirmation(BaseModel):
    """The runs that decide whether the chosen cell becomes the recipe.

    Attributes:
        first_seed: The first seed.
        seeds: The number of seeds.
        least_families: Of how many families all runs must be there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    first_seed: int = Field(ge=0)
    seeds: int = Field(ge=1)
    least_families: int = Field(ge=1)

    @property
    def run_seeds(self) -> range:
        """The seeds of both cells."""
        return range(self.first_seed, self.first_seed + self.seeds)


class DefaultPlan(BaseModel):
    """The settings to try on the baselines, and the graphs.

    Attributes:
        base: The recipe that holds all other settings.
        methods: The baselines.
        first_seed: The first seed.
        seeds: The number of seeds.
        grid: The values to try, from the simplest on. `dropout` is that of features and
            of attention.
        present: The cell of the recipe that a better one would replace.
        confirmation: The runs that decide on it.
        families: The graphs of each family.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    base: str
    methods: list[str] = Field(min_length=1)
    first_seed: int = Field(ge=0)
    seeds: int = Field(ge=1)
    grid: dict[str, list[Setting]]
    present: dict[str, Setting]
    confirmation: Confirmation
    families: dict[str, list[str]]

    @property
    def run_seeds(self) -> range:
        """The seeds of every configuration."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def graphs(self) -> list[str]:
        """All graphs."""
        return [name for names in self.families.values() for name in names]

    def cells(self) -> list[dict[str, Setting]]:
        """Every combination of values, in the order of the lists."""
        return [
            dict(zip(self.grid, values, strict=True))
            for values in itertools.product(*self.grid.values())
        ]

    def config(self, cell: Mapping[str, Setting], method: str) -> RunConfig:
        """The settings of a baseline in a cell."""
        return cell_config(self.base, cell, method)

    def configs(self) -> Iterator[RunConfig]:
        """The settings of every cell and baseline."""
        for cell in self.cells():
            for method in self.methods:
                yield self.config(cell, method)


def load_default_plan(results: Path) -> DefaultPlan:
    """Read the plan.

    Raises:
        UserError: It cannot be read or used.
    """
    path = results / PLAN_FILE
    remedy = "run this in the project's folder, or name its results with --results"
    return validated(DefaultPlan, read_yaml(path, str(path), remedy), str(path))


def cell_config(base: str, cell: Mapping[str, Setting], method: str) -> RunConfig:
    """The settings of a baseline in a cell.

    Args:
        base: The recipe that holds all other settings.
        cell: The settings of the cell. `dropout` is that of features and of attention.
        method: The baseline.
    """
    config = load_recipe(base).config_for(method)
    changes = {name: v for name, v in cell.items() if name != "dropout"}
    if "dropout" in cell:
        changes["feature_dropout"] = cell["dropout"]
        if method != "gcn":
            changes["attention_dropout"] = cell["dropout"]
    return config.with_changes(**changes)


def confirmation_file(graph: str) -> str:
    """The file below results/ that holds the confirmation on a graph."""
    return f"{FOLDER}/confirmation/{graph}.csv"


def runs_file(graph: str) -> str:
    """The file below results/ that holds the runs on a graph."""
    return f"{FOLDER}/{graph}.csv"
