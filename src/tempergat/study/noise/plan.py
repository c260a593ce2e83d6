"""What the study of controlled noise consists of, fixed beforehand in a recipe."""

from __future__ import annotations

from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tempergat.base import UserError, first_validation_error, read_yaml
from tempergat.nn.methods import METHODS
from tempergat.training import Recipe, RunConfig

NoiseKind = Literal["none", "gaussian", "missing"]

Strength = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class Condition(NamedTuple):
    """One kind and strength of noise.

    `level` is sigma for Gaussian noise and rho for missing coordinates; `tau`, for the
    latter alone, is the standard deviation of what stands in their place. sigma and
    tau are in units of the root mean square of the feature matrix.
    """

    noise: NoiseKind = "none"
    level: float = 0.0
    tau: float | None = None

    @property
    def words(self) -> str:
        """The condition in words."""
        if self.noise == "gaussian":
            return f"sigma = {self.level:g}"
        if self.noise == "missing":
            return f"rho = {self.level:g}, tau = {self.tau:g}"
        return "no noise"


CLEAN = Condition()


class NoisePlan(BaseModel):
    """The study's methods, noise levels and seeds.

    Attributes:
        datasets: Names in the catalogue.
        seeds: How many; each has noise of its own.
        methods: Keys of ``METHODS``.
        gaussian: Values of sigma, rising from 0.
        missing: Values of rho, rising from 0.
        tau: Values of tau.
        decay_temperature: Whether theta is subject to weight decay; both may be run.
        matmul_precision: torch's precision of matrix products on a GPU.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    datasets: tuple[str, ...]
    seeds: Annotated[int, Field(ge=2)]
    methods: tuple[str, ...]
    gaussian: tuple[Strength, ...]
    missing: tuple[Annotated[float, Field(ge=0.0, le=1.0)], ...]
    tau: tuple[Strength, ...]
    decay_temperature: tuple[bool, ...]
    matmul_precision: Literal["highest", "high"]

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
        if len(levels) < 3 or levels[0] != 0 or not rising:
            raise ValueError("give three levels or more, rising from 0")
        return levels

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


def load_plan(path: Path | None = None) -> NoisePlan:
    """Reads a plan: the one that comes with the package, or one's own.

    Raises:
        UserError: The file cannot be read or is no such plan.
    """
    shipped = resources.files("tempergat") / "recipes" / "studies" / "noise.yaml"
    values = read_yaml(path or shipped, f"the plan {path}")
    try:
        return NoisePlan.model_validate(values)
    except ValidationError as error:
        raise UserError(
            f"plan {path}: {first_validation_error(error, NoisePlan)}"
        ) from error
