"""What a result shows, in words that say no more than the tests.

First which methods are best, by tests of all pairs, or how they compare with the
baseline that was asked for; then whether variants beat their backbones.
"""

from collections.abc import Sequence

from tempergat.base import joined, listed
from tempergat.comparison.report.formats import mean_and_std, p_value, percent
from tempergat.comparison.results.result import DatasetResult, MethodResult
from tempergat.nn import METHODS
from tempergat.stats import BestSet, Claim, PairedComparison

# Beside the name of a method that predicts one class for every test node.
ONE_CLASS_MARK = "†"
# A sentence names up to so many methods; of more it names two and counts the others.
_MOST_NAMED = 4
# It names up to so many methods that predict one class, and counts more.
_MOST_OF_ONE_CLASS = 3


def verdict(result: DatasetResult) -> str:
    """The sentences. A claim is made only where a corrected p-value supports it.

    Methods that predict one class for every test node are named at the end.
    """
    best = result.best
    if best is None:
        return f"No run finished on {result.dataset}."
    largest = result.largest_class
    guess = "" if largest is None else f" ({percent(largest.mean)})"
    sentences = [
        *denial(result.beats_guessing, f"guessing{guess}"),
        _first_answer(result, best),
        *denial(result.beats_mlp, "mlp", ": the edges do not help here"),
        *_on_backbones(result),
    ]
    return f"{'. '.join(sentences)}{one_class_clause(result)}."


def _first_answer(result: DatasetResult, best: MethodResult) -> str:
    where = f"on {result.dataset}"
    score = f"({mean_and_std(best.summary.mean, best.summary.std)})"
    if result.pairs:
        return best_in_words(
            result.best_set, best.method, score, result.simplest, where
        )
    compared = list(result.against_baseline.values())
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
        c
        for method, c in result.against_baseline.items()
        if method in METHODS
        and c.baseline == METHODS[method].backbone
        and c.verdict != "too few runs"
    ]
    if not result.pairs or not variants:
        return []
    words = _differences(variants)
    if any(c.verdict == "better" for c in variants):
        return [words]
    none = denial(result.beats_backbone, "its backbone", who="variant")
    return ["; ".join([*none, *([words] if words else [])])]


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
            parts.append(f"{_named(worse)} {are} worse than {baseline}")
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


def best_in_words(
    found: BestSet | None, best: str, score: str, simplest: str | None, where: str
) -> str:
    """Which methods could be the best, as sentences without the last full stop.

    Args:
        found: They; None where too few runs can be compared.
        best: The method of the highest mean.
        score: The highest mean.
        simplest: The method of the best set with the fewest parameters, if known.
        where: What the scores are on, as `on cora`.
    """
    if found is None:
        return f"Too few runs to compare methods {where}; {best} scores highest {score}"
    best, *others = found.members
    if others:
        count = len(found.members) + len(found.left_out)
        known = "which is simplest is not known"
        words = (
            f"The best of {count} methods {where} is one of these {len(found.members)} "
            f"(95 %): {joined([f'{best} {score}', *others])}; "
            f"{known if simplest is None else f'the simplest is {simplest}'}"
        )
    else:
        words = f"{best} is best {where} {score}"
    if found.left_out:
        words += f"; left out: {joined(list(found.left_out))}"
    if found.untested:
        have = "has" if len(found.untested) == 1 else "have"
        words += f". {_named(found.untested)} {have} too few runs to be compared"
    return words


def denial(
    claim: Claim | None, what: str, meaning: str = "", who: str = "method"
) -> list[str]:
    """That no method beats something, where no test shows that one does.

    Args:
        claim: What the tests say; None where none was made.
        what: What would have to be beaten.
        meaning: What follows where every difference is shown to be below a point.
        who: Which kind of method would have to beat it.
    """
    if claim is None or claim.word == "shown":
        return []
    if claim.word == "not shown":
        return [f"No {who} is shown to beat {what}"]
    return [f"No {who} beats {what} by a point or more{meaning}"]


def _are(methods: Sequence[str]) -> str:
    return f"{_named(methods)} {'is' if len(methods) == 1 else 'are'}"


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


def one_class_clause(result: DatasetResult) -> str:
    """The end of a verdict that names such methods; empty where there are none."""
    marked = [m for m in result.results if m.only_class]
    if not marked:
        return ""
    in_all_runs = [m.method for m in marked if len(m.only_class) == m.summary.runs]
    if len(in_all_runs) == len(result.results) > 1:
        return "; every method predicts only one class in all runs"
    which = _class_in_words(result)
    if len(marked) > _MOST_OF_ONE_CLASS:
        often = "all" if len(in_all_runs) == len(marked) else "some"
        return (
            f"; {len(marked)} of {len(result.results)} methods predict only {which} in "
            f"{often} runs"
        )
    parts = []
    if in_all_runs:
        runs = "runs" if len(in_all_runs) == 1 else "of their runs"
        parts.append(f"{joined(in_all_runs)} in all {runs}")
    parts += [
        f"{m.method} in {_count_of_one_class(m)}"
        for m in marked
        if m.method not in in_all_runs
    ]
    return f"; only {which} is predicted by {', '.join(parts)}"


def _class_in_words(result: DatasetResult) -> str:
    predicted = {label for m in result.results for label in m.only_class.values()}
    largest = result.largest_class
    is_largest = largest is not None and predicted == {largest.label}
    return "the largest class" if is_largest else "one class"


def _count_of_one_class(result: MethodResult) -> str:
    count, runs = len(result.only_class), result.summary.runs
    return f"all {runs} runs" if count == runs > 1 else f"{count} of {runs} runs"
