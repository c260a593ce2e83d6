"""The second plan, read from results/default_recipe/second_plan.yaml."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from tempergat.base import read_yaml, validated
from tempergat.study.default_recipe.plan import FOLDER, cell_config
from tempergat.study.search import Setting
from tempergat.study.when import load_plan as load_when_plan
from tempergat.training import RunConfig

SECOND_PLAN_FILE = f"{FOLDER}/second_plan.yaml"


class SecondPlan(BaseModel):
    """Several candidates on several splits, and when one becomes the default.

    Attributes:
        base: The recipe that holds all other settings.
        methods: The baselines.
        first_seed: The first seed.
        seeds: The number of runs; on a graph with several splits, one on each in turn.
        present: The cell of the recipe that a better one would replace.
        candidates: The cells that may replace it, from the simplest on.
        only_measured: Cells that are reported beside them and cannot be chosen.
        with_own_recipe: Graphs that do not use the default; they count in the choice of
            the candidate, but not in the conditions.
        largest_loss: The points that a family may lose.
        far_below: A run goes wrong whose validation score is more than these points
            below the median of the runs it belongs to.
        least_families: How many families the conditions need.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    base: str
    methods: list[str] = Field(min_length=1)
    first_seed: int = Field(ge=0)
    seeds: int = Field(ge=1)
    present: dict[str, Setting]
    candidates: list[dict[str, Setting]] = Field(min_length=1)
    only_measured: list[dict[str, Setting]] = []
    with_own_recipe: list[str]
    largest_loss: float = Field(ge=0.0)
    far_below: float = Field(gt=0.0)
    least_families: int = Field(ge=1)

    @property
    def run_seeds(self) -> range:
        """The seeds of every configuration."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def cells(self) -> list[dict[str, Setting]]:
        """The present cell, the candidates, then those that are only measured."""
        return [self.present, *self.candidates, *self.only_measured]

    def config(self, cell: int, method: str) -> RunConfig:
        """The settings of a baseline in a cell, by the cell's place in `cells`."""
        return cell_config(self.base, self.cells[cell], method)

    def configs(self) -> tuple[RunConfig, ...]:
        """The settings of every baseline and cell."""
        return tuple(
            self.config(cell, method)
            for method in self.methods
            for cell in range(len(self.cells))
        )


def load_second_plan(results: Path) -> SecondPlan | None:
    """Read the plan; None where there is none.

    Raises:
        UserError: It cannot be read or used.
    """
    path = results / SECOND_PLAN_FILE
    if not path.is_file():
        return None
    return validated(SecondPlan, read_yaml(path, str(path)), str(path))


def second_graphs(results: Path) -> dict[str, str]:
    """The family of every graph: those of results/when/plan.yaml.

    Raises:
        UserError: That plan cannot be read or used.
    """
    return {graph.name: graph.family for graph in load_when_plan(results).real.graphs}


def second_file(graph: str) -> str:
    """The file below results/ that holds the second plan's runs on a graph."""
    return f"{FOLDER}/second/{graph}.csv"
