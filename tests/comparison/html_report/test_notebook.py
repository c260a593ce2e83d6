"""A comparison in a notebook: the answer first, then the table with every run."""

import re
from xml.etree import ElementTree

from tempergat.comparison.html_report.tables import notebook_html
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.results.from_runs import dataset_result
from tests.support.made_up_runs import failed_run, study

MEANS = {"gat": 80.0, "gated": 82.0, "temp_only": 79.0}
AGAINST = {"gated": "gat", "temp_only": "gat"}


def shown(runs, methods):
    result = dataset_result(runs, methods, AGAINST, "accuracy", all_pairs=True)
    return notebook_html(result, result_table(result)), result


def rows_of(page):
    root = ElementTree.fromstring(f"<div>{page}</div>")
    return root, root.findall(".//tbody/tr")


def test_the_answer_comes_first_and_the_best_method_is_bold():
    page, _ = shown(study("cora", MEANS, range(6), 0.003), tuple(MEANS))
    assert page.startswith("<p><strong>gated is the best of three on cora&#x27;s test")
    assert "<p>gated beats gat by 2.0 points (p &lt; 0.001)" in page
    _, rows = rows_of(page)
    bold = [row for row in rows if "bold" in row.get("style", "")]
    assert [row.find("td").text for row in bold] == ["gated"]


def test_every_run_is_a_dot_on_one_scale():
    page, result = shown(study("cora", MEANS, range(6), 0.003), tuple(MEANS))
    _, rows = rows_of(page)
    places = {}
    for row in rows:
        dots = row.findall(".//circle")
        scores = list(result[row.find("td").text].scores.values())
        assert [dot.find("title").text for dot in dots] == [f"{s:.2f}" for s in scores]
        places |= {
            score: float(d.get("cx")) for score, d in zip(scores, dots, strict=True)
        }
    in_order = [places[score] for score in sorted(places)]
    assert in_order == sorted(in_order)
    every = [s for row in result.results for s in row.scores.values()]
    heading = re.search(r"every run, ([\d.]+) to ([\d.]+)<", page)
    assert heading.groups() == (f"{min(every):.2f}", f"{max(every):.2f}")


def test_a_method_without_finished_runs_has_no_dots():
    runs = [*study("cora", {"gat": 80.0}, range(3), 0.0), failed_run("gated", 0)]
    _, rows = rows_of(shown(runs, ("gat", "gated"))[0])
    assert [len(row.findall(".//circle")) for row in rows] == [3, 0]


def test_names_are_shown_as_text():
    runs = study("<script>", MEANS, range(3), 0.003)
    page, _ = shown(runs, tuple(MEANS))
    assert "<script>" not in page
