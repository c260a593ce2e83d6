"""The score of a constant answer, which every table shows beside the methods."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tempergat.training import Run, constant_score

# The name of its row in tables.
LARGEST_CLASS = "largest class"


@dataclass(frozen=True)
class LargestClass:
    """One class as the answer for every test node; no method, and never ranked.

    It is the class of most test nodes, those of all splits together: no other class,
    given as the answer on all splits, is right more often.

    Attributes:
        label: The class.
        scores: Its scores in percent by seed; by split where there are several.
        mean: Their mean, where every seed counts once, as in the mean of a method.
    """

    label: int
    scores: dict[int, float]
    mean: float


def find_largest_class(runs: Sequence[Run], metric: str) -> LargestClass | None:
    """The largest class and its scores; None where no run has a confusion matrix.

    Args:
        runs: The runs on one dataset.
        metric: The metric of the scores.
    """
    counts = {
        run.split: [sum(row) for row in run.confusion]
        for run in runs
        if run.confusion and any(map(any, run.confusion))
    }
    if not counts or len({len(of_split) for of_split in counts.values()}) > 1:
        return None
    label = int(np.sum(list(counts.values()), axis=0).argmax())
    by_split = {
        split: 100.0 * constant_score(metric, of_split, label)
        for split, of_split in sorted(counts.items())
    }
    by_seed = {
        seed: by_split[split]
        for seed, split in sorted({(run.seed, run.split) for run in runs})
        if split in by_split
    }
    several = len({run.split for run in runs}) > 1
    return LargestClass(
        label, by_split if several else by_seed, float(np.mean(list(by_seed.values())))
    )
