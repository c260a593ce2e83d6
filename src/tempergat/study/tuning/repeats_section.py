"""The parts of docs/tuned.md about further searches of every method."""

from collections.abc import Mapping, Sequence

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
            f"{' and '.join(plan.graphs)} are planned in results/{REPEATS_PLAN_FILE} "
            "and were not run.\n"
        )
    sentences = [_on_graph(name, one, first) for name, one in repeated.items()]
    others = [name for name in first.graphs if name not in repeated]
    if others:
        sentences.append(
            f"On {' and '.join(others)} every method had one search only, so what is "
            "said above about them holds for the settings found."
        )
    return "\n\n".join(sentences) + "\n"


def _on_graph(name: str, found: RepeatedGraph, first: TunedVariants) -> str:
    counts = []
    for verdict, word in (("better", "gains"), ("worse", "losses")):
        judged = [
            comparison.method
            for graph, comparison in first.judged(verdict)
            if graph == name and comparison.method in found.differences
        ]
        kept = [method for method in judged if found.survives(method)]
        lost = [method for method in judged if method not in kept]
        if judged:
            counts.append(
                f"of {len(judged)} {word} of the first search {len(kept)} survive"
                f"{_with_intervals(kept, found)}"
                + (
                    f" and {len(lost)} do not{_with_intervals(lost, found)}"
                    * bool(lost)
                )
            )
    text = "; ".join(counts) or "the first search has no difference to confirm"
    return (
        f"**{name}, over {found.searches} searches of every method:** {text}."
        f"{_new_ones(name, found, first)}"
    )


def _new_ones(name: str, found: RepeatedGraph, first: TunedVariants) -> str:
    """Variants whose interval excludes 0, though the first test was within noise."""
    judged = [*first.judged("better"), *first.judged("worse")]
    known = [c.method for graph, c in judged if graph == name]
    new = [v for v in found.differences if v not in known and found.excludes_zero(v)]
    if not new:
        return ""
    return (
        " Within noise in the first search, but not over all of them"
        f"{_with_intervals(new, found)}."
    )


def _with_intervals(variants: Sequence[str], found: RepeatedGraph) -> str:
    if not variants:
        return ""
    words = []
    for variant in variants:
        over = found.over_searches(variant)
        words.append(
            f"{variant} {signed(over.mean)} on average, interval {_interval(over)}"
        )
    return f" ({'; '.join(words)})"


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
        "the first search. The intervals are over few searches and not corrected for "
        f"the number of variants. Every run is in results/{REPEATS_FILE}, and what "
        f"each search tried and chose in results/{REPEATS_TRIALS_FILE}.\n"
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
