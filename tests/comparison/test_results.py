"""Runs become one result per method, nothing dropped and nothing mixed.

What a constant answer scores stands in every table, outside of any ranking.
"""

import json
from dataclasses import replace

import pytest
import scipy.stats

from tempergat.base.errors import UserError
from tempergat.comparison.html_report.tables import as_html
from tempergat.comparison.report.formats import as_latex, as_markdown, as_text
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.comparisons import Comparisons
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.training import LayerRecord, Run
from tests.support.made_up_runs import METHODS, failed_run, run, study

# By true class; the first split has more nodes of class 0, both together of class 1.
FIRST, SECOND = ((6, 0), (3, 1)), ((0, 1), (2, 7))


def test_scores_are_in_percent_and_methods_in_the_order_asked() -> None:
    runs = study("cora", {"gated": 81.0, "gat": 80.0}, range(5))
    result = dataset_result(runs, METHODS, "gat")
    assert result.methods == ("gat", "gated")
    assert result["gat"].summary.mean == pytest.approx(80.0)
    assert result["gated"].comparison is not None
    assert result["gated"].comparison.difference == pytest.approx(1.0)
    assert result["gat"].comparison is None
    assert result.pairing == "seeds"


def test_the_selection_rule_chooses_the_scores() -> None:
    runs = [run(seed=seed, test=0.8) for seed in range(3)]
    last = dataset_result(runs, ["gat"], "gat", selection="last_epoch")
    assert last["gat"].summary.mean == pytest.approx(79.0)


def test_failed_runs_are_counted_and_reported() -> None:
    runs = [run(seed=0), failed_run(seed=1), run(seed=2)]
    result = dataset_result(runs, ["gat"], "gat")["gat"]
    assert (result.summary.runs, result.summary.failed) == (2, 1)
    assert result.failures == ("seed 1: loss is not a number at epoch 17",)
    assert list(result.scores) == [0, 2]


def test_a_method_whose_runs_all_failed_stays_in_the_table() -> None:
    runs = [*study("cora", {"gat": 80.0}, range(3)), failed_run("gated", 0)]
    result = dataset_result(runs, METHODS, "gat")
    assert result["gated"].summary.mean is None
    assert result["gated"].comparison is not None
    assert result["gated"].comparison.verdict == "too few runs"


def test_learned_values_are_averaged_layer_by_layer() -> None:
    runs = [
        run(seed=0, selected=LayerRecord((1.0, 2.0), (0.5,))),
        run(seed=1, selected=LayerRecord((2.0, 4.0), (0.7,))),
    ]
    selected = dataset_result(runs, ["gat"], "gat")["gat"].selected
    assert selected.temperatures == (1.5, 3.0)
    assert selected.gate_means == pytest.approx((0.6,))


def test_several_splits_are_paired_by_split_not_by_seed() -> None:
    runs = []
    for split, level in enumerate((0.5, 0.6, 0.7)):
        for repeat in range(4):
            seed = 4 * split + repeat
            # Within a split the two methods' seeds vary against each other.
            runs.append(run("gat", seed, level + 0.01 * repeat, split=split))
            runs.append(run("gated", seed, level + 0.05 - 0.01 * repeat, split=split))
    result = dataset_result(runs, METHODS, "gat")
    assert result.pairing == "splits"
    comparison = result["gated"].comparison
    assert comparison is not None
    assert comparison.pairs == 3
    assert comparison.difference == pytest.approx(2.0)
    assert result["gat"].summary.runs == 12


def test_runs_over_several_splits_are_of_one_dataset() -> None:
    runs = [
        run(method, seed, 0.5, split=seed % 2, fingerprint=f"split-{seed % 2}")
        for method in ("gat", "gated")
        for seed in range(4)
    ]
    result = dataset_result(runs, METHODS, "gat")
    assert (result.splits, result.pairing) == (2, "splits")
    strange = replace(runs[0], fingerprint="of another graph")
    with pytest.raises(UserError, match="from 3 datasets"):
        dataset_result([strange, *runs[1:]], METHODS, "gat")


def test_runs_that_share_a_split_do_not_narrow_the_interval() -> None:
    levels = (0.5, 0.6, 0.8)
    once = [run(seed=s, test=levels[s], split=s) for s in range(3)]
    often = [run(seed=s, test=levels[s % 3], split=s % 3) for s in range(12)]
    few, many = (
        dataset_result(runs, METHODS, "gat")["gat"].summary for runs in (once, often)
    )
    assert many.runs == 12
    assert many.mean == pytest.approx(few.mean)
    assert (many.low, many.high) == pytest.approx((few.low, few.high))
    interval = scipy.stats.ttest_1samp([50.0, 60.0, 80.0], 0.0).confidence_interval()
    assert (few.low, few.high) == pytest.approx((interval.low, interval.high))


def test_a_split_with_a_failed_run_is_a_lost_pair() -> None:
    runs = [run(seed=s, split=s // 2, test=0.5 + s / 100) for s in range(6)]
    runs += [run("gated", s, 0.6 + s / 90, split=s // 2) for s in range(5)]
    runs += [failed_run("gated", 5, split=2)]
    comparison = dataset_result(runs, METHODS, "gat")["gated"].comparison
    assert comparison is not None
    assert (comparison.pairs, comparison.lost_pairs) == (2, 1)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (
            [run(seed=0), run(seed=1, config={"learning_rate": 0.5})],
            "gat on cora has runs of 2 configurations",
        ),
        ([run(), run(dataset="citeseer")], r"from 2 datasets: citeseer.*, cora"),
        ([run(), run()], "two runs of one seed"),
        (
            [run(seed=0), run(seed=1), run(seed=0, device="cuda (A)")],
            r"gat on cora .* cpu and cuda \(A\); keep",
        ),
    ],
    ids=["configurations", "datasets", "a seed twice", "devices"],
)
def test_runs_that_do_not_belong_together_are_not_mixed(
    runs: list[Run], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        dataset_result(runs, METHODS, "gat")


def compared(name: str = "g", metric: str = "accuracy") -> Comparison:
    """Three seeds of two methods, both worse than the constant answer."""
    runs = [
        run(method, s, score, name, split=s % 2, confusion=(FIRST, SECOND)[s % 2])
        for method, score in (("gat", 0.3), ("gated", 0.2))
        for s in range(3)
    ]
    result = dataset_result(runs, ["gat", "gated"], "gat", metric)
    return Comparison(result, runs, None, "default", "cpu", True, file_name=name)


def test_the_largest_class_is_one_for_all_splits_and_every_seed_counts_once() -> None:
    largest = compared().result.largest_class
    assert largest is not None
    assert largest.label == 1
    assert largest.scores == pytest.approx({0: 40.0, 1: 90.0})
    # Two of the three seeds are on the first split.
    assert largest.mean == pytest.approx((40.0 + 90.0 + 40.0) / 3)


def test_on_one_split_the_largest_class_has_a_score_for_failed_seeds_too() -> None:
    runs = [run("gat", 0, confusion=FIRST), failed_run("gat", 1)]
    largest = dataset_result(runs, ["gat"], {}).largest_class
    assert largest is not None
    assert largest.scores == pytest.approx({0: 60.0, 1: 60.0})


def test_the_largest_class_is_measured_by_the_metric_of_the_table() -> None:
    largest = compared(metric="roc_auc").result.largest_class
    assert largest is not None
    assert largest.mean == 50.0


def test_every_table_has_the_largest_class_last_and_a_note_on_it() -> None:
    shown = compared()
    table = shown.text_table
    texts = [render(table) for render in (as_text, as_markdown, as_latex, as_html)]
    for text in (*texts, shown.to_csv(), shown._repr_html_()):
        row = next(line for line in text.splitlines() if "largest class" in line)
        assert "56.6" in row
        assert text.index("gated") < text.index("largest class")
    last = shown.table[-1]
    assert last["method"] == "largest class"
    assert last["verdict"] is last["t_p_holm"] is None
    facts = json.loads(shown.to_json())["largest_class"]
    assert (facts["class"], facts["scores"]["1"]) == (1, 90.0)
    (note,) = [n for n in table.notes if n.startswith("largest class: ")]
    assert "never ranked or tested" in note


def test_the_largest_class_is_never_ranked_tested_or_called_best() -> None:
    shown = compared()
    assert shown.result.methods == ("gat", "gated")
    assert shown.best == "gat"
    both = Comparisons((shown, compared("h")))
    assert both.across.ranks is not None
    assert list(both.across.ranks.average) == ["gat", "gated"]
    assert "largest class" not in as_text(both.summary)
    assert both.scores.footer == (("largest class", "56.67", "56.67"),)
    assert [row["rank"] for row in both.table[:3]] == [1.0, 2.0, None]


def test_runs_without_a_confusion_matrix_have_no_largest_class() -> None:
    old = dataset_result([run("gat", seed) for seed in range(3)], ["gat"], {})
    assert old.largest_class is None
