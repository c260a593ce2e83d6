"""The numbers of a report are those of its runs, and it needs nothing else."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tempergat.base import UserError
from tempergat.comparison.paper import published_scores, read_paper
from tempergat.comparison.report.formats import signed
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.comparisons import Comparisons
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tempergat.training import METRICS
from tests.support.made_up_comparisons import comparison, hostile_comparison
from tests.support.made_up_runs import METHODS, study

percent = METRICS["accuracy"].text


class _Page(HTMLParser):
    """Collects the tags of a page, and the cells of its tables by row."""

    def __init__(self, shown: Comparison | Comparisons) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(shown.to_html())

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

    def cells(self, method: str) -> dict[str, str]:
        """The cells of a method by their headings."""
        heading, *rows = self.rows
        (row,) = (row for row in rows if row[0].split()[0] == method)
        return dict(zip(heading, row, strict=True))


def test_p_stands_in_the_view_of_differences_only() -> None:
    shown = comparison(against={"gated": "gat"})
    (p,) = re.findall(r"<th[^>]*>(?:<[^>]*>)*p(?=<)", shown.to_html())
    assert 'data-in="differences"' in p
    heading = _Page(shown).rows[0]
    assert "against backbone" in heading
    assert "verdict" not in heading


def test_the_table_has_the_scores_of_the_result() -> None:
    shown = comparison()
    page = _Page(shown)
    for method in shown.result.results:
        cells = page.cells(method.method)
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


def result(dataset: str, metric: str = "accuracy") -> DatasetResult:
    runs = study(dataset, {"gat": 80.0, "gated": 81.0}, range(3))
    return dataset_result(runs, METHODS, "gat", metric)


def test_the_papers_scores_stand_beside_ours() -> None:
    ours = replace(comparison(), result=result("cora"))
    assert list(published_scores(ours.result)) == ["gat", "gated"]
    cell = read_paper()["cora"]["gated"]
    gated = _Page(ours).cells("gated")
    assert gated["paper"] == f"{percent(cell.mean)} ± {percent(cell.std)}"
    assert gated["to the paper"] == signed(81.0 - cell.mean)
    assert f"over {cell.runs} runs with its own settings" in ours.to_html()


@pytest.mark.parametrize(
    "ours",
    [
        result("my_graph"),
        result("cora", "macro_f1"),
        # Another graph with the name of a dataset: it has two classes.
        comparison("cora").result,
    ],
)
def test_other_graphs_and_metrics_have_no_scores_of_the_paper(
    ours: DatasetResult,
) -> None:
    assert published_scores(ours) == {}
    assert "paper" not in _Page(replace(comparison(), result=ours)).rows[0]


def test_best_and_second_scores_are_marked_in_every_table() -> None:
    text = several("cora", "citeseer").to_html()
    # The table of each graph, and a column for each in the overview.
    assert len(re.findall(r'<td class="number second"[^>]*>80.00 ± ', text)) == 2
    assert len(re.findall(r'<td data-key="84.00" class="best">84.00 ± ', text)) == 2


def test_the_highest_mean_is_called_best_only_where_the_answer_says_so() -> None:
    for against, badge in (("gat", "highest mean"), ({}, "best")):
        _, *rows = _Page(comparison(seeds=20, against=against)).rows
        assert [row[0] for row in rows[:2]] == ["gcn", "gat"]
        assert rows[2][0] == f"gated {badge} GAT + gate after attention"


def test_every_run_is_a_dot_on_large_pages_and_on_phones() -> None:
    _, wide, narrow = re.split(
        r'<div class="(?:wide|narrow)">', comparison().to_html()
    )[:3]
    assert [part.count('class="dot ') for part in (wide, narrow)] == [24, 24]


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = comparison().to_html()
    addresses = re.findall(r"https?://[^\s\"'<]+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert len(text) < 3_000_000


def test_the_graph_and_the_versions_of_the_runs_are_named() -> None:
    shown = comparison()
    runs = [replace(run, versions={"torch": "2.11.7"}) for run in shown.runs]
    text = replace(shown, runs=runs).to_html()
    assert runs[0].fingerprint in text
    assert "2.11.7" in text


def test_a_result_without_runs_has_no_confusion_matrix() -> None:
    assert "Confusion matrix" in comparison().to_html()
    text = replace(comparison(), result=result("cora"), runs=[]).to_html()
    assert "Confusion matrix" not in text


def test_markup_in_names_opens_no_tag() -> None:
    tags = [tag for tag, _ in _Page(hostile_comparison()).tags]
    assert "img" not in tags
    assert "b" not in tags
    plain = [tag for tag, _ in _Page(comparison()).tags]
    assert tags.count("script") == plain.count("script")


def several(*names: str) -> Comparisons:
    return Comparisons(tuple(comparison(name) for name in names))


def test_several_graphs_have_an_overview_and_a_section_each() -> None:
    page = _Page(several("cora", "citeseer", "pubmed"))
    sections = [
        attributes["id"]
        for tag, attributes in page.tags
        if tag == "section" and "id" in attributes
    ]
    assert sections == ["graph-1", "graph-2", "graph-3"]
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links == [f"#{anchor}" for anchor in sections]
    labels = {
        attributes.get("aria-label") for tag, attributes in page.tags if tag == "svg"
    }
    assert "Average ranks with critical difference" in labels
    assert "Difference to the baseline by method and graph" in labels


def test_too_few_graphs_for_the_test_of_ranks_are_named() -> None:
    said = "{} graphs are too few for this test."
    assert said.format(3) not in several("a", "b", "c").to_html()
    assert said.format(2) in several("a", "b").to_html()


def test_intervals_are_mentioned_only_where_they_are_drawn() -> None:
    assert "a mean with its 95 % interval. Circles" in comparison().to_html()
    text = comparison(seeds=3).to_html()
    assert "each shape a mean. Circles" in text
    assert (
        '<p class="note">A 95 % interval needs 5 runs of a method or more.</p>' in text
    )


def test_panels_of_learning_curves_say_which_methods_they_hold() -> None:
    text = comparison().to_html()
    assert ">gcn</text>" in text
    assert ">gat and its variants</text>" in text


def test_a_method_that_predicts_one_class_is_warned_of() -> None:
    shown = comparison()
    rows = tuple(
        replace(row, only_class={0: 1, 3: 1}) if row.method == "gated" else row
        for row in shown.result.results
    )
    text = replace(shown, result=replace(shown.result, results=rows)).to_html()
    assert "for every test node by gated † in 2 of 8 runs" in text
    # The verdict says it too; the copies of the table have their own note.
    page = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert page.count("in 2 of 8 runs") == 2
    assert "Only one class is predicted" not in shown.to_html()


def test_a_report_without_runs_is_refused() -> None:
    with pytest.raises(UserError, match="compare methods first"):
        Comparisons(()).to_html()
