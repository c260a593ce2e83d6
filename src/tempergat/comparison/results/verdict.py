"""What a comparison shows, in a few sentences.

First which methods are best, by tests of all pairs, or how they compare with the
baseline that was asked for; then whether variants beat their backbones.
"""

from collections.abc import Sequence

from tempergat.base import joined
from tempergat.comparison.report.formats import mean_and_std, p_value, percent
from tempergat.comparison.report.sentences import (
    best_in_words,
    denial,
    named,
    one_class_clause,
)
from tempergat.comparison.results.result import DatasetResult, MethodResult
from tempergat.nn import METHODS
from tempergat.stats import PairedComparison


def verdict(result: DatasetResult) -> str:
    """The sentences. A claim is made only where a corrected p-value supports it.

    Methods that predict one class for every test node are named at the end.
    """
    best = result.best
    if best is None:
        return f"No run finished on {result.dataset}."
    largest = result.largest_class
    guess = "" if largest is None else f" ({percent(largest.mean)})"
    runs = best.summary.runs
    pairs = runs if result.pairing == "seeds" else min(runs, result.splits)
    sentences = [
        *denial(result.beats_guessing, pairs, f"guessing{guess}"),
        _first_answer(result, best),
        *denial(result.beats_mlp, pairs, "mlp", ": the edges do not help here"),
        *_on_backbones(result),
    ]
    return f"{'. '.join(sentences)}{one_class_clause(result)}."


def _first_answer(result: DatasetResult, best: MethodResult) -> str:
    where = f"on {result.dataset}"
    score = f"({mean_and_std(best.summary.mean, best.summary.std)})"
    if result.pairs:
        return best_in_words(result.pairs, score, result.simplest, where)
    compared = [r.comparison for r in result.results if r.comparison is not None]
    if not compared or len([r for r in result.results if r.scores]) < 2:
        return (
            f"{best.method} scores {score[1:-1]} {where}; there is no other method "
            "with a finished run to compare it with"
        )
    highest = f"{best.method} scores highest {score}"
    if all(c.verdict == "too few runs" for c in compared):
        return f"Too few runs to compare methods {where}; {highest}"
    none = f"no method is shown to differ from {compared[0].baseline}"
    return f"O{where[1:]} {_differences(compared) or none}; {highest}"


def _on_backbones(result: DatasetResult) -> list[str]:
    """Whether variants beat their backbones; empty where that was not tested."""
    variants = [
        r.comparison
        for r in result.results
        if r.comparison is not None
        and r.method in METHODS
        and r.comparison.baseline == METHODS[r.method].backbone
        and r.comparison.verdict != "too few runs"
    ]
    if not result.pairs or not variants:
        return []
    words = _differences(variants)
    if any(c.verdict == "better" for c in variants):
        return [words]
    fewest = min(c.pairs for c in variants)
    (none,) = denial(False, fewest, "its backbone", who="variant")
    return [f"{none}; {words}" if words else none]


def _differences(compared: Sequence[PairedComparison]) -> str:
    """`gated beats gat by 1.8 points (p = 0.002)`; empty where all is within noise."""
    parts = []
    for baseline in dict.fromkeys(c.baseline for c in compared):
        against = [c for c in compared if c.baseline == baseline]
        better = [c for c in against if c.verdict == "better"]
        worse = [c.method for c in against if c.verdict == "worse"]
        if better:
            parts.append(_beats(better))
        if worse:
            are = "is" if len(worse) == 1 else "are"
            parts.append(f"{named(worse)} {are} worse than {baseline}")
    return "; ".join(parts)


def _beats(better: Sequence[PairedComparison]) -> str:
    most = max(better, key=lambda c: c.difference or 0.0)
    if len(better) > 1:
        methods = joined([c.method for c in better])
        return f"{methods} beat {most.baseline}, by up to {most.difference:.1f} points"
    p = p_value(most.t_p_holm)
    sign = "" if p.startswith("<") else "= "
    return (
        f"{most.method} beats {most.baseline} by {most.difference:.1f} points "
        f"(p {sign}{p})".replace("<", "< ")
    )
