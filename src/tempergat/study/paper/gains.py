"""Our gains beside the paper's: their difference, equivalence, power, joint tests."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tempergat.nn import METHODS
from tempergat.stats import (
    ALPHA,
    Summary,
    Welch,
    equivalence_p,
    paired_power,
    summarise,
    welch,
)
from tempergat.study.paper.numbers import BACKBONE_OF, PaperCell
from tempergat.study.results import DatasetResult

# Differences in points of accuracy that are called none.
MARGINS = (0.5, 1.0)
GATED = tuple(name for name in BACKBONE_OF if METHODS[name].gate is not None)
TEMPERATURE_ALONE = tuple(name for name in BACKBONE_OF if METHODS[name].gate is None)


@dataclass(frozen=True)
class GainTest:
    """Our gain of a variant over its backbone beside the paper's.

    Attributes:
        method: The variant.
        versus_paper: Our gain minus the paper's. The paper gives no pairs, so its gain
            has the standard error of two independent means.
        equivalent: For each margin, the p of TOST that the two gains are equal within
            it.
        power: Probability that our test would show a gain as large as the paper's, at
            the level of the first step of Holm's correction; None where the paper has
            no gain.
    """

    method: str
    versus_paper: Welch
    equivalent: dict[float, float]
    power: float | None


@dataclass(frozen=True)
class JointTest:
    """All variants of a dataset together, ours minus the paper's.

    Attributes:
        quantity: What is averaged over the variants: scores, or gains.
        below: How many variants lie below the paper's.
        variants: The number of variants.
        test: The average difference, if the paper's means err independently.
        p_correlated: The p of the same, if they err all in the same direction, which
            makes the paper's average as uncertain as it can be.
    """

    quantity: str
    below: int
    variants: int
    test: Welch
    p_correlated: float | None


def gain_tests(
    result: DatasetResult, paper: Mapping[str, PaperCell]
) -> dict[str, GainTest]:
    """Our gains beside the paper's, by variant.

    Args:
        result: Our result on one dataset.
        paper: The paper's cells of the dataset by method.
    """
    gains = {
        method: differences
        for method, backbone in BACKBONE_OF.items()
        if len(differences := _differences(result, method, backbone)) > 1
    }
    tests = {}
    for method, differences in gains.items():
        ours = summarise(differences)
        if ours.mean is None or not ours.std:
            continue
        theirs = _paper_gain(paper, {method: 1.0, BACKBONE_OF[method]: -1.0})
        test = welch((ours.mean, ours.std, ours.runs), theirs)
        gain = theirs[0]
        tests[method] = GainTest(
            method,
            test,
            {
                margin: equivalence_p(
                    test.difference, test.standard_error, test.degrees or 1.0, margin
                )
                for margin in MARGINS
            },
            paired_power(gain, ours.std, ours.runs, ALPHA / len(gains))
            if gain > 0
            else None,
        )
    return tests


def pooled_gain(result: DatasetResult, methods: Sequence[str]) -> Summary | None:
    """The average gain of several variants, over seeds that all of them have.

    Returns:
        The summary over seeds; None where fewer than two seeds have all runs.
    """
    if any(m not in result.methods for m in methods):
        return None
    weights: dict[str, float] = {}
    for method in methods:
        weights[method] = weights.get(method, 0.0) + 1 / len(methods)
        backbone = BACKBONE_OF[method]
        weights[backbone] = weights.get(backbone, 0.0) - 1 / len(methods)
    values = _contrast(result, weights)
    return summarise(values) if len(values) > 1 else None


def joint_tests(
    result: DatasetResult, paper: Mapping[str, PaperCell]
) -> tuple[JointTest, ...]:
    """The variants' scores and gains, each averaged, ours minus the paper's."""
    variants = [m for m in BACKBONE_OF if m in result.methods]
    if len(variants) < len(BACKBONE_OF):
        return ()
    share = 1 / len(variants)
    scores = dict.fromkeys(variants, share)
    gains = dict(scores)
    for method in variants:
        backbone = BACKBONE_OF[method]
        gains[backbone] = gains.get(backbone, 0.0) - share
    found = []
    for quantity, weights in (("scores", scores), ("gains", gains)):
        ours = summarise(_contrast(result, weights))
        if ours.mean is None or not ours.std:
            return ()
        below = sum(
            _mean_of(result, method, paper, with_backbone=quantity == "gains") < 0
            for method in variants
        )
        mine = (ours.mean, ours.std, ours.runs)
        found.append(
            JointTest(
                quantity,
                below,
                len(variants),
                welch(mine, _paper_gain(paper, weights)),
                welch(mine, _paper_gain(paper, weights, correlated=True)).p,
            )
        )
    return tuple(found)


def _mean_of(
    result: DatasetResult,
    method: str,
    paper: Mapping[str, PaperCell],
    *,
    with_backbone: bool,
) -> float:
    """Our mean minus the paper's; of the gain, where the backbone is subtracted."""
    difference = float(np.mean(list(result[method].scores.values())))
    difference -= paper[method].mean
    if with_backbone:
        backbone = BACKBONE_OF[method]
        difference -= float(np.mean(list(result[backbone].scores.values())))
        difference += paper[backbone].mean
    return difference


def _differences(result: DatasetResult, method: str, backbone: str) -> list[float]:
    if method not in result.methods or backbone not in result.methods:
        return []
    return _contrast(result, {method: 1.0, backbone: -1.0})


def _contrast(result: DatasetResult, weights: Mapping[str, float]) -> list[float]:
    """A weighted sum of methods' scores, for every seed that all of them have."""
    scores = {method: result[method].scores for method in weights}
    seeds = set.intersection(*(set(of_one) for of_one in scores.values()))
    return [
        math.fsum(weight * scores[method][seed] for method, weight in weights.items())
        for seed in sorted(seeds)
    ]


def _paper_gain(
    paper: Mapping[str, PaperCell],
    weights: Mapping[str, float],
    *,
    correlated: bool = False,
) -> tuple[float, float, int]:
    """A weighted sum of the paper's means: its value, deviation and number of runs."""
    parts = [weight * paper[method].std for method, weight in weights.items()]
    std = math.fsum(map(abs, parts)) if correlated else math.hypot(*parts)
    return (
        math.fsum(weight * paper[method].mean for method, weight in weights.items()),
        std,
        min(paper[method].runs for method in weights),
    )
