"""A gate and a temperature together, against the better of the two alone."""

import math
from typing import NamedTuple

import pandas as pd
from scipy.special import stdtrit

from studies.homogeneous.beside import PAPER
from tempergat.comparison.paper import BACKBONE_OF
from tempergat.nn import METHODS
from tempergat.stats import CONFIDENCE

COMBINED = [m for m in BACKBONE_OF if METHODS[m].gate and METHODS[m].temperature]


class Gain(NamedTuple):
    """A combination minus the better of its parts, with its 95 % interval."""

    difference: float
    low: float
    high: float


def gain(found: pd.DataFrame, method: str) -> Gain:
    """A combination minus the better of its parts over paired seeds.

    Which part has the higher true mean is not known, so the interval is of the smaller
    of two differences. Its lower end is the smaller lower end, as in Laska and
    Meisner's min test: that of the smaller true difference is too high in 2.5 % of
    studies at most. Either upper end may be too low, so each has half of that error.

    Args:
        found: Scores, a row for each seed and a column for each method.
        method: The combination.
    """
    error = (1.0 - CONFIDENCE) / 2
    means, lows, highs = [], [], []
    for part in parts(method, found):
        differences = (found[method] - found[part]).dropna()
        count, mean = len(differences), differences.mean()
        standard_error = differences.std() / math.sqrt(count)
        means.append(mean)
        lows.append(mean + stdtrit(count - 1, error) * standard_error)
        highs.append(mean - stdtrit(count - 1, error / 2) * standard_error)
    return Gain(min(means), min(lows), min(highs))


def parts(method: str, found: pd.DataFrame) -> tuple[str, str]:
    """The gate and the temperature of a combination alone.

    The paper has no gate before attention alone; without its runs the gate after
    attention takes its place.
    """
    whole = METHODS[method]
    alone = {
        (METHODS[name].gate, METHODS[name].temperature): name
        for name in found
        if METHODS[name].backbone == whole.backbone
    }
    gate = alone.get((whole.gate, None), alone["post", None])
    return gate, alone[None, whole.temperature]


def paper_gain(dataset: str, method: str) -> float:
    """A combination's mean minus that of the better of its parts in the paper."""
    means = PAPER[dataset]["mean"]
    return means[method] - max(
        means[part] for part in parts(method, means.to_frame().T)
    )
