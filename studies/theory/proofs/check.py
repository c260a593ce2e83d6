"""Checks of proof steps against simulation.

A step is an equality (tested at 99.9 %, Holm over all equalities), a bound (not crossed
by more than rounding and chance allow), a limit (each value is closer to it than the
one before) or an order (differences on common random numbers). Where the sample is too
small to decide a limit or an order, the verdict is "within noise".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.stats import norm

from studies.theory.rows import Row, Table
from tempergat.stats import Estimate, holm

LEVEL = 0.999
HOLDS, FAILS, UNSEEN = "holds", "fails", "within noise"


@dataclass(frozen=True)
class Step:
    """One checked statement.

    Args:
        theorem: 1 or 2.
        step: Its number in the proof.
        claim: The statement.
        at: The parameters it was checked with.
        kind: equality, bound, limit or order.
        expected: The value in the statement.
        seen: The simulated value.
        low: Lower end of its 99.9 % interval.
        high: Upper end of it.
        p_value: The p-value of an equality; 1 for the other kinds.
        verdict: holds, fails or within noise.
    """

    theorem: int
    step: str
    claim: str
    at: str
    kind: str
    expected: float
    seen: float
    low: float
    high: float
    p_value: float
    verdict: str

    def row(self) -> Row:
        """The step as a table row."""
        return dict(vars(self))


@dataclass(frozen=True)
class Statement:
    """A statement of a proof, checked with several parameters."""

    theorem: int
    step: str
    claim: str

    def equal(self, at: str, seen: Estimate, expected: float) -> Step:
        """The estimate equals a closed form; `judged` gives the verdict."""
        p_value = float(seen.p_values(expected))
        return self._step(at, "equality", seen, expected, p_value, HOLDS)

    def at_most(self, at: str, seen: Estimate, bound: float) -> Step:
        """The estimate does not lie above a bound."""
        low, _ = normal_interval(seen)
        verdict = HOLDS if low <= bound else FAILS
        return self._step(at, "bound", seen, bound, 1.0, verdict)

    def at_least(self, at: str, seen: Estimate, bound: float) -> Step:
        """The estimate does not lie below a bound."""
        _, high = normal_interval(seen)
        verdict = HOLDS if high >= bound else FAILS
        return self._step(at, "bound", seen, bound, 1.0, verdict)

    def above(self, at: str, seen: Estimate) -> Step:
        """The estimate, a difference on common random numbers, is positive."""
        low, high = normal_interval(seen)
        verdict = HOLDS if low > 0 else FAILS if high < 0 else UNSEEN
        return self._step(at, "order", seen, 0.0, 1.0, verdict)

    def approach(self, at: Sequence[str], seen: Estimate, limit: float) -> list[Step]:
        """Estimates along an axis come closer to their limit at every step."""
        distance = abs(Estimate(seen.value - limit, seen.replicates - limit))
        verdicts = [HOLDS]
        for i in range(1, len(at)):
            change = distance[i] - distance[i - 1]
            low, _ = normal_interval(change)
            nearer = HOLDS if change.value < 0 else UNSEEN
            verdicts.append(FAILS if low > 0 else nearer)
        return [
            self._step(where, "limit", seen[i], limit, 1.0, verdicts[i])
            for i, where in enumerate(at)
        ]

    def _step(
        self,
        at: str,
        kind: str,
        seen: Estimate,
        expected: float,
        p_value: float,
        verdict: str,
    ) -> Step:
        low, high = normal_interval(seen)
        return Step(
            self.theorem,
            self.step,
            self.claim,
            at,
            kind,
            expected,
            float(seen.value),
            low,
            high,
            p_value,
            verdict,
        )


def normal_interval(seen: Estimate) -> tuple[float, float]:
    """The 99.9 % interval from the bootstrap's standard error."""
    half = float(norm.isf((1 - LEVEL) / 2) * seen.standard_error)
    return float(seen.value) - half, float(seen.value) + half


def judged(steps: Sequence[Step]) -> list[Step]:
    """Judges all equalities together: Holm at 99.9 %."""
    places = [n for n, step in enumerate(steps) if step.kind == "equality"]
    adjusted = holm([steps[n].p_value for n in places])
    result = list(steps)
    for place, value in zip(places, adjusted, strict=True):
        result[place] = replace(
            steps[place],
            p_value=value,
            verdict=HOLDS if value > 1 - LEVEL else FAILS,
        )
    return result


def table_of(steps: Sequence[Step]) -> Table:
    """Steps as rows; the p-values are those after Holm's correction."""
    return [step.row() for step in steps]
