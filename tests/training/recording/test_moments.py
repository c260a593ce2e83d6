"""Learned values at fixed and at selected epochs."""

from dataclasses import replace

import pytest
import torch

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

CPU = torch.device("cpu")
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
