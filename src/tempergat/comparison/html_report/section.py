"""What the report says about one graph."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tempergat.comparison.charts.confusion import MOST_CLASSES, confusion_chart
from tempergat.comparison.charts.cost import COSTS, cost_chart
from tempergat.comparison.charts.curves import curves_chart
from tempergat.comparison.charts.gates import gates_chart
from tempergat.comparison.charts.learned import LEARNED, learned_chart
from tempergat.comparison.charts.strips import strips_chart
from tempergat.comparison.html_report.parts import (
    as_sentence,
    choice,
    copy_buttons,
    facts_list,
    figure,
    limits,
)
from tempergat.comparison.html_report.repeating import repeating_part
from tempergat.comparison.html_report.score_table import score_table
from tempergat.comparison.report.formats import Table, as_latex, as_markdown
from tempergat.comparison.report.one_class import ONE_CLASS_MARK
from tempergat.comparison.report.records import as_csv
from tempergat.comparison.report.tables import shown_interval
from tempergat.comparison.results import METRIC_NAMES, DatasetResult
from tempergat.training import Run


class Published(NamedTuple):
    """What the paper reports for a method: its score in percent, over how many runs."""

    mean: float
    std: float
    runs: int


@dataclass(frozen=True)
class Section:
    """One graph's comparison, with all that the report shows of it.

    Attributes:
        result: The scores.
        runs: The runs they are from, failed ones included.
        answer: What the comparison shows, in one sentence.
        table: The table as people read it; its notes say how to read it.
        baseline: The method all others are compared with; None where each variant is
            compared with its backbone.
        class_names: Names of the classes; None where classes are numbers.
        reading: What the files of a user's graph were taken for, by subject.
        recipe: Name of the recipe.
        settings: What was given in place of the recipe's settings.
        command: What was typed; None where it is not known.
        published: The paper's scores by method, where it has the dataset.
        name: The graph's name in the page; the dataset's when it is None.
        best: The method that the answer calls best; None where it calls none so.
    """

    result: DatasetResult
    runs: Sequence[Run]
    answer: str
    table: Table
    recipe: str
    baseline: str | None = None
    class_names: Sequence[str] | None = None
    reading: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    command: str | None = None
    published: Mapping[str, Published] = field(default_factory=dict)
    name: str | None = None
    best: str | None = None

    @property
    def shown_name(self) -> str:
        """The graph's name in the page."""
        return self.name or self.result.dataset


def section_html(section: Section, anchor: str, *, named: bool = False) -> str:
    """The section as HTML.

    Args:
        section: One graph's comparison.
        anchor: The section's id in the page.
        named: Whether its heading is shown.
    """
    result = section.result
    name = html.escape(section.shown_name)
    # The page's heading names a single graph; screen readers still get every level.
    shown = "" if named else ' class="hidden"'
    parts = [
        f"<h2{shown}>{name}</h2>",
        f'<p class="answer">{html.escape(as_sentence(section.answer))}</p>',
        _limits(section),
        _warnings(result),
        "<h3>Scores</h3>",
        score_table(section),
        copy_buttons(
            f"table of {result.dataset}",
            {
                "LaTeX": as_latex(section.table),
                "Markdown": as_markdown(section.table),
                "CSV": as_csv(result),
            },
        ),
        *_figures(section),
        _reading(section),
        "<h3>How to repeat this</h3>",
        repeating_part(section),
    ]
    body = "\n".join(part for part in parts if part)
    return f'<section id="{anchor}" aria-label="{name}">\n{body}\n</section>'


def _reading(section: Section) -> str:
    """What the files were taken for; nothing where it is not known."""
    facts = {
        subject.replace("_", " "): what for subject, what in section.reading.items()
    }
    return f"<h3>How the graph was read</h3>{facts_list(facts)}" if facts else ""


def _limits(section: Section) -> str:
    """What the answer does not cover."""
    result = section.result
    words = [
        f"Other settings: one recipe was used ({section.recipe}), and the order of "
        "methods can change with another."
    ]
    if result.splits == 1:
        words.append(
            "Other test nodes: all runs are scored on the same ones, and more seeds do "
            "not show how the scores would change with others."
        )
    return limits(words)


def _warnings(result: DatasetResult) -> str:
    found = [row for row in result.results if row.only_class]
    if not found:
        return ""
    named = ", ".join(
        f"{html.escape(row.method)} {ONE_CLASS_MARK} in {len(row.only_class)} of "
        f"{row.summary.runs} runs"
        for row in found
    )
    return (
        '<p class="warning" role="note"><strong>Only one class is predicted</strong> '
        f"for every test node by {named}. Class weights (<code>--class-weights "
        "balanced</code>) or another recipe can help.</p>"
    )


def _figures(section: Section) -> list[str]:
    result, runs = section.result, section.runs
    metric = METRIC_NAMES[result.metric]
    if not any(row.scores for row in result.results):
        return []
    band = "Means over runs; bands are one standard deviation to each side."
    drawn = [
        (
            "Every run",
            strips_chart(result, section.baseline),
            f"Each dot is a run, each shape a mean{_intervals(result)}. Circles have "
            "neither temperature nor gate, triangles a temperature, squares a gate, "
            "diamonds both.",
        ),
        (
            "Learning curves",
            curves_chart(runs, result.methods, metric),
            f"{band} The axis begins at the least value after the first tenth of the "
            "epochs.",
        ),
        *(
            (title, learned_chart(runs, result.methods, what), band)
            for what, (title, _) in LEARNED.items()
        ),
        (
            "Gates at the selected epoch",
            gates_chart(runs, result.methods),
            "All gates of all nodes and channels, from closed (0) to open (1).",
        ),
    ]
    parts = [figure(title, svg, words) for title, svg, words in drawn if svg]
    return [*parts, _confusions(section), _costs(section)]


def _intervals(result: DatasetResult) -> str:
    shown = [shown_interval(row.summary, result.splits) for row in result.results]
    return " with its 95 % interval" if any(shown) else ""


def _confusions(section: Section) -> str:
    shown = [row for row in section.result.results if row.confusion is not None]
    if not shown:
        return ""
    drawn = {}
    for row in shown:
        counts = row.confusion or ()
        names = section.class_names or [str(number) for number in range(len(counts))]
        drawn[row.method] = confusion_chart(row.method, counts, names)
    best = max(shown, key=lambda row: row.summary.mean or 0.0).method
    caption = (
        "Test nodes of all runs. Rows are true classes; numbers are percent of a row."
    )
    count = max(len(row.confusion or ()) for row in shown)
    if count > MOST_CLASSES:
        caption += (
            f" Of {count:,} classes, the {MOST_CLASSES} with the most test "
            "nodes are shown."
        )
    return figure("Confusion matrix", choice("method", drawn, best), caption)


def _costs(section: Section) -> str:
    drawn = {
        cost.name: chart
        for cost in COSTS
        if (chart := cost_chart(section.result, section.runs, cost)) is not None
    }
    if not drawn:
        return ""
    return figure(
        "Cost against score",
        choice("cost", drawn, next(iter(drawn))),
        "Time is per run. Where several runs are trained together, each counts an "
        "equal part of the time that all of them took.",
    )
