"""What several graphs show together: ranks, wins, ties, losses, and the words."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tempergat.base import UserError
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.comparisons import Comparisons
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.stats import average_ranks
from tests.support.made_up_runs import failed_run, study

SEEDS = range(8)
AGAINST = {"gated": "gat", "temp_only": "gat"}


def comparison(
    name: str,
    means: dict[str, float],
    metric: str = "accuracy",
    failed: tuple[str, ...] = (),
) -> Comparison:
    runs = study(name, means, SEEDS, 0.003)
    runs += [failed_run(method, 0, dataset=name) for method in failed]
    result = dataset_result(runs, (*means, *failed), AGAINST, metric)
    return Comparison(result, runs, None, "default", "cpu", True, file_name=name)


MEANS = {
    "cora": {"gat": 80.0, "gated": 82.0, "temp_only": 80.0},
    "tolokers": {"gat": 70.0, "gated": 75.0, "temp_only": 66.0},
    "actor": {"gat": 35.0, "gated": 30.0, "temp_only": 34.99},
}


def three() -> Comparisons:
    metrics = {"tolokers": "roc_auc"}
    return Comparisons(
        tuple(comparison(n, m, metrics.get(n, "accuracy")) for n, m in MEANS.items())
    )


def test_wins_ties_and_losses_are_those_of_the_tables() -> None:
    gated, temp_only = three().across.records
    assert (gated.method, gated.baseline) == ("gated", "gat")
    assert (gated.wins, gated.ties, gated.losses) == (
        ("cora", "tolokers"),
        (),
        ("actor",),
    )
    assert (temp_only.wins, temp_only.ties) == ((), ("cora", "actor"))
    assert temp_only.losses == ("tolokers",)
    assert three().across.record_of("gat") is None


def test_methods_are_ranked_within_a_graph_whatever_its_metric() -> None:
    found = three()
    ranks = found.across.ranks
    assert ranks is not None
    assert ranks == average_ranks(MEANS)
    assert found.best == "gated"
    assert found.across.facts["metrics"]["tolokers"] == "roc_auc"
    notes = " ".join(found.summary.notes)
    assert f"less than {ranks.critical_difference:.2f}" in notes
    assert "accuracy on cora, ROC AUC on tolokers, accuracy on actor" in notes
    assert found.scores.columns == ("method", "cora", "tolokers (ROC AUC)", "actor")
    assert found.scores.rows[1][1].endswith(" +")
    assert found.scores.rows[1][3].endswith(" -")


def test_a_claim_needs_the_critical_difference() -> None:
    assert "do not show it to be better than any other" in three().verdict
    many = Comparisons(
        tuple(
            comparison(f"g{n}", {"gat": 70.0, "gated": 75.0, "temp_only": 60.0})
            for n in range(12)
        )
    )
    assert many.across.worse_than_best == ("gat", "temp_only")
    close = Comparisons(
        tuple(
            comparison(f"g{n}", {"gat": 74.0 + n % 3, "gated": 75.0, "temp_only": 60.0})
            for n in range(12)
        )
    )
    assert close.across.worse_than_best == ("temp_only",)
    assert many.across.ranks is not None
    by_chance = replace(many.across.ranks, friedman_p=0.2)
    assert replace(many.across, ranks=by_chance).worse_than_best == ()
    assert many.verdict.startswith(
        "gated has the best average rank of 3 methods on 12 graphs (1.00), and is "
        "shown to be better than gat and temp_only"
    )


def test_a_graph_without_a_method_is_left_out_of_the_ranks_and_named() -> None:
    half = comparison("pubmed", {"gat": 70.0, "gated": 71.0}, failed=("temp_only",))
    found = Comparisons((*three().comparisons, half))
    assert found.across.ranks == three().across.ranks
    assert found.across.not_ranked == {"pubmed": ("temp_only",)}
    note = "pubmed is not in the ranks: no finished run of temp_only."
    assert note in found.summary.notes
    assert found.failed == 1
    one = Comparisons((three().comparisons[0], half))
    assert one.across.ranks is None
    assert one.best is None
    assert "not ranked" in one.verdict
    with pytest.raises(UserError, match="no average ranks to draw"):
        one.plot()


def test_each_comparison_is_found_by_name_also_where_names_repeat() -> None:
    found = three()
    assert found["tolokers"].result.metric.name == "roc_auc"
    assert [c.result.dataset for c in found] == list(MEANS)
    assert len(found) == 3
    with pytest.raises(UserError, match="no graph 'toloker'; did you mean tolokers"):
        found["toloker"]
    other = replace(comparison("cora", MEANS["actor"]), file_name="cora-1a2b3c")
    unnamed = replace(other, file_name=None)
    again = Comparisons((*found.comparisons, other, unnamed))
    assert again.names == (*MEANS, "cora-1a2b3c", "cora-2")
    assert again["cora-1a2b3c"] is other


def test_the_files_have_the_numbers_of_every_graph(tmp_path: Path) -> None:
    written = three().written_to(tmp_path)
    names = [path.name for path in written.files]
    ends = ("csv", "md", "tex", "svg", "png", "html")
    assert names == [f"summary.{end}" for end in ends]
    rows = list(csv.DictReader((tmp_path / "summary.csv").read_text().splitlines()))
    assert len(rows) == 9
    best = next(r for r in rows if (r["graph"], r["method"]) == ("tolokers", "gated"))
    assert float(best["mean"]) == pytest.approx(75.0)
    assert (best["rank"], best["verdict"], best["metric"]) == (
        "1.0",
        "better",
        "roc_auc",
    )
    facts = json.loads(written.to_json())
    assert list(facts["graphs"]) == list(MEANS)
    assert facts["summary"]["records"][0]["losses"] == ["actor"]
    assert "| gated | 1.67 | gat | 2 | 0 | 1 |" in (tmp_path / "summary.md").read_text()


def test_a_graph_called_summary_keeps_its_files(tmp_path: Path) -> None:
    named = comparison("summary", MEANS["cora"]).written_to(tmp_path)
    before = (tmp_path / "summary.csv").read_bytes()
    Comparisons((named, comparison("b", MEANS["actor"]))).written_to(tmp_path)
    assert (tmp_path / "summary.csv").read_bytes() == before
    assert (tmp_path / "summary-of-graphs.csv").exists()


def test_a_notebook_shows_the_overview_first_then_each_graph() -> None:
    hostile = comparison("<script>", MEANS["cora"])
    found = Comparisons((*three().comparisons, hostile))
    shown = found._repr_html_()
    places = [shown.index(f"<h3>{n}</h3>") for n in ("cora", "tolokers", "actor")]
    assert places == sorted(places)
    assert shown.index("Summary of 4 graphs") < places[0]
    assert "<script>" not in shown
    assert repr(found).index("cora: test") < repr(found).index("Summary of 4 graphs")
    assert repr(found).endswith(found.verdict)


def test_equal_average_ranks_share_the_best_one() -> None:
    found = Comparisons(
        (
            comparison("cora", {"gat": 80.0, "gated": 82.0}),
            comparison("actor", {"gat": 35.0, "gated": 30.0}),
        )
    )
    assert found.across.best == ("gat", "gated")
    assert found.best is None
    assert found.verdict == (
        "gat and gated share the best average rank of 2 methods on 2 graphs (1.50)"
    )


def test_graphs_that_are_too_few_for_the_test_are_said_to_be() -> None:
    means = {"gat": 70.0, "gated": 74.0, "temp_only": 69.0}
    found = Comparisons(tuple(comparison(name, means) for name in ("cora", "actor")))
    assert found.verdict == (
        "gated has the best average rank of 3 methods on 2 graphs (1.00), but 2 graphs "
        "are too few for a test of ranks"
    )
    assert found.summary.notes[0].startswith(
        "Rank 1 is the highest mean on a graph. 2 graphs are too few for this test "
        "(Nemenyi, 5 %): average ranks of 3 methods differ by 2 at most, and a "
        "significant difference is above 2.34"
    )


def test_a_graph_compared_on_twice_is_not_ranked_as_two_graphs(tmp_path: Path) -> None:
    cora, tolokers, actor = three().comparisons
    found = Comparisons((cora, replace(cora, recipe="other"), tolokers, actor))
    assert found.across.repeated == ("cora",)
    assert found.across.ranks is None
    assert found.across.records == ()
    assert (
        found.verdict == "no ranks over graphs: there are several comparisons on cora"
    )
    assert found.summary.title == "Summary of 4 comparisons"
    assert "cora is compared on more than once" in found.summary.notes[0]
    page = found.to_report(tmp_path / "report.html").read_text()
    assert "Average ranks over" not in page
    assert "(other)</li>" in page
