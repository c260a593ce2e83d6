"""What is tried and how it is judged, fixed in files before anything is run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    model_validator,
)

from tempergat.base import UserError, first_validation_error, read_yaml
from tempergat.nn import BACKBONES, BackboneName
from tempergat.training import Recipe, load_recipe

Setting = bool | int | float
CALIBRATION = "calibration"


class _Plan(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Grid(_Plan):
    """Settings the paper leaves open on one dataset, simplest first.

    Attributes:
        base: The recipe that holds all other settings.
        normalize_features: Tried for all baselines alike.
        weight_decay: Tried for the attention baselines.
        attention_dropout: Likewise.
    """

    base: str
    normalize_features: list[bool] = Field(min_length=1)
    weight_decay: list[float] = Field(min_length=1)
    attention_dropout: list[float] = Field(min_length=1)

    def cells(self) -> Iterator[dict[str, Setting]]:
        """Every combination, in the order of the lists."""
        names = ("normalize_features", "weight_decay", "attention_dropout")
        for values in itertools.product(*(getattr(self, name) for name in names)):
            yield dict(zip(names, values, strict=True))


class CalibrationPlan(_Plan):
    """What is tried on the baselines.

    Attributes:
        criterion: How a cell is chosen; there is this one way.
        first_seed: The first of the seeds.
        seeds: How many there are.
        datasets: The grid of each dataset.
    """

    criterion: Literal["least_sum_of_squared_standard_errors"]
    first_seed: NonNegativeInt
    seeds: int = Field(ge=2)
    datasets: dict[str, Grid]

    @property
    def run_seeds(self) -> range:
        """The seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)


class SearchPlan(_Plan):
    """The search for good settings on one dataset.

    Attributes:
        dataset: Name of the dataset; None for graphs of one's own.
        base: The recipe that holds the settings that are not searched.
        expected: Test score expected of the best method afterwards, in percent.
        trials: How many settings are tried for each backbone.
        sampler_seed: Seed of what proposes them.
        first_seed: The first of the seeds each trial trains with.
        seeds: How many there are.
        space: The values that may be proposed, by block of the recipe and setting.
    """

    dataset: str | None
    base: str
    expected: float | None = None
    trials: PositiveInt
    sampler_seed: NonNegativeInt
    first_seed: NonNegativeInt
    seeds: PositiveInt
    space: dict[Literal["attention", "gcn"], dict[str, list[Setting]]]

    @model_validator(mode="after")
    def _values_to_try(self) -> Self:
        for block in ("attention", "gcn"):
            if block not in self.space:
                raise ValueError(f"space has no {block}; give the values to try there")
        for block, settings in self.space.items():
            for name, values in settings.items():
                if not values or len(set(values)) < len(values):
                    raise ValueError(
                        f"space.{block}.{name} is {values}; give values, each once"
                    )
        return self

    @property
    def run_seeds(self) -> range:
        """The seeds each trial trains with."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def values_for(self, backbone: BackboneName) -> dict[str, list[Setting]]:
        """The values to try for one backbone."""
        return self.space[BACKBONES[backbone].recipe_block]


def load_calibration(path: Path | None = None) -> CalibrationPlan:
    """Read what is tried on the baselines, the project's own unless told.

    Raises:
        UserError: It cannot be read or used.
    """
    plan = _read(CalibrationPlan, path or _shipped(CALIBRATION))
    for grid in plan.datasets.values():
        _refuse_reported_seeds(plan.run_seeds, load_recipe(grid.base), grid.base)
    return plan


def load_search(name_or_path: str | Path) -> SearchPlan:
    """Read the search of a dataset, by its name or from a file of one's own.

    Raises:
        UserError: There is none, or it cannot be read or used.
    """
    name = str(name_or_path)
    if Path(name).suffix in (".yaml", ".yml"):
        file: Traversable = Path(name)
    elif name in search_names():
        file = _shipped(name)
    else:
        raise UserError(
            f"there is no search for {name!r}; choose one of "
            f"{', '.join(search_names())}, or give a YAML file with --search"
        )
    plan = _read(SearchPlan, file)
    _refuse_reported_seeds(plan.run_seeds, load_recipe(plan.base), plan.base)
    return plan


def search_names() -> list[str]:
    """The datasets with a search that comes with the package."""
    folder = resources.files("tempergat") / "searches"
    names = [entry.name.removesuffix(".yaml") for entry in folder.iterdir()]
    return sorted(name for name in names if name != CALIBRATION)


def _shipped(name: str) -> Traversable:
    return resources.files("tempergat") / "searches" / f"{name}.yaml"


def _refuse_reported_seeds(seeds: range, recipe: Recipe, name: str) -> None:
    if seeds.start < recipe.runs:
        raise UserError(
            f"first_seed is {seeds.start}, but seeds below {recipe.runs} are reported "
            f"with recipe {name}; start from {recipe.runs} or above"
        )


_Model = TypeVar("_Model", bound=_Plan)


def _read(model: type[_Model], file: Traversable) -> _Model:
    values = read_yaml(file, str(file))
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{file}: {first_validation_error(error, model)}") from error
