"""Plans of searches and calibrations, fixed in files before anything is trained."""

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

Setting = bool | int | float | str | None
CALIBRATION = "calibration"
# The search of `compare` with `tune`, for any graph.
ANY_GRAPH = "any_graph"


class _Plan(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Grid(_Plan):
    """Settings that the paper does not state on one dataset, simplest first.

    Attributes:
        base: The recipe that holds all other settings.
        normalize_features: Values to try for all baselines.
        weight_decay: Values to try for the attention baselines.
        attention_dropout: Values to try for the attention baselines.
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
    """A calibration: the settings to try on the baselines.

    Attributes:
        criterion: How a cell of the grid is chosen; only one way is supported.
        first_seed: The first seed.
        seeds: The number of seeds.
        datasets: The grid of each dataset.
    """

    criterion: Literal["least_sum_of_squared_standard_errors"]
    first_seed: NonNegativeInt
    seeds: int = Field(ge=2)
    datasets: dict[str, Grid]

    @property
    def run_seeds(self) -> range:
        """The seeds of every cell."""
        return range(self.first_seed, self.first_seed + self.seeds)


class SearchPlan(_Plan):
    """A search for good settings on one dataset.

    Attributes:
        dataset: Name of the dataset; None for user graphs.
        base: The recipe that holds the settings that are not searched.
        expected: Test score expected of the best method afterwards, in percent.
        trials: The number of trials for each backbone.
        sampler_seed: Seed of the sampler that proposes settings.
        first_seed: The first seed of every trial.
        seeds: The number of seeds of every trial.
        space: The values to try, by block of the recipe and setting.
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
    """Read the plan of a calibration.

    Args:
        path: A YAML file; the plan that comes with the package when left out.

    Raises:
        UserError: It cannot be read or used.
    """
    plan = _read(CalibrationPlan, path or _shipped(CALIBRATION))
    for grid in plan.datasets.values():
        _refuse_reported_seeds(plan.run_seeds, load_recipe(grid.base), grid.base)
    return plan


def load_search(name_or_path: str | Path) -> SearchPlan:
    """Read the plan of a search.

    Args:
        name_or_path: A dataset with a search in the package, or a YAML file.

    Raises:
        UserError: There is no such search, or it cannot be read or used.
    """
    name = str(name_or_path)
    if Path(name).suffix in (".yaml", ".yml"):
        file: Traversable = Path(name)
    elif name in search_names():
        file = _shipped(name)
    else:
        raise UserError(
            f"there is no search for {name!r}; choose one of "
            f"{', '.join(search_names())}"
        )
    plan = _read(SearchPlan, file)
    _refuse_reported_seeds(plan.run_seeds, load_recipe(plan.base), plan.base)
    return plan


def search_for_any_graph() -> SearchPlan:
    """The values that `compare` with `tune` tries; it has its own number of trials."""
    return _read(SearchPlan, _shipped(ANY_GRAPH))


def search_names() -> list[str]:
    """The datasets whose search comes with the package."""
    folder = resources.files("tempergat") / "searches"
    names = [entry.name.removesuffix(".yaml") for entry in folder.iterdir()]
    return sorted(set(names) - {CALIBRATION, ANY_GRAPH})


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


def setting_word(value: Setting) -> str:
    """A setting's value as tables and sentences show it: `yes`, `none`, `0.005`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
