"""Checks of proof steps against simulation.

A step is an equality (tested at 99.9 %, Holm over all equalities), a bound (not crossed
by more than rounding and chance allow), a limit (each value is closer to it than the
one before) or an order (differences on common random numbers). Where the sample is too
small to decide a limit or an order, the verdict is "within noise".
"""

from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import norm

from studies.theory.bootstrap import Estimate
from studies.theory.rows import Row, Table
from tempergat.stats import holm

LEVEL = 0.999
HOLDS, FAILS, UNSEEN = "holds", "fails", "within noise"


class Statement(NamedTuple):
    """A statement of a proof by its number, checked with several parameters."""

    theorem: int
    step: str
    claim: str

    def equal(self, at: str, seen: Estimate, expected: float) -> Row:
        """The estimate equals a closed form; `judged` gives the verdict."""
        row = self._row(at, "equality", seen, expected, HOLDS)
        return row | {"p_value": float(seen.p_values(expected))}

    def at_most(self, at: str, seen: Estimate, bound: float) -> Row:
        """The estimate does not lie above a bound."""
        verdict = HOLDS if normal_interval(seen)[0] <= bound else FAILS
        return self._row(at, "bound", seen, bound, verdict)

    def at_least(self, at: str, seen: Estimate, bound: float) -> Row:
        """The estimate does not lie below a bound."""
        verdict = HOLDS if normal_interval(seen)[1] >= bound else FAILS
        return self._row(at, "bound", seen, bound, verdict)

    def above(self, at: str, seen: Estimate) -> Row:
        """The estimate, a difference on common random numbers, is positive."""
        low, high = normal_interval(seen)
        verdict = HOLDS if low > 0 else FAILS if high < 0 else UNSEEN
        return self._row(at, "order", seen, 0.0, verdict)

    def approach(self, at: Sequence[str], seen: Estimate, limit: float) -> Table:
        """Estimates along an axis come closer to their limit at every step."""
        distance = abs(Estimate(seen.value - limit, seen.replicates - limit))
        verdicts = [HOLDS]
        for i in range(1, len(at)):
            change = distance[i] - distance[i - 1]
            nearer = HOLDS if change.value < 0 else UNSEEN
            verdicts.append(FAILS if normal_interval(change)[0] > 0 else nearer)
        return [
            self._row(where, "limit", seen[i], limit, verdicts[i])
            for i, where in enumerate(at)
        ]

    def _row(
        self, at: str, kind: str, seen: Estimate, expected: float, verdict: str
    ) -> Row:
        low, high = normal_interval(seen)
        row: Row = {**self._asdict(), "at": at, "kind": kind, "expected": expected}
        row |= {"seen": float(seen.value), "low": low, "high": high}
        return row | {"p_value": 1.0, "verdict": verdict}


def normal_interval(seen: Estimate) -> tuple[float, float]:
    """The 99.9 % interval from the bootstrap's standard error."""
    half = float(norm.isf((1 - LEVEL) / 2) * seen.standard_error)
    return float(seen.value) - half, float(seen.value) + half


def judged(steps: Table) -> Table:
    """Judges all equalities together: Holm at 99.9 %."""
    result = [dict(step) for step in steps]
    equalities = [step for step in result if step["kind"] == "equality"]
    adjusted = holm([float(step["p_value"]) for step in equalities])
    for step, p in zip(equalities, adjusted, strict=True):
        step |= {"p_value": p, "verdict": HOLDS if p > 1 - LEVEL else FAILS}
    return result
