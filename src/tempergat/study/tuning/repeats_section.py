"""The parts of docs/tuned.md about further searches of every method."""

from collections.abc import Mapping, Sequence

import numpy as np

from tempergat.base import joined
from tempergat.stats import ALPHA, summarise
from tempergat.study.report import markdown_rows, p_value, signed
from tempergat.study.tuning.repeats import (
    REPEATS_FILE,
    REPEATS_PLAN_FILE,
    REPEATS_TRIALS_FILE,
    RepeatedGraph,
    RepeatsPlan,
)
from tempergat.study.tuning.variants import TunedVariants


def repeats_answer(
    plan: RepeatsPlan | None,
    repeated: Mapping[str, RepeatedGraph],
    first: TunedVariants,
) -> str:
    """Which differences of the first search survive further searches.

    Args:
        plan: The plan of the further searches; None where there is none.
        repeated: The graphs that have a whole repeat.
        first: The first search.
    """
    if plan is None:
        return ""
    if not repeated:
        return (
            f"{len(plan.repeats)} further searches of every method on "
            f"{joined(list(plan.graphs))} are planned in results/{REPEATS_PLAN_FILE} "
            "and were not run.\n"
        )
    sentences = [
        _survivors(repeated, first),
        _corrected(repeated),
        _spread(repeated, first),
    ]
    others = [name for name in first.graphs if name not in repeated]
    if others:
        sentences.append(
            f"On {joined(others)} every method had one search only, so its verdicts "
            "below may not survive another one either."
        )
    return " ".join(sentences) + "\n"


def _survivors(repeated: Mapping[str, RepeatedGraph], first: TunedVariants) -> str:
    """How many gains and losses survive, and which."""
    counts, kept = [], []
    for verdict, word in (("better", "gains"), ("worse", "losses")):
        judged = [
            (name, comparison.method)
            for name, comparison in first.judged(verdict)
            if name in repeated and comparison.method in repeated[name].differences
        ]
        found = [(name, v) for name, v in judged if repeated[name].survives(v)]
        counts.append(f"{len(found)} of the {len(judged)} {word}")
        kept += found
    searches = max(one.searches for one in repeated.values())
    named = f" ({_named(kept, repeated)})" if kept else ""
    return (
        f"**Over {searches} searches of every method on {joined(list(repeated))}, "
        f"{joined(counts)} of the first search survive{named}.**"
    )


def _corrected(repeated: Mapping[str, RepeatedGraph]) -> str:
    """What is left with Holm's correction, and what follows."""
    gains = [
        (name, variant, over)
        for name, one in repeated.items()
        for variant, over in one.over_searches.items()
        if one.excludes_zero(variant) and (over.difference or 0.0) > 0.0
    ]
    if not gains:
        return "So no variant is shown to beat its tuned backbone."
    left = [
        (name, variant)
        for name, variant, over in gains
        if over.t_p_holm is not None and over.t_p_holm < ALPHA
    ]
    correction = (
        "With Holm's correction over the variants of a graph, which the plan does not "
        "ask for,"
    )
    if left:
        return (
            f"{correction} these remain: {_named(left, repeated)}. There a variant "
            "beats its tuned backbone."
        )
    alone = ""
    if not any(
        _gains_in_repeats(repeated[name], variant) for name, variant, _ in gains
    ):
        alone = (
            " Over the repeats alone, without the first search, none of them has an "
            "interval above 0."
        )
    return (
        f"{correction} no gain remains.{alone} So the evidence that a variant beats "
        "its tuned backbone is weak."
    )


def _gains_in_repeats(found: RepeatedGraph, variant: str) -> bool:
    """Whether the interval is above 0 without the first search."""
    over = summarise(found.differences[variant][1:])
    return over.low is not None and over.low > 0.0


def _spread(repeated: Mapping[str, RepeatedGraph], first: TunedVariants) -> str:
    """How far the mean of one method moves between searches."""
    between, errors = [], []
    for name, found in repeated.items():
        deviations = [np.std(values, ddof=1) for values in found.means.values()]
        between.append(f"{np.median(deviations):.2f} points on {name}")
        of_graph = [
            (one.summary.std or 0.0) / one.summary.runs**0.5
            for one in first.graphs[name].result.results
        ]
        errors.append(f"{np.median(of_graph):.2f}")
    return (
        "Tests over the seeds of one search leave out most of the spread: between "
        "searches, the mean test accuracy of a method has a standard deviation of "
        f"{joined(between)} (medians over the methods), while its standard error over "
        f"the seeds of the first search is {joined(errors)}."
    )


def _named(
    found: Sequence[tuple[str, str]], repeated: Mapping[str, RepeatedGraph]
) -> str:
    """`gated on cora +0.50`, of the mean over the searches."""
    return joined(
        [
            f"{v} on {name} {signed(repeated[name].over_searches[v].difference)}"
            for name, v in found
        ]
    )


def best_in_any_search(
    variants: TunedVariants, repeated: Mapping[str, RepeatedGraph]
) -> dict[str, tuple[str, float]]:
    """By graph, the best method in any search, and its mean test score."""
    best = {}
    for name, graph in variants.graphs.items():
        means = [(one.method, one.summary.mean or 0.0) for one in graph.result.results]
        if name in repeated:
            means += [(m, max(v)) for m, v in repeated[name].means.items()]
        best[name] = max(means, key=lambda one: one[1])
    return best


def repeats_section(plan: RepeatsPlan, repeated: Mapping[str, RepeatedGraph]) -> str:
    """Every difference in every search.

    Args:
        plan: The plan.
        repeated: The graphs that have a whole repeat.
    """
    seeds = plan.run_seeds
    devices = sorted({name for one in repeated.values() for name in one.devices})
    parts = [
        "## Does a difference survive another search?\n\n"
        f"Every method was searched {len(plan.repeats)} more times, with another "
        f"sampler seed and other search seeds, and reported on {len(seeds)} fresh "
        f"seeds ({seeds.start} to {seeds.stop - 1}), on {' and '.join(devices)}; all "
        "else is that of the first search. The plan, "
        f"results/{REPEATS_PLAN_FILE}, was written before the first of these runs and "
        "with the results of the first search known. A difference survives if the 95 % "
        "t-interval over the searches excludes 0 and its mean has the sign it had in "
        "the first search. The intervals are not corrected for the number of variants; "
        "the p values, of the paired t-test over searches, are (Holm), which the plan "
        "does not ask for. Few searches give wide intervals: a difference that does "
        "not survive may be there, but one search cannot show it. The variants of a "
        "backbone share its runs, so their differences are not independent. Every run "
        "is in "
        f"results/{REPEATS_FILE}, and what each search tried and chose in "
        f"results/{REPEATS_TRIALS_FILE}.\n"
    ]
    for name in plan.graphs:
        parts.append(f"### {name}, several searches\n")
        if name not in repeated:
            parts.append("No repeat has all its runs.\n")
            continue
        found = repeated[name]
        if len(found.repeats) < found.planned:
            parts.append(
                f"Of {found.planned} repeats, {len(found.repeats)} have all their "
                "runs; only these are used.\n"
            )
        parts.append(_differences(found))
        parts.append(_repeats_alone(found))
        parts.append(
            "Mean test accuracy of each method in percent, search by search:\n"
        )
        parts.append(_means(found))
    return "\n".join(parts)


def _differences(found: RepeatedGraph) -> str:
    rows = []
    for variant, values in found.differences.items():
        over = found.over_searches[variant]
        rows.append(
            [
                variant,
                *(signed(value) for value in values),
                signed(over.difference),
                _interval(over.low, over.high),
                f"{found.same_sign(variant)} of {found.searches}",
                p_value(over.t_p_holm),
                "yes" if found.excludes_zero(variant) else "no",
            ]
        )
    head = [
        "difference from backbone",
        *_columns(found),
        "mean",
        "95 % interval",
        "sign of the mean",
        "p, Holm",
        "excludes 0",
    ]
    return markdown_rows(head, rows)


def _repeats_alone(found: RepeatedGraph) -> str:
    """What excludes 0, without the first search, which is where gains were found."""
    kept = [one for one in found.differences if found.excludes_zero(one)]
    if not kept or len(found.repeats) < 2:
        return ""
    words = []
    for variant in kept:
        over = summarise(found.differences[variant][1:])
        words.append(
            f"{variant} {signed(over.mean)} ({_interval(over.low, over.high)})"
        )
    return (
        "The same over the repeats alone, without the search in which the differences "
        "were found (not in the plan): "
        f"{joined(words)}.\n"
    )


def _means(found: RepeatedGraph) -> str:
    rows = [
        [
            method,
            *(f"{value:.2f}" for value in values),
            f"{max(values) - min(values):.2f}",
        ]
        for method, values in found.means.items()
    ]
    head = ["method", *_columns(found), "highest - lowest"]
    return markdown_rows(head, rows)


def _columns(found: RepeatedGraph) -> list[str]:
    return ["first search", *(f"repeat {number}" for number in found.repeats)]


def _interval(low: float | None, high: float | None) -> str:
    return f"{signed(low)} to {signed(high)}"
