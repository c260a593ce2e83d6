"""What is compared with what, and with which settings."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tempergat.base import UserError
from tempergat.nn import METHODS
from tempergat.training import Recipe, RunConfig, recipe_for

MOST_RUNS = 100_000

MethodsArgument = str | Iterable[str] | None


@dataclass(frozen=True)
class Plan:
    """What is compared with what, and with which settings.

    Attributes:
        methods: Names of the methods, in the order of the table.
        configs: The settings of each.
        seeds: One run of each method per seed.
        baseline: The method all others are compared with; None where each variant is
            compared with its backbone.
        recipe: Name of the recipe.
    """

    methods: tuple[str, ...]
    configs: tuple[RunConfig, ...]
    seeds: tuple[int, ...]
    baseline: str | None
    recipe: str

    @property
    def selection(self) -> str:
        """The rule that chooses the epoch whose score counts."""
        return self.configs[0].selection

    @property
    def total_runs(self) -> int:
        """Runs of all methods together."""
        return len(self.methods) * len(self.seeds)

    @property
    def against(self) -> dict[str, str]:
        """The baseline of each method that has one."""
        pairs = {name: self.baseline or METHODS[name].backbone for name in self.methods}
        return {name: other for name, other in pairs.items() if name != other}

    @property
    def without_baseline(self) -> list[str]:
        """Methods whose baseline is not among those compared."""
        return [n for n, other in self.against.items() if other not in self.methods]


def make_plan(
    graph: object,
    methods: MethodsArgument = None,
    runs: int | Literal["paper"] = 10,
    recipe: str | Path | Recipe | None = None,
    baseline: str | None = None,
) -> Plan:
    """Check and complete what the user asked for, before any work is done.

    Args:
        graph: The graph or its name, which chooses the recipe.
        methods: As for `compare`.
        runs: Seeds per method, or `paper` for as many as the recipe says.
        recipe: As for `compare`.
        baseline: As for `compare`.

    Raises:
        UserError: A method or recipe does not exist, the number of runs is not
            positive, or the recipe's methods select epochs by different rules.
    """
    names = _method_names(methods)
    if baseline is not None and baseline not in names:
        names = [baseline, *names]
    recipe_name, settings = recipe_for(graph, recipe)
    configs = [settings.config_for(name) for name in names]
    rules = sorted({config.selection for config in configs})
    if len(rules) > 1:
        raise UserError(
            f"recipe {recipe_name} selects epochs by {' and by '.join(rules)}; scores "
            "are comparable under one rule only, so use one selection throughout"
        )
    count = settings.runs if runs == "paper" else runs
    if not isinstance(count, int) or not 1 <= count <= MOST_RUNS:
        raise UserError(f"runs is {runs!r}; give a number from 1 to {MOST_RUNS}")
    return Plan(
        methods=tuple(names),
        configs=tuple(configs),
        seeds=tuple(range(count)),
        baseline=baseline,
        recipe=recipe_name,
    )


def _method_names(methods: MethodsArgument) -> list[str]:
    if methods is None:
        return [name for name, method in METHODS.items() if method.in_paper]
    names = [methods] if isinstance(methods, str) else list(dict.fromkeys(methods))
    if not names:
        raise UserError("there are no methods; name some, like gat and temp_gated")
    return names
