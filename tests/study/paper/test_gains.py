"""Our gains beside the paper's, pooled over variants and tested together."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tempergat.study.engine import Run
from tempergat.study.paper import PaperCell, reproduce_dataset
from tempergat.study.paper.gains import GATED, TEMPERATURE_ALONE, pooled_gain
from tempergat.study.paper.summary import answer, by_rule
from tests.support.made_up_runs import METHODS, run

SEEDS = range(40)
BACKBONES = {m: "gatv2" if m.endswith("_v2") else "gat" for m in METHODS[3:]}


def made_up(gains: dict[str, float], correlation: float = 0.6) -> list[Run]:
    """Runs around 80 with correlated seeds; gains in points by method."""
    random = np.random.default_rng(0)
    shared = random.normal(size=len(SEEDS))
    runs = []
    for method in METHODS:
        own = random.normal(size=len(SEEDS))
        noise = math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own
        scores = (80.0 + gains.get(method, 0.0) + noise) / 100
        runs += [run(method, s, float(scores[s]), "cora") for s in SEEDS]
    return runs


def paper_with(gains: dict[str, float]) -> dict[str, PaperCell]:
    return {
        method: PaperCell(
            "cora", method, "accuracy", 80.0 + gains.get(method, 0.0), 1.0, 50
        )
        for method in METHODS
    }


def scores_of(runs: list[Run], method: str) -> np.ndarray:
    return np.array(
        [100 * r.scores["best_val_accuracy"].test for r in runs if r.method == method]
    )


def test_a_gain_is_compared_with_the_papers_by_hand_computed_numbers() -> None:
    runs = made_up({"gated": 0.3})
    found = reproduce_dataset(runs, paper_with({"gated": 0.5})).gains["gated"]
    differences = scores_of(runs, "gated") - scores_of(runs, "gat")
    error = math.hypot(differences.std(ddof=1) / math.sqrt(40), math.sqrt(2 / 50))
    test = found.versus_paper
    assert test.difference == pytest.approx(differences.mean() - 0.5)
    assert test.standard_error == pytest.approx(error)
    assert test.degrees is not None
    upper = scipy_stats.t.cdf((test.difference - 1.0) / error, test.degrees)
    lower = scipy_stats.t.sf((test.difference + 1.0) / error, test.degrees)
    assert found.equivalent[1.0] == pytest.approx(max(upper, lower))
    assert found.equivalent[0.5] > found.equivalent[1.0]
    # At the first step of Holm's correction over eight variants.
    critical = scipy_stats.t.ppf(1 - 0.05 / 16, 39)
    shift = 0.5 / differences.std(ddof=1) * math.sqrt(40)
    assert found.power == pytest.approx(scipy_stats.nct.sf(critical, 39, shift))


def test_power_is_left_out_where_the_paper_has_no_gain() -> None:
    found = reproduce_dataset(made_up({}), paper_with({"gated": -0.5}))
    assert found.gains["gated"].power is None


def test_variants_are_pooled_within_seeds() -> None:
    runs = made_up(dict.fromkeys(GATED, 0.4))
    result = reproduce_dataset(runs, paper_with({})).result
    pooled = pooled_gain(result, GATED)
    assert pooled is not None
    per_seed = np.mean(
        [scores_of(runs, m) - scores_of(runs, BACKBONES[m]) for m in GATED], axis=0
    )
    assert pooled.mean == pytest.approx(per_seed.mean())
    assert pooled.std == pytest.approx(per_seed.std(ddof=1))
    assert set(GATED) | set(TEMPERATURE_ALONE) == set(BACKBONES)


def test_together_variants_may_differ_although_each_agrees() -> None:
    # Each variant is a third of a point below the paper's.
    found = reproduce_dataset(made_up({}), paper_with(dict.fromkeys(BACKBONES, 0.35)))
    agree = [c for c in found.cells if c.p_holm is not None and c.p_holm >= 0.05]
    assert len(agree) == len(METHODS)
    scores, gains = found.joint
    assert (scores.quantity, gains.quantity) == ("scores", "gains")
    assert scores.variants == 8
    assert scores.test.p is not None
    assert scores.test.p < 0.05
    assert scores.p_correlated is not None
    assert scores.p_correlated > scores.test.p


def test_the_answer_counts_the_gains_under_every_rule() -> None:
    gains = dict.fromkeys(GATED, 2.0) | dict.fromkeys(TEMPERATURE_ALONE, -2.0)
    paper = paper_with(dict.fromkeys(BACKBONES, 0.5))
    datasets = [reproduce_dataset(made_up(gains), paper)]
    text = answer(datasets)
    assert "together gain on cora (+2." in text
    assert (
        "shows none of its 2 gains under any rule, and costs accuracy on cora" in text
    )
    assert "6 at best validation accuracy, 6 at best validation loss" in text
    assert "| last epoch | 6 | 0 | 2 | 6 of 6 | 0 of 2 |" in by_rule(datasets)
