"""The search of `compare --tune`: settings of a method, tried one after another.

The sampler has a fixed seed, so the same scores lead to the same proposals in the same
order: a search that was stopped continues when it is run again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tempergat.base import UserError
from tempergat.nn import BACKBONES, METHODS
from tempergat.stats import Summary, summarise
from tempergat.training import Run, RunConfig, metric_of_settings

Setting = bool | int | float | str | None


# Seed of the sampler that proposes settings.
SAMPLER_SEED = 0
# The seeds that every trial trains with, on each split. Comparisons report seeds below
# 100,000, and with `tune` seeds from 200,000 on.
SEARCH_SEEDS = range(100_000, 100_002)
# Width, depth and epochs stay those of the recipe, so that all methods are of one size.
SPACE: Mapping[str, Sequence[Setting]] = {
    "learning_rate": (0.002, 0.005, 0.01, 0.02),
    "weight_decay": (0.0, 5.0e-5, 5.0e-4, 2.0e-3),
    "feature_dropout": (0.0, 0.2, 0.4, 0.6, 0.8),
    "attention_dropout": (0.0, 0.2, 0.5),
    # A residual and a norm cure a collapse to the largest class.
    "residual": (False, True),
    "norm": (None, "batch"),
}


def searched_values(
    method: str, *, is_own: bool = False
) -> Mapping[str, Sequence[Setting]]:
    """The values to try for a method; of a user's own module, what it has."""
    if is_own:
        return {name: SPACE[name] for name in ("learning_rate", "weight_decay")}
    if BACKBONES[METHODS[method].backbone].has_attention:
        return SPACE
    return {name: SPACE[name] for name in SPACE if name != "attention_dropout"}


@dataclass(frozen=True)
class Trial:
    """Settings that were tried for one method, and their scores.

    Attributes:
        method: The method that was trained.
        number: Number of the trial in the method's search, from 0.
        settings: The values tried.
        validation: Validation scores, as shown, at the selected epochs.
    """

    method: str
    number: int
    settings: Mapping[str, Setting]
    validation: Summary

    @property
    def score(self) -> float | None:
        """Mean validation score; None where a run failed, so it is not chosen."""
        return None if self.validation.failed else self.validation.mean


class Proposals:
    """The trials of one method's search.

    `ask` gives the settings of the next trial, and `tell` takes its runs. The first
    trial has the recipe's own settings.

    Args:
        config: The method's settings in the recipe.
        values: The values to try, by setting.
        sampler_seed: Seed of the sampler (Optuna's TPE).

    Raises:
        UserError: Optuna is missing.
    """

    def __init__(
        self,
        config: RunConfig,
        values: Mapping[str, Sequence[Setting]],
        sampler_seed: int,
    ) -> None:
        self._optuna = require_optuna()
        self._metric = metric_of_settings(config.metric)
        self._study = self._optuna.create_study(
            direction="maximize" if self._metric.better == "higher" else "minimize",
            sampler=self._optuna.samplers.TPESampler(seed=sampler_seed),
        )
        self._config = config
        self._values = values
        self._asked: Any = None
        self._settings: dict[str, Setting] = {}
        self.trials: list[Trial] = []

    @property
    def best(self) -> Trial:
        """The trial of best mean validation score, the first of equal ones.

        Where a run failed in every trial, the first: the recipe's own settings.
        """

        def merit(trial: Trial) -> float:
            score = trial.score
            return -math.inf if score is None else float(self._metric.merit(score))

        return max(self.trials, key=merit)

    def config_of(self, trial: Trial) -> RunConfig:
        """The method's settings in a trial."""
        return self._config.with_changes(**trial.settings)

    def ask(self) -> RunConfig:
        """The settings of the next trial."""
        if not self.trials:
            self._settings = {n: getattr(self._config, n) for n in self._values}
            return self._config
        self._asked = self._study.ask()
        self._settings = {
            # By index, so that the sampler knows which values are adjacent.
            name: choices[self._asked.suggest_int(name, 0, len(choices) - 1)]
            for name, choices in self._values.items()
        }
        return self._config.with_changes(**self._settings)

    def tell(self, runs: Sequence[Run]) -> Trial:
        """Takes the runs of the trial that was asked for last.

        Only their validation scores are looked at.
        """
        done = [run for run in runs if run.status == "done"]
        rule = self._config.selection
        scores = [self._metric.shown(run.scores[rule].val) for run in done]
        trial = Trial(
            self._config.method,
            len(self.trials),
            self._settings,
            summarise(scores, failed=len(runs) - len(done)),
        )
        if self._asked is not None and trial.score is None:
            self._study.tell(self._asked, state=self._optuna.trial.TrialState.FAIL)
        elif self._asked is not None:
            self._study.tell(self._asked, trial.score)
        self._asked = None
        self.trials.append(trial)
        return trial


def require_optuna() -> Any:
    """The module optuna, which proposes settings.

    Raises:
        UserError: It is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise UserError(
            "the search needs optuna, which is not installed; run "
            "pip install 'tempergat[tune]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def setting_word(value: Setting) -> str:
    """A setting's value as tables and sentences show it: `yes`, `none`, `0.005`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
