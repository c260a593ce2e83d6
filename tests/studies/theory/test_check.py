"""The table of proof steps distinguishes right from wrong statements."""

import numpy as np
import pytest

from studies.theory.bootstrap import resampled_means
from studies.theory.model import standard_setting
from studies.theory.proofs.check import (
    FAILS,
    HOLDS,
    UNSEEN,
    Statement,
    judged,
)
from studies.theory.proofs.gate import gate_steps
from studies.theory.proofs.temperature import temperature_steps

STATEMENT = Statement(1, "1.0", "a statement")


def noisy(mean, spread=1.0, seed=0):
    sums = mean + spread * np.random.default_rng(seed).standard_normal(400)
    return resampled_means(sums, 1, seed)


def test_a_wrong_equality_fails_among_right_ones():
    steps = [STATEMENT.equal(str(n), noisy(2.0, seed=n), 2.0) for n in range(20)]
    steps.append(STATEMENT.equal("wrong", noisy(2.0, seed=30), 2.5))
    verdicts = [step["verdict"] for step in judged(steps)]
    assert verdicts == [HOLDS] * 20 + [FAILS]


def test_bounds_fail_only_when_crossed():
    seen = noisy(2.0)
    assert STATEMENT.at_most("", seen, 2.0)["verdict"] == HOLDS
    assert STATEMENT.at_most("", seen, 1.5)["verdict"] == FAILS
    assert STATEMENT.at_least("", seen, 2.0)["verdict"] == HOLDS
    assert STATEMENT.at_least("", seen, 2.5)["verdict"] == FAILS


def test_an_order_that_the_sample_cannot_decide_is_within_noise():
    assert STATEMENT.above("", noisy(1.0))["verdict"] == HOLDS
    assert STATEMENT.above("", noisy(-1.0))["verdict"] == FAILS
    assert STATEMENT.above("", noisy(0.0))["verdict"] == UNSEEN


@pytest.mark.parametrize(
    ("path", "last"),
    [((4.0, 2.0, 1.0), HOLDS), ((4.0, 1.0, 2.0), FAILS), ((4.0, 1.0, 1.0001), UNSEEN)],
)
def test_a_limit_must_come_nearer_at_every_step(path, last):
    sums = np.random.default_rng(1).normal(path, 0.1, (400, 3))
    sums += np.asarray(path) - sums.mean(axis=0)
    seen = resampled_means(sums, 1, seed=0)
    steps = STATEMENT.approach(["x", "y", "z"], seen, 0.0)
    assert [step["verdict"] for step in steps] == [HOLDS, HOLDS, last]


def test_no_step_of_either_proof_fails():
    setting = standard_setting(coordinates=4, neighbours=6)
    steps = temperature_steps(setting, targets=20_000, seed=3)
    steps += gate_steps(setting, targets=20_000, seed=3)
    table = judged(steps)
    assert [row for row in table if row["verdict"] == FAILS] == []
    equalities = [row for row in table if row["kind"] == "equality"]
    assert len(equalities) > 150
    assert sum(row["verdict"] == UNSEEN for row in table) < 15
