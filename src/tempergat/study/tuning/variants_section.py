"""The part of docs/tuned.md about every method with a search of its own."""

from tempergat.stats import PairedComparison
from tempergat.study.report import as_markdown, markdown_rows, result_table, signed
from tempergat.study.search import setting_word
from tempergat.study.tuning.variants import (
    PLAN_FILE,
    SETTINGS,
    TunedGraph,
    TunedVariants,
)


def variants_answer(found: TunedVariants) -> str:
    """The verdict in three sentences."""
    better, worse = found.judged("better"), found.judged("worse")
    graphs = _joined(list(found.graphs))
    within = found.compared - len(better) - len(worse)
    first = (
        f"With a search of {found.plan.trials} settings for every method, "
        f"{len(better)} of {found.compared} variants beat their tuned backbone on "
        f"{graphs}{_named(better)}; {within} are within noise and {len(worse)} worse"
        f"{_named(worse)}."
    )
    if better:
        second = 'So "no variant beats its tuned backbone" does not hold.'
    elif found.missing:
        second = (
            '"No variant beats its tuned backbone" holds there; '
            f"{_joined(list(found.missing))} was not run to the end."
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
        "its training nodes correctly at its last epoch.\n"
    ]
    for name, graph in found.graphs.items():
        parts.append(f"### {name}\n")
        parts.append(as_markdown(result_table(graph.result)))
        parts.append(_settings(graph))
    for name, missing in found.missing.items():
        parts.append(f"### {name}\n\nReported runs that are missing: {missing}.\n")
    return "\n".join(parts)


def _settings(graph: TunedGraph) -> str:
    rows = [
        [method, *(setting_word(of_method.get(name, "-")) for name in SETTINGS)]
        for method, of_method in graph.settings.items()
    ]
    return markdown_rows(["method", *SETTINGS], rows)


def _named(found: list[tuple[str, PairedComparison]]) -> str:
    if not found:
        return ""
    words = [f"{c.method} on {name} {signed(c.difference)}" for name, c in found]
    return f" ({', '.join(words)})"


def _joined(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
