"""What several graphs show together: ranks, and differences on each of them."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tempergat.comparison.charts.heat_map import heat_map
from tempergat.comparison.charts.ranks import ranks_chart
from tempergat.comparison.html_report.parts import as_sentence, figure, limits
from tempergat.comparison.html_report.plain_table import plain_table
from tempergat.comparison.html_report.section import Section
from tempergat.comparison.report.formats import Table
from tempergat.stats import RankTable


@dataclass(frozen=True)
class Overview:
    """The comparisons of several graphs together.

    Attributes:
        answer: What they show, in one sentence.
        ranks: The methods' average ranks; None where they cannot be ranked.
        tables: The summary and the scores, as people read them.
        lead: What else the graphs show, in a few sentences.
    """

    answer: str
    ranks: RankTable | None
    tables: Sequence[Table]
    lead: str = ""


def overview_html(overview: Overview, sections: Mapping[str, Section]) -> str:
    """The part of the page before the sections.

    Args:
        overview: What the graphs show together.
        sections: One for each graph, by its id in the page.
    """
    links = "".join(
        f'<li><a href="#{anchor}">{html.escape(section.shown_name)}</a>: '
        f"{html.escape(section.answer)}{_settings(section)}</li>"
        for anchor, section in sections.items()
    )
    parts = [
        '<h2 class="hidden">All graphs</h2>',
        f'<p class="answer">{html.escape(as_sentence(overview.answer))}</p>',
        f'<p class="lead">{html.escape(overview.lead)}</p>' if overview.lead else "",
        limits(_limits(overview, len(sections))),
        f'<ul class="answers">{links}</ul>',
        *_figures(overview, list(sections.values())),
        *map(plain_table, overview.tables),
    ]
    return '<section aria-label="All graphs">' + "\n".join(parts) + "</section>"


def _limits(overview: Overview, count: int) -> list[str]:
    words = [
        f"Other graphs: the methods were compared on these {count} only.",
        "Other settings: the section of each graph names the recipe that was used.",
    ]
    if overview.ranks is not None:
        words.append(
            "The size of differences: ranks only count which method is ahead. The "
            "sections give the differences in points."
        )
    return words


def _settings(section: Section) -> str:
    """The settings, where the graph's name alone does not say which section it is."""
    if section.shown_name == section.result.dataset:
        return ""
    return f" ({html.escape(section.recipe)})"


def _figures(overview: Overview, sections: Sequence[Section]) -> list[str]:
    parts = []
    drawn = heat_map({s.shown_name: s.result for s in sections})
    if drawn is not None:
        parts.append(
            figure(
                "Difference to the baseline on each graph",
                drawn,
                "In points; gains are blue, losses orange. A star marks a "
                "Holm-corrected p below 0.05 within a graph.",
            )
        )
    ranks = overview.ranks
    if ranks is not None:
        p = ranks.friedman_p
        tested = ""
        if ranks.too_few_datasets:
            tested = f" {len(ranks.datasets)} graphs are too few for this test."
        if p is not None:
            tested += f" Friedman's test over all methods: p = {p:.3g}."
        parts.append(
            figure(
                f"Average ranks over {len(ranks.datasets)} graphs",
                ranks_chart(ranks),
                "A bar joins methods whose average ranks differ by less than the "
                f"critical difference (Nemenyi's test, 5 %).{tested}",
            )
        )
    return parts
