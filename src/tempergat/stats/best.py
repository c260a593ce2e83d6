"""Which methods could be the best, and what may be said of a baseline.

A method is in the set of those that could be the best unless some other one is shown to
be better: multiple comparisons with the best (Hsu, 1984), here by one-sided paired
t-tests, corrected within each method for the number of the others. The true best is in
the set with a probability of 95 %. Where methods tie, each of them may be left out.

The correction is Bonferroni's: in simulations (docs/best.md) the distribution of the
largest correlated t holds the best too seldom with few pairs, and flips of signs make
larger sets with five pairs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from tempergat.stats.hypothesis_tests import ALPHA
from tempergat.stats.paired import (
    PairedComparison,
    PairScores,
    compare_to_baseline,
)

# What may be named as a number of seeds.
_SENSIBLE_PAIRS = (5, 6, 8, 10, 15, 20, 30, 40, 50, 75, 100)
# A number of pairs is enough where a test succeeds in four of five studies.
_POWER_QUANTILE = float(scipy.special.ndtri(0.8))
_DRAWS = 400
# The least difference of scores in percent that may be denied.
A_POINT = 1.0


@dataclass(frozen=True)
class BestSet:
    """The methods that could be the best (95 %).

    Attributes:
        members: Those not shown to be worse than some other, highest mean first.
        left_out: The others, highest mean first, each with the method that shows the
            most evidence against it. It is matched or beaten by some method.
        untested: Methods with a finished run and too few pairs, which no test says
            anything about.
        p: For each tested method, the corrected p that some other is better.
        pairs: Number of pairs that the means and the tests are over.
    """

    members: tuple[str, ...]
    left_out: Mapping[str, str]
    untested: tuple[str, ...]
    p: Mapping[str, float]
    pairs: int

    def standing(self, method: str) -> str:
        """`best` where it alone could be; `yes`, `left out` or `too few runs`."""
        if method in self.members:
            return "yes" if len(self.members) > 1 else "best"
        return "left out" if method in self.left_out else "too few runs"


@dataclass(frozen=True)
class Claim:
    """What tests say of "some method beats its baseline".

    Attributes:
        word: `shown` by a test; `at most a point` where every difference is shown to be
            below one point; `not shown` everywhere else.
        best: The comparison with the most evidence for it; None where none was made.
        reason: Why the pairs cannot decide, where they cannot.
        pairs_needed: About how many pairs would decide, by the observed spread; None
            where the claim is decided, and where no sensible number would.
    """

    word: Literal["shown", "at most a point", "not shown"]
    best: PairedComparison | None
    reason: Literal["", "too few pairs", "no spread"]
    pairs_needed: int | None


def shared_pairs(scores: Mapping[str, PairScores]) -> dict[str, PairScores]:
    """The scores that means and tests are over, highest mean first.

    They are over the pairs that all methods have, so that a method that fails on hard
    seeds gains nothing by it. A method that leaves the others less than half of their
    pairs, or less than two, is left out.

    Args:
        scores: For each method, its scores by seed or by split; None for a failed run.

    Returns:
        None for scores that are not used. Empty where no two methods have two pairs.
    """
    finished = {
        method: {key for key, score in of_method.items() if score is not None}
        for method, of_method in scores.items()
    }
    while len(finished) > 1:
        shared = set.intersection(*finished.values())
        without = {
            method: set.intersection(*(f for m, f in finished.items() if m != method))
            for method in finished
        }
        worst = max(without, key=lambda m: (len(without[m]), -len(finished[m])))
        is_fair = 2 * len(shared) >= len(without[worst]) or len(finished) == 2
        if len(shared) >= 2 and is_fair:
            kept = {
                m: {k: s if k in shared else None for k, s in scores[m].items()}
                for m in finished
            }
            means = dict(zip(kept, _table(kept).mean(axis=0).round(9), strict=True))
            return {m: kept[m] for m in sorted(kept, key=lambda m: -means[m])}
        del finished[worst]
    return {}


def best_set(
    scores: Mapping[str, PairScores], test_to_train: float = 0.0, step: float = 0.0
) -> BestSet | None:
    """The methods that could be the best.

    Args:
        scores: For each method, its scores by seed or by split; None for a failed run.
        test_to_train: Test nodes per training node, for scores on splits that share
            training nodes.
        step: What one test node changes in a score; see `compare_pairs`.

    Returns:
        None where no two methods have two pairs.
    """
    used = shared_pairs(scores)
    if not used:
        return None
    methods, table = list(used), _table(used)
    against = _one_sided_p(table, test_to_train, step)
    p = dict(zip(methods, against.min(axis=1).tolist(), strict=True))
    strongest = zip(methods, against.argmin(axis=1), strict=True)
    rest = {m: s.values() for m, s in scores.items() if m not in used}
    return BestSet(
        members=tuple(m for m in methods if p[m] >= ALPHA),
        left_out={m: methods[other] for m, other in strongest if p[m] < ALPHA},
        untested=tuple(m for m, s in rest.items() if any(v is not None for v in s)),
        p=p,
        pairs=len(table),
    )


def size_with(
    scores: Mapping[str, PairScores],
    pairs: int,
    test_to_train: float = 0.0,
    step: float = 0.0,
) -> float | None:
    """About how many methods could be the best after a number of pairs.

    True means are drawn by what is known of them from the pairs there are, further
    pairs by the observed spread.

    Args:
        scores: As for `best_set`.
        pairs: Number of pairs, those there are among them.
        test_to_train: As for `best_set`.
        step: As for `best_set`.

    Returns:
        None where no two methods have two pairs.
    """
    used = shared_pairs(scores)
    if not used:
        return None
    table = _table(used)
    now, methods = table.shape
    draw = np.random.default_rng(0).normal(size=(2, _DRAWS, methods))
    means = table.mean(axis=0)
    residuals = table - table.mean(axis=1, keepdims=True) - means + means.mean()
    variance = (residuals**2).sum() / ((now - 1) * (methods - 1))
    of_mean = variance * (1.0 / now + test_to_train)
    spread = means.var(ddof=1)
    # Means that are equal are spread so far by chance in one of ten studies.
    degrees = methods - 1, (methods - 1) * (now - 1)
    by_chance = of_mean * scipy.special.fdtri(*degrees, 0.9)
    kept = max(0.0, 1.0 - by_chance / spread) if spread > 0.0 else 0.0
    true = means.mean() + kept * (means - means.mean())
    true = true + math.sqrt(kept * of_mean) * draw[0]
    share = now / pairs if test_to_train == 0.0 else 0.0
    further = variance * (1.0 / max(1, pairs - share * pairs) + test_to_train)
    after = share * means + (1.0 - share) * (true + math.sqrt(further) * draw[1])
    limit = -scipy.special.stdtrit(pairs - 1, ALPHA / (methods - 1))
    reach = limit * _errors(table, pairs, test_to_train, step)
    ahead = after[:, None, :] - after[:, :, None] > reach
    return float((~ahead.any(axis=2)).sum(axis=1).mean())


def pairs_for_fewer(
    scores: Mapping[str, PairScores], test_to_train: float = 0.0, step: float = 0.0
) -> tuple[int, float] | None:
    """A number of pairs that would halve the set, and the size it would have.

    Returns:
        Otherwise the most that is sensible to name, if the set would lose a method;
        None where it would not.
    """
    found = best_set(scores, test_to_train, step)
    if found is None or len(found.members) < 3:
        return None
    best = None
    for pairs in _SENSIBLE_PAIRS:
        size = size_with(scores, pairs, test_to_train, step)
        if pairs > found.pairs and size is not None and size < len(found.members) - 1:
            best = pairs, size
            if size <= len(found.members) / 2:
                break
    return best


def claim_beats(
    scores: Mapping[str, PairScores],
    baseline: str,
    test_to_train: float = 0.0,
    step: float = 0.0,
    *,
    claims: int = 1,
    least: float | None = A_POINT,
) -> Claim:
    """What tests say of "some method beats the baseline".

    Args:
        scores: As for `best_set`, the baseline among them.
        baseline: What would have to be beaten.
        test_to_train: As for `best_set`.
        step: As for `best_set`.
        claims: How many claims are made together. A denial is wrong in 5 % of studies
            at most, with all of them.
        least: The least difference that may be denied; None to deny none.
    """
    compared = compare_to_baseline(scores, baseline, test_to_train, step)
    tested = [_p_above(c, 0.0) for c in compared if c.t_p is not None]
    is_shown = bool(tested) and len(tested) * min(tested) < ALPHA
    return claim_of(compared, is_shown, test_to_train, claims=claims, least=least)


def claim_of(
    compared: Sequence[PairedComparison],
    is_shown: bool,
    test_to_train: float = 0.0,
    *,
    claims: int = 1,
    least: float | None = A_POINT,
) -> Claim:
    """The claim that some method of comparisons beats its baseline.

    Args:
        compared: The comparisons.
        is_shown: Whether a test has shown it.
        test_to_train: As for `best_set`.
        claims: As for `claim_beats`.
        least: As for `claim_beats`.
    """
    tested = [c for c in compared if c.standard_error]
    best = min(tested, key=lambda c: _p_above(c, 0.0), default=None)
    if is_shown:
        return Claim("shown", best, "", None)
    if any(c.pairs < 2 for c in compared) or not compared:
        return Claim("not shown", best, "too few pairs", None)
    level = ALPHA / claims
    is_constant = not any(c.std for c in compared)
    needed = None
    if len(tested) == len(compared) and least is not None:
        # Every difference is tested at this level: all must be below it.
        if all(1.0 - _p_above(c, least) < level for c in tested):
            return Claim("at most a point", best, "", None)
        needed = _pairs_needed(tested, test_to_train, level, least)
    return Claim("not shown", best, "no spread" if is_constant else "", needed)


def _table(used: Mapping[str, PairScores]) -> NDArray[np.float64]:
    """The scores of `shared_pairs` as [pairs, methods]."""
    rows = [[s for _, s in sorted(m.items()) if s is not None] for m in used.values()]
    return np.asarray(rows, dtype=np.float64).T


def _errors(
    table: NDArray[np.float64], pairs: int, test_to_train: float, step: float
) -> NDArray[np.float64]:
    """The standard error of the difference of every two methods over some pairs."""
    # Rounding makes equal differences equal, whatever their last bits.
    differences = np.round(table[:, None, :] - table[:, :, None], 9)
    deviations = np.maximum(differences.std(axis=0, ddof=1), step)
    return np.asarray(deviations * math.sqrt(1.0 / pairs + test_to_train))


def _one_sided_p(
    table: NDArray[np.float64], test_to_train: float, step: float
) -> NDArray[np.float64]:
    """For each method (rows) the corrected p that another one (columns) is better."""
    pairs, methods = table.shape
    means = table.mean(axis=0)
    ahead = np.round(means[None, :] - means[:, None], 9)
    errors = _errors(table, pairs, test_to_train, step)
    # Without any spread there is nothing to measure a difference by.
    t = np.divide(ahead, errors, out=np.zeros_like(ahead), where=errors > 0.0)
    p: NDArray[np.float64] = (methods - 1) * scipy.special.stdtr(pairs - 1, -t)
    np.fill_diagonal(p, 1.0)
    return np.minimum(p, 1.0, out=p)


def _p_above(compared: PairedComparison, value: float) -> float:
    """The one-sided p that a difference is above a value."""
    if not compared.standard_error or compared.difference is None:
        return 1.0
    t = (compared.difference - value) / compared.standard_error
    return float(scipy.special.stdtr(compared.pairs - 1, -t))


def _pairs_needed(
    tested: Sequence[PairedComparison],
    test_to_train: float,
    level: float,
    least: float,
) -> int | None:
    """About how many pairs would show a claim, or deny it, by the observed spread."""
    difference = np.array([c.difference for c in tested], dtype=float)
    error = np.array([c.standard_error for c in tested], dtype=float)
    variance = error**2 / (1.0 / tested[0].pairs + test_to_train)
    for pairs in (n for n in _SENSIBLE_PAIRS if n > tested[0].pairs):
        then = np.sqrt(variance * (1.0 / pairs + test_to_train))
        shown, denied = (
            _POWER_QUANTILE - scipy.special.stdtrit(pairs - 1, one)
            for one in (ALPHA / len(tested), level)
        )
        is_shown = (difference > shown * then).any()
        if is_shown or (least - difference > denied * then).all():
            return pairs
    return None
