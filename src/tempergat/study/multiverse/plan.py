"""The plan of the joint calibration and of the multiverse, fixed before its runs."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tempergat.base import UserError, first_validation_error, read_yaml
from tempergat.nn import METHODS
from tempergat.training import Recipe, RunConfig, load_recipe

FOLDER = "multiverse"
PLAN_FILE = f"{FOLDER}/plan.yaml"


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


class MultiversePlan(BaseModel):
    """The settings to try, the seeds, and what counts as near the paper.

    Attributes:
        first_seed: The first seed.
        seeds: The number of seeds.
        datasets: The datasets.
        baselines: The methods that are compared with the paper.
        normalize_features: Values to try.
        attention_dropout: For each convention of dropout, the rate on the attention
            weights by dataset.
        weight_decay: Values to try.
        not_rejected_p: The least p of a cell that is not rejected.
        near_standard_errors: The largest distance of a cell that counts as near.
        least_trainings: The number of trainings in which variants are run even if they
            are not near.
        variants: The methods that are run in these trainings.
        variations: Settings that baselines do not have, by name, to be varied.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    first_seed: int = Field(ge=0)
    seeds: int = Field(ge=2)
    datasets: list[str] = Field(min_length=1)
    baselines: list[str] = Field(min_length=1)
    normalize_features: list[bool] = Field(min_length=1)
    attention_dropout: dict[str, dict[str, float]]
    weight_decay: list[float] = Field(min_length=1)
    not_rejected_p: float = Field(gt=0.0, lt=1.0)
    near_standard_errors: float = Field(gt=0.0)
    least_trainings: int = Field(ge=1)
    variants: list[str]
    variations: dict[str, dict[str, bool]]

    @property
    def run_seeds(self) -> range:
        """The seeds of every configuration."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def trainings(self) -> Iterator[Training]:
        """Every training, in the order in which they are run."""
        for values in itertools.product(
            self.normalize_features, self.attention_dropout, self.weight_decay
        ):
            yield Training(*values)

    def config(
        self,
        training: Training,
        dataset: str,
        method: str,
        variation: str | None = None,
    ) -> RunConfig:
        """The settings of one method on one dataset.

        Args:
            training: The settings that the paper leaves open.
            dataset: One of the plan's.
            method: The method.
            variation: A name of `variations`; none when left out.
        """
        changes = {} if variation is None else self.variations[variation]
        return (
            paper_recipe(dataset)
            .config_for(method)
            .with_changes(
                normalize_features=training.normalize_features,
                attention_dropout=self.attention_dropout[training.dropout][dataset],
                weight_decay=training.weight_decay,
                **changes,
            )
        )

    def varied_methods(self, variation: str) -> list[str]:
        """The variants that a variation changes anything for."""
        needs_temperature = "decay_temperature" in self.variations[variation]
        return [
            name
            for name in self.variants
            if (METHODS[name].temperature if needs_temperature else METHODS[name].gate)
        ]


@cache
def paper_recipe(dataset: str) -> Recipe:
    """The paper's settings for a dataset; read once, for hundreds of configurations."""
    return load_recipe(f"paper/{dataset}")


def load_multiverse(results: Path) -> MultiversePlan:
    """Read the plan.

    Args:
        results: The project's folder of results.

    Raises:
        UserError: It cannot be read or used.
    """
    path = results / PLAN_FILE
    values = read_yaml(path, str(path))
    try:
        return MultiversePlan.model_validate(values)
    except ValidationError as error:
        reason = first_validation_error(error, MultiversePlan)
        raise UserError(f"{path}: {reason}") from error


def runs_file(dataset: str) -> str:
    """The file below results/ that holds a dataset's runs."""
    return f"{FOLDER}/{dataset}.csv"
