"""The parts of docs/tuned.md about further searches of every method."""

from collections.abc import Mapping, Sequence

import numpy as np

from tempergat.base import joined
from tempergat.stats import Summary
from tempergat.study.report import markdown_rows, signed
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
    parts = [_on_graph(name, one, first) for name, one in repeated.items()]
    others = [name for name in first.graphs if name not in repeated]
    if others:
        parts.append(
            f"On {joined(others)} every method had one search only. What is said below "
            "about them holds for the settings found, and may not survive another "
            "search."
        )
    return "\n\n".join(parts) + "\n"


def _on_graph(name: str, found: RepeatedGraph, first: TunedVariants) -> str:
    sentences = [
        f"**{name}, {found.searches} searches of every method** (means over the "
        "searches, 95 % intervals, and in how many of them the sign is that of the "
        "mean)."
    ]
    for verdict, word, words in (
        ("better", "gain", "gains"),
        ("worse", "loss", "losses"),
    ):
        judged = [
            comparison.method
            for graph, comparison in first.judged(verdict)
            if graph == name and comparison.method in found.differences
        ]
        if judged:
            kept = [method for method in judged if found.survives(method)]
            lost = [method for method in judged if method not in kept]
            sentences.append(
                f"Of {len(judged)} {word if len(judged) == 1 else words} by the tests "
                f"of the first search, {_survivors(kept, lost, found)}"
            )
    sentences.append(_new_ones(name, found, first))
    sentences.append(_spread(name, found, first))
    return " ".join(one for one in sentences if one)


def _survivors(kept: Sequence[str], lost: Sequence[str], found: RepeatedGraph) -> str:
    if not kept:
        return f"none survives another search: {_with_intervals(lost, found)}."
    verb = "survives" if len(kept) == 1 else "survive"
    text = f"{_with_intervals(kept, found)} {verb} another search"
    return f"{text}, {_with_intervals(lost, found)} not." if lost else f"{text}."


def _spread(name: str, found: RepeatedGraph, first: TunedVariants) -> str:
    """How far the mean of one method moves between searches."""
    ranges = [max(values) - min(values) for values in found.means.values()]
    errors = [
        (one.summary.std or 0.0) / one.summary.runs**0.5
        for one in first.graphs[name].result.results
    ]
    return (
        "From one search to another, the mean test accuracy of a method moves by "
        f"{np.median(ranges):.2f} points (median of the methods; at most "
        f"{max(ranges):.2f}), while its standard error over seeds is "
        f"{np.median(errors):.2f}."
    )


def _new_ones(name: str, found: RepeatedGraph, first: TunedVariants) -> str:
    """Variants whose interval excludes 0, though the first test was within noise."""
    judged = [*first.judged("better"), *first.judged("worse")]
    known = [c.method for graph, c in judged if graph == name]
    new = [v for v in found.differences if v not in known and found.excludes_zero(v)]
    if not new:
        return ""
    return (
        "Within noise in the first search, but not over all of them: "
        f"{_with_intervals(new, found)}."
    )


def _with_intervals(variants: Sequence[str], found: RepeatedGraph) -> str:
    """`gated +0.50 (-0.10 to +1.10, 3 of 4)`, of the mean over the searches."""
    words = []
    for variant in variants:
        over = found.over_searches(variant)
        signs = f"{found.same_sign(variant)} of {found.searches}"
        words.append(f"{variant} {signed(over.mean)} ({_interval(over)}, {signs})")
    return joined(words)


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
        "the first search. The intervals are not corrected for the number of variants. "
        "They are over few searches and therefore wide: a difference that does not "
        "survive may be there, but one search cannot show it. Every run is in "
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
        parts.append(
            "Mean test accuracy of each method in percent, search by search:\n"
        )
        parts.append(_means(found))
    return "\n".join(parts)


def _differences(found: RepeatedGraph) -> str:
    rows = []
    for variant, values in found.differences.items():
        over = found.over_searches(variant)
        rows.append(
            [
                variant,
                *(signed(value) for value in values),
                signed(over.mean),
                _interval(over),
                f"{found.same_sign(variant)} of {found.searches}",
                "yes" if found.excludes_zero(variant) else "no",
            ]
        )
    head = [
        "difference from backbone",
        *_columns(found),
        "mean",
        "95 % interval",
        "sign of the mean",
        "excludes 0",
    ]
    return markdown_rows(head, rows)


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


def _interval(over: Summary) -> str:
    return f"{signed(over.low)} to {signed(over.high)}"
