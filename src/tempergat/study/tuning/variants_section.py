"""The part of docs/tuned.md about every method with a search of its own."""

from collections.abc import Mapping

from tempergat.base import joined
from tempergat.stats import PairedComparison
from tempergat.study.report import as_markdown, markdown_rows, result_table, signed
from tempergat.study.search import setting_word
from tempergat.study.tuning.trials import NEAR_BEST
from tempergat.study.tuning.variants import (
    PLAN_FILE,
    SETTINGS,
    TunedGraph,
    TunedVariants,
)

# A method and its mean test score in percent.
Best = tuple[str, float]


def variants_answer(found: TunedVariants) -> str:
    """The verdict of the first search."""
    better, worse = found.judged("better"), found.judged("worse")
    graphs = joined(list(found.graphs))
    within = found.compared - len(better) - len(worse)
    first = (
        f"With one search of {found.plan.trials} settings for every method, "
        f"in {len(better)} of {found.compared} comparisons on {graphs} a variant beats "
        f"its tuned backbone{_named(better)}; {within} are within noise, and in "
        f"{len(worse)} it is worse{_named(worse)}."
    )
    if better:
        second = (
            'With these settings, "no variant beats its tuned backbone" does not hold.'
        )
    elif found.missing:
        second = (
            '"No variant beats its tuned backbone" holds there; '
            f"{joined(list(found.missing))} was not run to the end."
        )
    else:
        second = 'So "no variant beats its tuned backbone" holds.'
    collapsed = [
        f"{method} on {name} in {count}"
        for name, graph in found.graphs.items()
        for method, count in graph.collapsed.items()
    ]
    third = (
        f"Collapsed runs, of {len(found.plan.run_seeds)} each: {', '.join(collapsed)}."
        if collapsed
        else "No run collapses with settings of its own, so the collapses below come "
        "from settings that suit the backbone only."
    )
    return f"{first} {second} {third}\n"


def search_caveat(
    found: TunedVariants, here: Mapping[str, Best], earlier: Mapping[str, Best]
) -> str:
    """That the tests do not cover which settings a search finds.

    Args:
        found: The study.
        here: By graph, the best method in any search of the study.
        earlier: By graph, the best backbone of the search for each backbone.
    """
    judged = [*found.judged("better"), *found.judged("worse")]
    apart = [one for one in judged if _is_apart(found.graphs[one[0]], one[1])]
    higher = []
    for name, (method, mean) in here.items():
        backbone, score = earlier.get(name, ("", 0.0))
        if score > mean:
            higher.append(
                f"{backbone} reaches {score:.2f} on {name} (best of all methods "
                f"searched here: {method}, {mean:.2f})"
            )
    text = (
        "**These tests hold for the settings that were found.** They are about one "
        f"search of every method, with {len(found.plan.search_seeds)} seeds per "
        "setting, and do not contain the spread between searches. The best trials by "
        "validation score show what a search might as well have chosen: only in "
        f"{len(apart)} of these {len(judged)} differences{_named(apart)} do the "
        f"{NEAR_BEST} best trials of the variant and those of its backbone lie fully "
        "apart in test accuracy."
    )
    if higher:
        text += (
            " The earlier search below had more seeds per setting and could normalise "
            f"features. It found better settings: with them {joined(higher)}."
        )
    return f"{text}\n"


def _is_apart(graph: TunedGraph, comparison: PairedComparison) -> bool:
    low, high = graph.near_best[comparison.method]
    other_low, other_high = graph.near_best[comparison.baseline]
    return low > other_high or high < other_low


def variants_section(found: TunedVariants) -> str:
    """Scores and settings on every graph."""
    seeds, plan = found.plan.run_seeds, found.plan
    parts = [
        "## Every method with its own search\n\n"
        f"Each method was searched by itself: {plan.trials} settings on the public "
        f"split, by mean validation accuracy over {len(plan.search_seeds)} seeds, then "
        f"{len(seeds)} other seeds for the test score, on "
        f"{' and '.join(found.devices)}. All else is that of {plan.base}. The plan was "
        f"fixed in results/{PLAN_FILE}. A collapsed run classifies less than half of "
        "its training nodes correctly at its last epoch. The last column of settings "
        "shows what a search might as well have chosen: the lowest and highest test "
        f"mean, over the seeds of the search, of the {NEAR_BEST} trials with the best "
        "validation score (more where several tie with the last).\n"
    ]
    for name, graph in found.graphs.items():
        parts.append(f"### {name}\n")
        parts.append(as_markdown(result_table(graph.result)))
        parts.append(_SETTINGS_INTRODUCTION)
        parts.append(_settings(graph))
    for name, missing in found.missing.items():
        parts.append(f"### {name}\n\nReported runs that are missing: {missing}.\n")
    return "\n".join(parts)


_SETTINGS_INTRODUCTION = (
    "These p values take the settings as given; which settings a search finds is not "
    "in them. The settings, and the test means of the best trials:\n"
)


def _settings(graph: TunedGraph) -> str:
    rows = [
        [
            method,
            *(setting_word(of_method.get(name, "-")) for name in SETTINGS),
            "{:.2f} to {:.2f}".format(*graph.near_best[method]),
        ]
        for method, of_method in graph.settings.items()
    ]
    return markdown_rows(["method", *SETTINGS, f"best {NEAR_BEST} trials, test"], rows)


def _named(found: list[tuple[str, PairedComparison]]) -> str:
    if not found:
        return ""
    words = [f"{c.method} on {name} {signed(c.difference)}" for name, c in found]
    return f" ({', '.join(words)})"
