"""Runs become one result per method, nothing dropped and nothing mixed."""

from dataclasses import replace

import pytest
import scipy.stats

from tempergat.base.errors import UserError
from tempergat.comparison.results import dataset_result
from tempergat.training import LayerRecord
from tests.support.made_up_runs import METHODS, failed_run, run, study


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


def test_runs_of_two_configurations_are_not_mixed() -> None:
    runs = [run(seed=0), run(seed=1, config={"learning_rate": 0.5})]
    with pytest.raises(UserError, match="gat on cora has runs of 2 configurations"):
        dataset_result(runs, METHODS, "gat")


def test_runs_on_two_datasets_are_not_mixed() -> None:
    with pytest.raises(UserError, match=r"from 2 datasets: citeseer.*, cora"):
        dataset_result([run(), run(dataset="citeseer")], METHODS, "gat")


def test_a_seed_counted_twice_is_refused() -> None:
    with pytest.raises(UserError, match="two runs of one seed"):
        dataset_result([run(), run()], METHODS, "gat")


def test_a_seed_run_on_two_devices_is_refused_with_their_names() -> None:
    runs = [run(seed=0), run(seed=1), run(seed=0, device="cuda (A)")]
    with pytest.raises(UserError, match=r"gat on cora .* cpu and cuda \(A\); keep"):
        dataset_result(runs, METHODS, "gat")
