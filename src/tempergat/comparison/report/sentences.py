"""What a result shows, in words that say no more than the tests.

The answer says which methods could be the best, or how they compare with the baseline
that was asked for. What else was tested stands before it.
"""

from collections.abc import Sequence

from tempergat.base import joined, listed
from tempergat.comparison.report.answers import Answer, in_words, which_is_best
from tempergat.comparison.report.formats import mean_and_std, p_value
from tempergat.comparison.results.result import DatasetResult, MethodResult
from tempergat.stats import BestSet, Claim, PairedComparison
from tempergat.training import Metric

# Beside the name of a method that predicts one class for every test node.
ONE_CLASS_MARK = "†"
# A sentence names up to so many methods; of more it names two and counts the others.
_MOST_NAMED = 4
# It names up to so many methods that predict one class, and counts more.
_MOST_OF_ONE_CLASS = 3
_UNDECIDED = {
    "": "",
    "too few pairs": "; there are too few {pairs} to tell",
    "no spread": "; all {pairs} have the same difference, which no test can judge",
}


def verdict(result: DatasetResult) -> str:
    """All sentences, the answer last."""
    return " ".join([*claims(result), str(answer(result))])


def answer(result: DatasetResult) -> Answer:
    """Which methods could be the best, or which ones beat the baseline."""
    best, where = result.best, f"on {result.dataset}'s test nodes"
    if best is None:
        return Answer(f"No run finished on {result.dataset}")
    if result.best_set is not None:
        return which_is_best(result.best_set, result.simplest, where)
    metric = result.metric
    score = mean_and_std(best.summary.mean, best.summary.std, metric.digits)
    if len([row for row in result.results if row.scores]) == 1:
        alone = "there is nothing to compare it with"
        return Answer(f"{best.method} scores {score} on {result.dataset}; {alone}")
    compared = list(result.against_baseline.values())
    if all(c.verdict == "too few runs" for c in compared):
        return Answer(
            f"Too few runs to compare methods on {result.dataset}; {best.method} "
            f"scores {metric.best} ({score})"
        )
    against = compared[0].baseline
    better, worse = (
        tuple(c.method for c in compared if c.verdict == word)
        for word in ("better", "worse")
    )
    which = f"{in_words(len(better))} of {in_words(len(compared))} are".capitalize()
    if len(better) < 2:
        which = f"{better[0] if better else 'No method'} is"
    names = better if len(better) > 1 else ()
    headline = f"{which} shown to beat {against} {where}"
    return Answer(headline, names, rest=worse, about_rest=f"worse than {against}")


def claims(result: DatasetResult) -> list[str]:
    """What was tested besides, a sentence each."""
    if result.best is None:
        return []
    largest, pairs = result.largest_class, result.pairing
    least = _least(result.metric)
    guess = "" if largest is None else f" ({result.metric.text(largest.mean)})"
    return [
        *denial(result.beats_guessing, pairs, f"guessing{guess}", least=least),
        *denial(result.beats_mlp, pairs, "mlp", "the edges", least=least),
        *_on_backbones(result),
        *on_untested(result.best_set),
        *_on_one_class(result),
        *_on_more_pairs(result),
    ]


def _on_more_pairs(result: DatasetResult) -> list[str]:
    """What more seeds, or splits, would do for the answer, if anything."""
    if result.fewer is None:
        return []
    pairs, size = result.fewer
    about = max(1, round(size))
    methods = f"{in_words(about)} method{'' if about == 1 else 's'}"
    return [
        f"With about {pairs} {result.pairing} about {methods} could still be the best."
    ]


def denial(
    claim: Claim | None,
    pairs: str,
    what: str,
    means: str = "",
    who: str = "method",
    least: str = "a point",
) -> list[str]:
    """What may be said where no method is shown to beat something.

    Args:
        claim: What the tests say of it; None where none was made.
        pairs: What the tests are over: seeds or splits.
        what: What would have to be beaten.
        means: What would be shown to help.
        who: Which kind of method would have to beat it.
        least: The least difference that may be denied.
    """
    if claim is None or claim.word == "shown":
        return []
    if claim.word == "at most a point":
        so = f": {means} do not help by as much" if means else ""
        return [f"No {who} beats {what} by {least} or more{so}."]
    so = f", so {means} are not shown to help" if means else ""
    why = _UNDECIDED[claim.reason].format(pairs=pairs)
    if claim.pairs_needed is not None:
        why += f"; about {claim.pairs_needed} {pairs} would tell"
    return [f"No {who} is shown to beat {what}{so}{why}."]


def _least(metric: Metric) -> str:
    """The least difference that may be denied, in words."""
    if (metric.least, metric.points) == (1.0, "points"):
        return "a point"
    return f"{metric.least or 0.0:g} {metric.points}".rstrip()


def on_untested(found: BestSet | None) -> list[str]:
    """Which methods no test says anything about; empty where all were tested."""
    if found is None or not found.untested:
        return []
    have = "has" if len(found.untested) == 1 else "have"
    return [f"{_named(found.untested)} {have} too few runs to be compared."]


def _on_backbones(result: DatasetResult) -> list[str]:
    """Whether variants beat their backbones, the second question."""
    if result.best_set is None:
        return []
    none = denial(
        result.beats_backbone,
        result.pairing,
        "its backbone",
        who="variant",
        least=_least(result.metric),
    )
    words = _differences(list(result.against_baseline.values()), result.metric)
    return [*none, *([f"{words}."] if words else [])]


def _differences(compared: Sequence[PairedComparison], metric: Metric) -> str:
    """`gated beats gat by 1.8 points (p = 0.002)`; empty where nothing is shown."""
    parts = []
    for baseline in dict.fromkeys(c.baseline for c in compared):
        against = [c for c in compared if c.baseline == baseline]
        better = [c for c in against if c.verdict == "better"]
        worse = [c.method for c in against if c.verdict == "worse"]
        if better:
            parts.append(_beats(better, metric))
        if worse:
            are = "is" if len(worse) == 1 else "are"
            parts.append(f"{_named(worse)} {are} worse than {baseline}")
    return "; ".join(parts)


def _beats(better: Sequence[PairedComparison], metric: Metric) -> str:
    most = max(better, key=lambda c: abs(c.difference or 0.0))
    size, digits = abs(most.difference or 0.0), max(metric.digits - 1, 0)
    by = f"{size:.{digits}f} {metric.points}".rstrip()
    if len(better) > 1:
        methods = joined([c.method for c in better])
        return f"{methods} beat {most.baseline}, by up to {by}"
    p = p_value(most.t_p_holm)
    sign = "" if p.startswith("<") else "= "
    return f"{most.method} beats {most.baseline} by {by} (p {sign}{p})".replace(
        "<", "< "
    )


def _named(methods: Sequence[str]) -> str:
    """`a, b and c`; of many `a, b and 3 more`."""
    return joined(methods) if len(methods) <= _MOST_NAMED else listed(methods, 2)


def notes_on_one_class(result: DatasetResult) -> list[str]:
    """One note below the table on methods that predict one class for all test nodes."""
    marked = [m for m in result.results if m.only_class]
    if not marked:
        return []
    methods = ", ".join(f"{m.method} in {_count_of_one_class(m)}" for m in marked)
    return [
        f"{ONE_CLASS_MARK} predicts only {_class_in_words(result)}: {methods}. Class "
        "weights (--class-weights balanced) or another recipe can help."
    ]


def _on_one_class(result: DatasetResult) -> list[str]:
    """Which methods predict one class for every test node; empty where none does."""
    marked = [m for m in result.results if m.only_class]
    if not marked:
        return []
    which = _class_in_words(result)
    in_all_runs = [m.method for m in marked if len(m.only_class) == len(m.scores)]
    if len(in_all_runs) == len(result.results) > 1:
        return ["Every method predicts only one class in all runs."]
    if len(marked) > _MOST_OF_ONE_CLASS:
        often = "all" if len(in_all_runs) == len(marked) else "some"
        return [
            f"{len(marked)} of {len(result.results)} methods predict only {which} in "
            f"{often} runs."
        ]
    parts = []
    if in_all_runs:
        runs = "runs" if len(in_all_runs) == 1 else "of their runs"
        parts.append(f"{joined(in_all_runs)} in all {runs}")
    parts += [
        f"{m.method} in {_count_of_one_class(m)}"
        for m in marked
        if m.method not in in_all_runs
    ]
    return [f"Only {which} is predicted by {', '.join(parts)}."]


def _class_in_words(result: DatasetResult) -> str:
    predicted = {label for m in result.results for label in m.only_class.values()}
    largest = result.largest_class
    is_largest = largest is not None and predicted == {largest.label}
    return "the largest class" if is_largest else "one class"


def _count_of_one_class(result: MethodResult) -> str:
    count, runs = len(result.only_class), len(result.scores)
    return f"all {runs} runs" if count == runs > 1 else f"{count} of {runs} runs"
