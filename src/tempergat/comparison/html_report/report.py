"""The report of comparisons: one HTML file that needs nothing else."""

import html
import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tempergat.base import UserError
from tempergat.comparison.html_report.charts import (
    COSTS,
    cost_chart,
    gates_chart,
    ranks_chart,
    strips_chart,
)
from tempergat.comparison.html_report.heat_maps import (
    MOST_CLASSES,
    confusion_chart,
    differences_chart,
)
from tempergat.comparison.html_report.line_charts import (
    LEARNED,
    curves_chart,
    learned_chart,
)
from tempergat.comparison.html_report.page import (
    as_sentence,
    choice,
    copy_buttons,
    facts_list,
    figure,
    for_both_widths,
    limits,
    page_html,
)
from tempergat.comparison.html_report.tables import plain_table, score_table
from tempergat.comparison.paper import published_scores
from tempergat.comparison.report.sentences import ONE_CLASS_MARK
from tempergat.comparison.report.tables import shown_interval
from tempergat.comparison.results.result import METRIC_NAMES, DatasetResult

if TYPE_CHECKING:
    from tempergat.comparison.results.comparison import Comparison
    from tempergat.comparison.results.comparisons import Comparisons


def report_html(
    comparison: "Comparison", command: str | None = None, after: str = ""
) -> str:
    """The report of one graph.

    Args:
        comparison: What was compared.
        command: What was typed to make it; None where that is not known.
        after: HTML that comes behind it, like the explorer of a model.
    """
    name = comparison.result.dataset
    # The page's heading names the graph; screen readers still get every level.
    section = _section(comparison, name, command, "graph-1", ' class="hidden"')
    return page_html(f"Graph attention on {name}", _joined([section, after]))


def several_html(
    comparisons: "Comparisons", command: str | None = None, after: str = ""
) -> str:
    """The report of several graphs: an overview, then a section for each.

    Args:
        comparisons: What was compared.
        command: What was typed to make them; None where that is not known.
        after: HTML that comes behind them, like the explorer of a model.

    Raises:
        UserError: There is nothing to report.
    """
    if not len(comparisons):
        raise UserError("there are no runs to report; compare methods first")
    names = comparisons.names
    graphs = zip(names, comparisons, strict=True)
    title = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
    sections = [
        # Numbered, because different names can give the same id.
        _section(comparison, name, command, f"graph-{number}")
        for number, (name, comparison) in enumerate(graphs, start=1)
    ]
    body = _joined([_overview(comparisons), *sections, after])
    return page_html(f"Graph attention on {title}", body)


def _joined(parts: list[str]) -> str:
    return "\n".join(part for part in parts if part)


def _overview(comparisons: "Comparisons") -> str:
    """What several graphs show together: ranks, and differences on each of them."""
    links = ""
    graphs = zip(comparisons.names, comparisons, strict=True)
    for number, (name, one) in enumerate(graphs, start=1):
        # The settings, where the graph's name alone does not say which section it is.
        recipe = f" ({html.escape(one.recipe)})" if name != one.result.dataset else ""
        links += (
            f'<li><a href="#graph-{number}">{html.escape(name)}</a>: '
            f"{html.escape(one.verdict)}{recipe}</li>"
        )
    not_covered = [
        f"Other graphs: the methods were compared on these {len(comparisons)} only.",
        "Other settings: the section of each graph names the recipe that was used.",
    ]
    if comparisons.across.ranks is not None:
        not_covered.append(
            "The size of differences: ranks only count which method is ahead. The "
            "sections give the differences in points."
        )
    parts = [
        '<h2 class="hidden">All graphs</h2>',
        f'<p class="answer">{html.escape(as_sentence(comparisons.verdict))}</p>\n',
        limits(not_covered),
        f'<ul class="answers">{links}</ul>',
        *_figures_of_several(comparisons),
        *map(plain_table, (comparisons.summary, comparisons.scores)),
    ]
    return '<section aria-label="All graphs">' + "\n".join(parts) + "</section>"


def _figures_of_several(comparisons: "Comparisons") -> list[str]:
    figures = []
    differences = differences_chart(comparisons.across.results)
    if differences is not None:
        caption = (
            "In points; gains are blue, losses orange. A star marks a Holm-corrected p "
            "below 0.05 within a graph."
        )
        title = "Difference to the baseline on each graph"
        figures.append(figure(title, differences, caption))
    ranks = comparisons.across.ranks
    if ranks is not None:
        caption = (
            "A bar joins methods whose average ranks differ by less than the critical "
            "difference (Nemenyi's test, 5 %)."
        )
        count = len(ranks.datasets)
        if ranks.too_few_datasets:
            caption += f" {count} graphs are too few for this test."
        if ranks.friedman_p is not None:
            caption += f" Friedman's test over all methods: p = {ranks.friedman_p:.3g}."
        title = f"Average ranks over {count} graphs"
        figures.append(
            figure(title, for_both_widths(partial(ranks_chart, ranks)), caption)
        )
    return figures


def _section(
    comparison: "Comparison",
    graph: str,
    command: str | None,
    anchor: str,
    heading: str = "",
) -> str:
    """What the report says about one graph.

    Args:
        comparison: The comparison on the graph.
        graph: The graph's name in the page.
        command: What was typed.
        anchor: The section's id in the page.
        heading: Attributes of its heading.
    """
    result = comparison.result
    name = html.escape(graph)
    published = {} if comparison.condition else published_scores(result)
    copies = {
        "LaTeX": comparison.to_latex(),
        "Markdown": comparison.to_markdown(),
        "CSV": comparison.to_csv(),
    }
    reading = {
        subject.replace("_", " "): what for subject, what in comparison.reading.items()
    }
    parts = [
        f"<h2{heading}>{name}</h2>",
        f'<p class="answer">{html.escape(as_sentence(comparison.verdict))}</p>',
        _limits(result, comparison.recipe),
        _warning(result),
        "<h3>Scores</h3>",
        score_table(comparison, published),
        copy_buttons(f"table of {result.dataset}", copies),
        *_figures(comparison),
        f"<h3>How the graph was read</h3>{facts_list(reading)}" if reading else "",
        "<h3>How to repeat this</h3>",
        _how_to_repeat(comparison, command),
    ]
    return f'<section id="{anchor}" aria-label="{name}">\n{_joined(parts)}\n</section>'


def _limits(result: DatasetResult, recipe: str) -> str:
    """What the answer does not cover."""
    words = [
        f"Other settings: one recipe was used ({recipe}), and the order of methods can "
        "change with another."
    ]
    if result.splits == 1:
        words.append(
            "Other test nodes: all runs are scored on the same ones, and more seeds do "
            "not show how the scores would change with others."
        )
    return limits(words)


def _warning(result: DatasetResult) -> str:
    methods = ", ".join(
        f"{html.escape(row.method)} {ONE_CLASS_MARK} in {len(row.only_class)} of "
        f"{row.summary.runs} runs"
        for row in result.results
        if row.only_class
    )
    if not methods:
        return ""
    return (
        '<p class="warning" role="note"><strong>Only one class is predicted</strong> '
        f"for every test node by {methods}. Class weights (<code>--class-weights "
        "balanced</code>) or another recipe can help.</p>"
    )


def _figures(comparison: "Comparison") -> list[str]:
    result, runs = comparison.result, comparison.runs
    methods, rows = result.methods, result.results
    if not any(row.scores for row in rows):
        return []
    has_bars = any(shown_interval(row.summary, result.splits) for row in rows)
    band = "Means over runs; bands are one standard deviation to each side."
    charts = {
        "Every run": (
            for_both_widths(partial(strips_chart, result, comparison.baseline)),
            "Each dot is a run, each shape a mean"
            f"{' with its 95 % interval' if has_bars else ''}. Circles have neither "
            "temperature nor gate, triangles a temperature, squares a gate, diamonds "
            "both.",
        ),
        "Learning curves": (
            for_both_widths(
                partial(curves_chart, runs, methods, METRIC_NAMES[result.metric])
            ),
            f"{band} The axis begins at the least value after the first tenth of the "
            "epochs.",
        ),
        **{
            title: (for_both_widths(partial(learned_chart, runs, methods, what)), band)
            for what, (title, _) in LEARNED.items()
        },
        "Gates at the selected epoch": (
            gates_chart(runs, methods),
            "All gates of all nodes and channels, from closed (0) to open (1).",
        ),
        "Confusion matrix": _confusions(result, comparison.class_names),
        "Cost against score": (
            choice(
                "cost",
                {
                    c: for_both_widths(partial(cost_chart, result, runs, c))
                    for c in COSTS
                },
            ),
            "Time is per run. Where several runs are trained together, each counts an "
            "equal part of the time that all of them took.",
        ),
    }
    return [
        figure(title, chart, caption)
        for title, (chart, caption) in charts.items()
        if chart
    ]


def _confusions(
    result: DatasetResult, class_names: tuple[str, ...] | None
) -> tuple[str, str]:
    """The confusion matrices of all methods, the best one's first, and the caption."""
    means = {row.method: row.summary.mean or 0.0 for row in result.results}
    counts = {row.method: row.confusion for row in result.results if row.confusion}
    caption = (
        "Test nodes of all runs. Rows are true classes; numbers are percent of a row."
    )
    if not counts:
        return "", caption
    classes = max(map(len, counts.values()))
    if classes > MOST_CLASSES:
        caption += (
            f" Of {classes:,} classes, the {MOST_CLASSES} with the most test nodes are "
            "shown."
        )
    charts = {
        method: confusion_chart(
            method, matrix, class_names or [str(n) for n in range(len(matrix))]
        )
        for method, matrix in counts.items()
    }
    return choice("method", charts, max(counts, key=means.__getitem__)), caption


def _how_to_repeat(comparison: "Comparison", command: str | None) -> str:
    """Command, recipe, settings, versions, device and fingerprints."""
    runs = comparison.runs
    seeds = sorted({run.seed for run in runs})
    span = ", ".join(map(str, seeds))
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        span = f"{seeds[0]} to {seeds[-1]}"
    versions = sorted({tuple(sorted(run.versions.items())) for run in runs})
    by_split = sorted(runs, key=lambda run: run.split)
    facts = {
        "command": command or "",
        "recipe": comparison.recipe,
        "changed settings": _named_values(comparison.settings),
        "seeds": span,
        "device": ", ".join(sorted({run.device for run in runs})),
        "versions": "; ".join(_named_values(dict(of_run)) for of_run in versions),
        "fingerprint of the graph and its splits": ", ".join(
            dict.fromkeys(run.fingerprint for run in by_split)
        ),
        "version of the numerics": ", ".join(
            sorted({str(run.numerics) for run in runs})
        ),
    }
    # Where settings differ by split, those of each split.
    configs = {(run.method, run.config_hash) for run in runs}
    differ = len(configs) > len({run.method for run in runs})
    settings = {
        f"{run.method}, split {run.split}" if differ else run.method: dict(run.config)
        for run in runs
    }
    text = json.dumps(settings, indent=1, sort_keys=True, default=str)
    return (
        facts_list(facts) + "<details><summary>Every setting of every method</summary>"
        f'<pre class="scroll" tabindex="0">{html.escape(text)}</pre></details>'
        + copy_buttons("settings", {"settings": text})
    )


def _named_values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
