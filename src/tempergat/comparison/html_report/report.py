"""The report of comparisons: one HTML file that needs nothing else."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tempergat.base import UserError
from tempergat.comparison.html_report import svg
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
from tempergat.comparison.html_report.page import page_html, rendered
from tempergat.comparison.html_report.tables import score_table
from tempergat.comparison.paper import published_scores
from tempergat.comparison.report.sentences import ONE_CLASS_MARK, claims
from tempergat.comparison.report.tables import shown_interval
from tempergat.comparison.results.across_graphs import summary_verdict
from tempergat.comparison.results.result import DatasetResult

if TYPE_CHECKING:
    from tempergat.comparison.results.comparison import Comparison
    from tempergat.comparison.results.comparisons import Comparisons


@dataclass(frozen=True)
class _Figure:
    """A drawing with its title and caption, or several of which one is chosen.

    Attributes:
        title: Its heading.
        charts: The drawings by name, as SVG; one alone has no name.
        caption: What stands below it.
        choice: What is chosen where there are several; empty for one.
        first: The name of the drawing that is shown first.
    """

    title: str
    charts: Mapping[str, str]
    caption: str
    choice: str = ""
    first: str = ""


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
    section = _section(comparison, name, command, is_alone=True)
    return page_html(f"Graph attention on {name}", section, after)


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
    graphs = list(zip(names, comparisons, strict=True))
    title = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
    overview = rendered(
        "html_report/overview.html",
        verdict=summary_verdict(comparisons.across),
        has_ranks=comparisons.across.ranks is not None,
        unit=_unit_of_differences(comparisons),
        graphs=graphs,
        figures=_figures_of_several(comparisons),
        tables=comparisons.tables,
    )
    sections = [
        # Numbered, because different names can give the same id.
        _section(comparison, name, command, number)
        for number, (name, comparison) in enumerate(graphs, start=1)
    ]
    return page_html(f"Graph attention on {title}", overview, *sections, after)


def _unit_of_differences(comparisons: "Comparisons") -> str:
    """The unit of differences on all graphs; empty where they have several."""
    units = {one.result.metric.points for one in comparisons}
    return units.pop() if len(units) == 1 else ""


def _figures_of_several(comparisons: "Comparisons") -> list[_Figure]:
    """Differences on each of the graphs, and average ranks."""
    figures = []
    differences = differences_chart(comparisons.across.results)
    if differences is not None:
        unit = _unit_of_differences(comparisons)
        caption = (
            f"{f'In {unit}; gains' if unit else 'Gains'} are blue, losses orange. A "
            "star marks a Holm-corrected p below 0.05 within a graph."
        )
        title = "Difference to the baseline on each graph"
        figures.append(_Figure(title, {"": differences}, caption))
    ranks = comparisons.across.ranks
    if ranks is not None:
        caption = (
            "A bar joins methods whose average ranks differ by less than the critical "
            f"difference ({ranks.test}, 5 %)."
        )
        count = len(ranks.datasets)
        if ranks.too_few_datasets:
            caption += f" {count} graphs are too few for this test."
        if ranks.friedman_p is not None:
            caption += f" Friedman's test over all methods: p = {ranks.friedman_p:.3g}."
        title = f"Average ranks over {count} graphs"
        chart = _for_both_widths(partial(ranks_chart, ranks))
        figures.append(_Figure(title, {"": chart}, caption))
    return figures


def _for_both_widths(draw: Callable[[float], str | None]) -> str:
    """A drawing for large pages and one for phones; empty where there is none.

    Args:
        draw: Draws it at a width.
    """
    wide, narrow = draw(svg.WIDE), draw(svg.NARROW)
    if not wide:
        return ""
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def _section(
    comparison: "Comparison",
    name: str,
    command: str | None,
    number: int = 1,
    *,
    is_alone: bool = False,
) -> str:
    """What the report says about one graph.

    Args:
        comparison: The comparison on the graph.
        name: The graph's name in the page.
        command: What was typed.
        number: The section's number in the page.
        is_alone: Whether the page is about this graph alone.
    """
    result = comparison.result
    published = {} if comparison.condition else published_scores(result)
    return rendered(
        "html_report/section.html",
        name=name,
        number=number,
        is_alone=is_alone,
        answer=comparison.answer,
        claims=claims(result),
        recipe=comparison.recipe,
        further=comparison.tables[1:],
        one_class_mark=ONE_CLASS_MARK,
        of_one_class=[row for row in result.results if row.only_class],
        copies={
            "LaTeX": comparison.to_latex(),
            "Markdown": comparison.to_markdown(),
            "CSV": comparison.to_csv(),
        },
        figures=_figures(comparison),
        reading={k.replace("_", " "): v for k, v in comparison.reading.items()},
        **score_table(comparison, published),
        **_how_to_repeat(comparison, command),
    )


def _figures(comparison: "Comparison") -> list[_Figure]:
    result, runs = comparison.result, comparison.runs
    methods, rows = result.methods, result.results
    if not any(row.scores for row in rows):
        return []
    has_bars = any(shown_interval(row.summary, result.metric) for row in rows)
    band = "Means over runs; bands are one standard deviation to each side."
    curves = partial(curves_chart, runs, methods, result.metric)
    costs = {c: _for_both_widths(partial(cost_chart, result, runs, c)) for c in COSTS}
    costs = {cost: chart for cost, chart in costs.items() if chart}
    figures = [
        _Figure(
            "Every run",
            {"": _for_both_widths(partial(strips_chart, result, comparison.baseline))},
            "Each dot is a run, each shape a mean"
            f"{' with its 95 % interval' if has_bars else ''}. Circles have neither "
            "temperature nor gate, triangles a temperature, squares a gate, diamonds "
            "both.",
        ),
        _Figure(
            "Learning curves",
            {"": _for_both_widths(curves)},
            f"{band} The axis begins at the least value after the first tenth of the "
            "epochs.",
        ),
        *(
            _Figure(
                title,
                {"": _for_both_widths(partial(learned_chart, runs, methods, what))},
                band,
            )
            for what, (title, _) in LEARNED.items()
        ),
        _Figure(
            "Gates at the selected epoch",
            {"": gates_chart(runs, methods) or ""},
            "All gates of all nodes and channels, from closed (0) to open (1).",
        ),
        _confusions(result, comparison.class_names),
        _Figure(
            "Cost against score",
            costs,
            "Time is per run. Where several runs are trained together, each counts an "
            "equal part of the time that all of them took.",
            choice="cost",
            first=next(iter(costs), ""),
        ),
    ]
    return [one for one in figures if any(one.charts.values())]


def _confusions(result: DatasetResult, class_names: tuple[str, ...] | None) -> _Figure:
    """The confusion matrices of all methods, the best one's first."""
    merit = result.metric.merit
    means = {row.method: merit(row.summary.mean or 0.0) for row in result.results}
    counts = {row.method: row.confusion for row in result.results if row.confusion}
    caption = (
        "Test nodes of all runs. Rows are true classes; numbers are percent of a row."
    )
    classes = max(map(len, counts.values()), default=0)
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
    first = max(counts, key=means.__getitem__, default="")
    return _Figure("Confusion matrix", charts, caption, "method", first)


def _how_to_repeat(comparison: "Comparison", command: str | None) -> dict[str, Any]:
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
    return {"facts": facts, "settings": text}


def _named_values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
