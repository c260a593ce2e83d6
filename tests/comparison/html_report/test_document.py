"""The numbers of a report are those of its runs, and it needs nothing else."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tempergat.base import UserError
from tempergat.comparison.html_report.document import report_html
from tempergat.comparison.html_report.overview import Overview
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.report.words import percent, signed
from tempergat.comparison.results import dataset_result
from tempergat.stats import average_ranks
from tests.support.made_up_runs import METHODS
from tests.support.report_sections import hostile_section, section


class _Page(HTMLParser):
    """Collects the tags of a page, and the cells of its tables by row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def test_p_stands_in_the_view_of_differences_only() -> None:
    shown = section()
    both = dataset_result(shown.runs, METHODS, {"gated": "gat"}, all_pairs=True)
    page = report_html([replace(shown, result=both, table=result_table(both))])
    (p,) = re.findall(r"<th[^>]*>(?:<[^>]*>)*p(?=<)", page)
    assert 'data-in="differences"' in p
    heading = _Page(page).rows[0]
    assert "against backbone" in heading
    assert "verdict" not in heading


def test_the_table_has_the_scores_of_the_result() -> None:
    shown = section()
    heading, *rows, _ = _Page(report_html([shown])).rows
    for row, method in zip(rows, shown.result.results, strict=True):
        cells = dict(zip(heading, row, strict=True))
        assert cells["method"].split()[0] == method.method
        mean, std = cells["accuracy"].split(" ± ")
        assert (mean, std) == (
            percent(method.summary.mean),
            percent(method.summary.std),
        )
        if method.comparison is not None:
            assert float(cells["difference"]) == pytest.approx(
                method.comparison.difference, abs=0.005
            )
            assert cells["d"] == signed(method.comparison.effect_size)


def test_the_papers_scores_stand_beside_ours() -> None:
    heading, *rows = _Page(report_html([section()])).rows
    gat = dict(zip(heading, rows[1], strict=True))
    assert (gat["paper"], gat["to the paper"]) == ("81.00 ± 0.50", "-1.00")


def test_the_highest_mean_is_called_best_only_where_the_answer_says_so() -> None:
    for best, badge in ((None, "highest mean"), ("gated", "best")):
        _, *rows = _Page(report_html([section(best=best)])).rows
        assert [row[0] for row in rows[:2]] == ["gcn", "gat"]
        assert rows[2][0] == f"gated {badge} GAT + gate after attention"


def test_every_run_is_a_dot() -> None:
    page = _Page(report_html([section()]))
    dots = [found for tag, found in page.tags if tag == "circle"]
    assert sum("dot" in (found["class"] or "") for found in dots) == 24


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = report_html([section()])
    found = re.findall(r"https?://[^\s\"'<]+", text)
    assert set(found) <= {"http://www.w3.org/2000/svg"}
    assert len(text) < 3_000_000


def test_markup_in_names_opens_no_tag() -> None:
    page = _Page(report_html([hostile_section()]))
    tags = [tag for tag, _ in page.tags]
    assert "img" not in tags
    assert "b" not in tags
    plain = _Page(report_html([section()]))
    assert tags.count("script") == [tag for tag, _ in plain.tags].count("script")


def test_several_graphs_have_an_overview_and_a_section_each() -> None:
    names = ("cora", "citeseer", "pubmed")
    scores = {name: {"gcn": 79.0, "gat": 80.0, "gated": 84.0} for name in names}
    overview = Overview("gated is ahead on all", average_ranks(scores), ())
    page = _Page(report_html([section(name) for name in names], overview))
    sections = [
        found["id"] for tag, found in page.tags if tag == "section" and "id" in found
    ]
    assert sections == ["graph-1", "graph-2", "graph-3"]
    links = [found["href"] for tag, found in page.tags if tag == "a"]
    assert links == [f"#{anchor}" for anchor in sections]
    labels = {found.get("aria-label") for tag, found in page.tags if tag == "svg"}
    assert "Average ranks with critical difference" in labels
    assert "Difference to the baseline by method and graph" in labels


def test_too_few_graphs_for_the_test_of_ranks_are_named() -> None:
    scores = {name: {"gcn": 1.0, "gat": 2.0, "gated": 3.0} for name in ("a", "b", "c")}
    sections = [section(name) for name in scores]
    enough = Overview("gated is ahead", average_ranks(scores), ())
    assert "too few" not in report_html(sections, enough)
    scores.pop("c")
    few = Overview("gated is ahead", average_ranks(scores), ())
    assert "2 graphs are too few for this test." in report_html(sections[:2], few)


def test_intervals_are_mentioned_only_where_they_are_drawn() -> None:
    assert "a mean with its 95 % interval. Circles" in report_html([section()])
    shown = section()
    few = [run for run in shown.runs if run.seed < 3]
    result = dataset_result(few, METHODS, "gat")
    table = result_table(result)
    text = report_html([replace(shown, runs=few, result=result, table=table)])
    assert "each shape a mean. Circles" in text
    assert (
        '<p class="note">A 95 % interval needs 5 runs of a method or more.</p>' in text
    )


def test_panels_of_learning_curves_say_which_methods_they_hold() -> None:
    text = report_html([section()])
    assert ">gcn</text>" in text
    assert ">gat and its variants</text>" in text


def test_a_method_that_predicts_one_class_is_warned_of() -> None:
    shown = section()
    rows = tuple(
        replace(row, only_class={0: 1, 3: 1}) if row.method == "gated" else row
        for row in shown.result.results
    )
    result = replace(shown.result, results=rows)
    table = result_table(result)
    text = report_html([replace(shown, result=result, table=table)])
    assert "for every test node by gated † in 2 of 8 runs" in text
    # The copies of the table have their own note.
    page = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert page.count("in 2 of 8 runs") == 1
    assert "Only one class is predicted" not in report_html([shown])


def test_a_report_without_runs_is_refused() -> None:
    with pytest.raises(UserError, match="compare methods first"):
        report_html([])
