"""What a comparison shows, in one sentence."""

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


def _claim(result: DatasetResult) -> str:
    best = _best(result)
    if best is None:
        return f"no run finished on {result.dataset}"
    score = mean_and_std(best.summary.mean, best.summary.std)
    if best.comparison is not None and best.comparison.verdict == "better":
        return (
            f"{best.method} is best on {result.dataset}, {score}, and "
            f"{_beats(best.comparison)}"
        )
    compared = [r.comparison for r in result.results if r.comparison is not None]
    highest = f"the highest mean is {score}, of {best.method}"
    winners = [c for c in compared if c.verdict == "better"]
    if winners:
        most = max(winners, key=lambda c: c.difference or 0.0)
        return f"on {result.dataset} {highest}; {most.method} {_beats(most)}"
    against_best = [c for c in compared if c.baseline == best.method]
    if against_best and all(c.verdict == "worse" for c in against_best):
        return (
            f"{best.method} is best on {result.dataset}, {score}; every method "
            "compared with it is worse"
        )
    if not compared:
        return f"nothing is compared on {result.dataset}; {highest}"
    if all(c.verdict == "too few runs" for c in compared):
        return f"too few runs to compare methods on {result.dataset}; {highest}"
    return f"no method stands out of the noise on {result.dataset}; {highest}"


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
