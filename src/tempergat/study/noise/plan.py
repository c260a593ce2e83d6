"""The plan of the noise study: its methods, noise levels and seeds, from a file."""

from __future__ import annotations

from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tempergat.base import UserError, first_validation_error, read_yaml
from tempergat.nn import METHODS
from tempergat.training import CLEAN, Condition, MatmulPrecision, Recipe, RunConfig

Strength = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class NoisePlan(BaseModel):
    """The study's methods, noise levels and seeds.

    Attributes:
        datasets: Names in the catalogue.
        seeds: How many; each draws its own noise.
        methods: Keys of ``METHODS``.
        gaussian: Values of sigma, rising from 0; 0 alone for no such noise.
        missing: Values of rho, rising from 0; 0 alone for none missing.
        tau: Values of tau.
        decay_temperature: Whether theta is subject to weight decay; both may be run.
        matmul_precision: torch's precision of matrix products on a GPU.
        first_seed: The first seed; the others follow it.
        epochs: Epochs at which the learned values are recorded as well, rising. The
            epochs that the selection rules choose, and the last one, are then too.
        feature_rms: The root mean square of the features, by dataset, for figures with
            sigma as an absolute number; a dataset may be left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    datasets: tuple[str, ...]
    seeds: Annotated[int, Field(ge=2)]
    methods: tuple[str, ...]
    gaussian: tuple[Strength, ...]
    missing: tuple[Annotated[float, Field(ge=0.0, le=1.0)], ...]
    tau: tuple[Strength, ...]
    decay_temperature: tuple[bool, ...]
    matmul_precision: MatmulPrecision
    first_seed: Annotated[int, Field(ge=0)] = 0
    epochs: tuple[Annotated[int, Field(ge=1)], ...] = ()
    feature_rms: dict[str, Strength] = Field(default_factory=dict)

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        for method in methods:
            if method not in METHODS:
                raise ValueError(f"unknown method {method!r}")
        return methods

    @field_validator("gaussian", "missing")
    @classmethod
    def _rising_from_zero(cls, levels: tuple[float, ...]) -> tuple[float, ...]:
        rising = all(low < high for low, high in pairwise(levels))
        if levels != (0,) and (len(levels) < 3 or levels[0] != 0 or not rising):
            raise ValueError("give three levels or more, rising from 0, or 0 alone")
        return levels

    @field_validator("epochs")
    @classmethod
    def _rising(cls, epochs: tuple[int, ...]) -> tuple[int, ...]:
        if not all(low < high for low, high in pairwise(epochs)):
            raise ValueError("give each epoch once, in rising order")
        return epochs

    @property
    def seed_numbers(self) -> range:
        """The seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Every condition once; that without noise belongs to both kinds."""
        return (
            CLEAN,
            *(Condition("gaussian", sigma) for sigma in self.gaussian[1:]),
            *(
                Condition("missing", rho, tau)
                for tau in self.tau
                for rho in self.missing[1:]
            ),
        )

    def configs(self, recipe: Recipe) -> list[RunConfig]:
        """The settings to train with: every method, then tempered ones once more.

        A method without temperature is trained once, whatever is decayed.
        """
        found = []
        for decay in self.decay_temperature:
            for method in self.methods:
                config = recipe.config_for(method)
                if METHODS[method].temperature is not None:
                    found.append(config.with_changes(decay_temperature=decay))
                elif decay == self.decay_temperature[0]:
                    found.append(config)
        return found


def load_plan(path: Path | None = None, seeds: int | None = None) -> NoisePlan:
    """Reads a plan.

    Args:
        path: A YAML file; the plan that comes with the package when left out.
        seeds: How many seeds, in place of the plan's.

    Raises:
        UserError: The file cannot be read or is not such a plan.
    """
    shipped = resources.files("tempergat") / "recipes" / "studies" / "noise.yaml"
    name = "the plan of the package" if path is None else f"the plan {path}"
    values = read_yaml(path or shipped, name)
    if seeds is not None and isinstance(values, dict):
        values = {**values, "seeds": seeds}
    try:
        return NoisePlan.model_validate(values)
    except ValidationError as error:
        raise UserError(
            f"{name}: {first_validation_error(error, NoisePlan)}"
        ) from error
