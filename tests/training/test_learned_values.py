"""A run keeps its curves, its gates, and its learned values at some epochs."""

from dataclasses import replace

import numpy as np
import pytest

from tempergat.data import Dataset, csbm
from tempergat.training import (
    Condition,
    Loop,
    Run,
    RunConfig,
    State,
    load_recipe,
    noise_on_features,
    train_group,
)
from tempergat.training.learned_values import BINS
from tempergat.training.results import thinned_curves
from tests.support import run_settings
from tests.support.run_settings import CPU, small_graph

NOISE = noise_on_features(Condition("gaussian", 2.0))


def graph() -> Dataset:
    return csbm(n=60, a=6, b=2, d=8, seed=1)


def config(epochs: int, selection: str = "best_val_accuracy") -> RunConfig:
    return (
        load_recipe("default")
        .config_for("temp_gated")
        .with_changes(epochs=epochs, heads=2, hidden_channels=6, selection=selection)
    )


def measure(loop: Loop, state: State) -> list[dict[str, tuple[float, ...]]]:
    weights = [
        float(of_run.detach().abs().sum()) for of_run in state["convs.0.lin.weight"]
    ]
    return [{"entropy": (value,)} for value in weights]


def trained(settings: RunConfig, epochs: tuple[int, ...]) -> list[Run]:
    noise = replace(NOISE, measure=measure, epochs=epochs)
    return train_group(graph(), settings, [3, 4], CPU, preparation=noise)


def test_values_at_a_fixed_epoch_are_those_of_a_training_that_ends_there() -> None:
    for run, short in zip(
        trained(config(12), (4, 8, 50)), trained(config(8), ()), strict=True
    ):
        assert run.layers_at_epochs is not None
        record = run.layers_at_epochs[8]
        assert record.temperatures == short.last.temperatures
        assert record.gate_means == short.last.gate_means
        assert record.entropy != run.layers_at_epochs[4].entropy != ()
        assert 50 not in run.layers_at_epochs


@pytest.mark.parametrize("rule", ["best_val_accuracy", "best_val_loss", "last_epoch"])
def test_values_at_the_epoch_of_each_rule_are_those_of_a_run_selected_by_it(
    rule: str,
) -> None:
    both = trained(config(12), (4,))
    for run, selected in zip(both, trained(config(12, rule), ()), strict=True):
        assert run.layers_at_epochs is not None
        assert run.layers_at_epochs[run.scores[rule].epoch] == selected.selected


def test_recording_changes_no_score_and_no_identity() -> None:
    for run, plain in zip(
        trained(config(12), (4, 8)), trained(config(12), ()), strict=True
    ):
        assert run.scores == plain.scores
        assert run.selected == plain.selected
        assert run.config_hash == plain.config_hash
        assert plain.layers_at_epochs is None


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    settings = run_settings.config("temp_gated", epochs=30)
    return train_group(small_graph(), settings, [0, 1], CPU)


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
    settings = run_settings.config("gat", epochs=2)
    (run,) = train_group(small_graph(), settings, [0], CPU)
    assert run.gate_counts is None
    assert run.layers_at_epochs is None


def test_long_curves_keep_their_first_and_last_epoch() -> None:
    history = np.arange(1000.0)[:, None] * np.ones(5)
    curves = thinned_curves(history)
    assert (curves["epoch"][0], curves["epoch"][-1]) == (1, 1000)
    assert len(curves["epoch"]) == len(curves["loss"]) == 50
    assert curves["val"][-1] == 999
