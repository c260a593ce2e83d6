"""The trials of a search, read from its runs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tempergat.study.engine import Run

# So many of the best trials show what a search might as well have chosen.
NEAR_BEST = 5


@dataclass(frozen=True)
class TrialMeans:
    """Mean scores of one setting over the seeds of a search, in percent.

    Attributes:
        config_hash: The setting.
        val: Mean validation score; by this the search chooses.
        test: Mean test score; it chooses nothing.
    """

    config_hash: str
    val: float
    test: float


def trial_means(
    runs: Sequence[Run], method: str, seeds: Collection[int]
) -> list[TrialMeans]:
    """The settings that were tried for a method, the best validation score first.

    Args:
        runs: Runs on one graph, also of other methods and seeds.
        method: The method.
        seeds: The seeds of the search. Settings without a finished run of every seed
            are left out, as the search does not choose them.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        if run.method == method and run.seed in seeds and run.status == "done":
            scores = run.scores["best_val_accuracy"]
            found.setdefault(run.config_hash, []).append((scores.val, scores.test))
    trials = []
    for key, scores_of_one in found.items():
        if len(scores_of_one) == len(seeds):
            val, test = 100.0 * np.mean(scores_of_one, axis=0)
            trials.append(TrialMeans(key, float(val), float(test)))
    return sorted(trials, key=lambda trial: -trial.val)


def near_best_tests(trials: Sequence[TrialMeans]) -> tuple[float, float]:
    """Lowest and highest test mean of the five best trials by validation score.

    Trials that tie with the fifth count too.

    Args:
        trials: Trials of one method, the best first.
    """
    fifth = trials[:NEAR_BEST][-1].val
    tests = [trial.test for trial in trials if trial.val >= fifth - 1e-9]
    return min(tests), max(tests)
