"""What a comparison shows, in one sentence."""

from collections.abc import Sequence

from tempergat.base import joined
from tempergat.stats import PairedComparison
from tempergat.study.report import mean_and_std, one_class_clause, p_value
from tempergat.study.results import DatasetResult, MethodResult


def best_method(result: DatasetResult) -> str | None:
    """The method with the highest mean; None where no run finished."""
    best = _best(result)
    return None if best is None else best.method


def verdict(result: DatasetResult) -> str:
    """The sentence. A claim is made only where a corrected p-value supports it.

    Methods that predict one class for every test node are named at its end.
    """
    return _claim(result) + one_class_clause(result)


def best_by_test(result: DatasetResult) -> str | None:
    """The method that the verdict calls best; None where no test supports one.

    It has the highest mean, and is better than its baseline. Or it is the baseline of
    others that are all worse, and no other method beats its own baseline.
    """
    best = _best(result)
    if best is None:
        return None
    if best.comparison is not None and best.comparison.verdict == "better":
        return best.method
    compared = _compared(result)
    against_best = [c.verdict for c in compared if c.baseline == best.method]
    if any(c.verdict == "better" for c in compared):
        return None
    return best.method if set(against_best) == {"worse"} else None


def _claim(result: DatasetResult) -> str:
    best = _best(result)
    if best is None:
        return f"no run finished on {result.dataset}"
    score = mean_and_std(best.summary.mean, best.summary.std)
    if best_by_test(result) is not None:
        reason = "; every method compared with it is worse"
        if best.comparison is not None and best.comparison.verdict == "better":
            reason = f", and {_beats(best.comparison)}"
        return f"{best.method} is best on {result.dataset}, {score}{reason}"
    compared = _compared(result)
    highest = f"the highest mean is {score}, of {best.method}"
    winners = [c for c in compared if c.verdict == "better"]
    if winners:
        most = max(winners, key=lambda c: c.difference or 0.0)
        return f"on {result.dataset} {highest}; {most.method} {_beats(most)}"
    if not compared:
        if len(result.results) == 1:
            return (
                f"{best.method} scores {score} on {result.dataset}; there is no other "
                "method to compare it with"
            )
        return f"no method has a baseline on {result.dataset}; {highest}"
    if all(c.verdict == "too few runs" for c in compared):
        return f"too few runs to compare methods on {result.dataset}; {highest}"
    worse = _worse(compared)
    if worse:
        return (
            f"no method is shown to be better than its baseline on {result.dataset}; "
            f"{worse}; {highest}"
        )
    return f"no method stands out of the noise on {result.dataset}; {highest}"


def _compared(result: DatasetResult) -> list[PairedComparison]:
    return [r.comparison for r in result.results if r.comparison is not None]


def _worse(compared: Sequence[PairedComparison]) -> str:
    """`mlp is worse than gat`; empty where no method is."""
    by_baseline: dict[str, list[str]] = {}
    for one in compared:
        if one.verdict == "worse":
            by_baseline.setdefault(one.baseline, []).append(one.method)
    return "; ".join(
        f"{joined(methods)} {'is' if len(methods) == 1 else 'are'} worse than "
        f"{baseline}"
        for baseline, methods in by_baseline.items()
    )


def _best(result: DatasetResult) -> MethodResult | None:
    scored = [r for r in result.results if r.summary.mean is not None]
    return max(scored, key=lambda r: r.summary.mean or 0.0, default=None)


def _beats(comparison: PairedComparison) -> str:
    p = p_value(comparison.t_p_holm)
    sign = "" if p.startswith("<") else "= "
    return (
        f"beats {comparison.baseline} by {comparison.difference:.1f} points "
        f"(p {sign}{p})".replace("<", "< ")
    )
