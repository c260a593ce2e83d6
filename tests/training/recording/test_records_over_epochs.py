"""A run keeps its curves, its learned values over epochs and its gates."""

import numpy as np
import pytest
import torch

from tempergat.training import Run, train_group
from tempergat.training.groups import thinned_curves
from tempergat.training.learned_values import BINS
from tests.support.run_settings import config, small_graph


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    settings = config("temp_gated", epochs=30)
    return train_group(small_graph(), settings, [0, 1], torch.device("cpu"))


def test_curves_end_with_the_scores_of_the_last_epoch(runs: list[Run]) -> None:
    for run in runs:
        assert run.curves is not None
        assert run.curves["epoch"][-1] == 30
        last = run.scores["last_epoch"]
        assert run.curves["test"][-1] == pytest.approx(last.test, rel=1e-4)
        assert run.curves["val"][-1] == pytest.approx(last.val, rel=1e-4)


def test_learned_values_at_the_last_epoch_are_those_of_the_run(
    runs: list[Run],
) -> None:
    for run in runs:
        assert run.layers_at_epochs is not None
        assert set(run.layers_at_epochs) == {10, 25, 30}
        assert run.layers_at_epochs[30] == run.last


def test_the_counts_of_gates_have_the_mean_of_the_gates(runs: list[Run]) -> None:
    middles = (np.arange(BINS) + 0.5) / BINS
    for run in runs:
        assert run.gate_counts is not None
        for counts, mean in zip(run.gate_counts, run.selected.gate_means, strict=True):
            found = np.average(middles, weights=counts)
            assert found == pytest.approx(mean, abs=0.5 / BINS)


def test_a_method_without_gates_has_no_counts() -> None:
    settings = config("gat", epochs=2)
    (run,) = train_group(small_graph(), settings, [0], torch.device("cpu"))
    assert run.gate_counts is None
    assert run.layers_at_epochs is None


def test_long_curves_keep_their_first_and_last_epoch() -> None:
    history = np.arange(1000.0)[:, None] * np.ones(5)
    curves = thinned_curves(history)
    assert (curves["epoch"][0], curves["epoch"][-1]) == (1, 1000)
    assert len(curves["epoch"]) == len(curves["loss"]) == 50
    assert curves["val"][-1] == 999
