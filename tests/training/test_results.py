"""The record of a run: scores, curves, gates, learned values at some epochs."""

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tempergat.comparison.storage.export import read_runs
from tempergat.data import as_dataset
from tempergat.training import (
    Condition,
    LayerRecord,
    Loop,
    Run,
    RunConfig,
    State,
    noise_on_features,
    train_group,
)
from tempergat.training.loop import COLUMNS
from tempergat.training.metrics import METRICS
from tempergat.training.results import (
    BINS,
    finished_runs,
    scores_by_rule,
    thinned_curves,
)
from tempergat.training.runs.models import single_model
from tests.support.run_settings import (
    CPU,
    config,
    loop_of,
    small_graph,
    trained_loop,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "small_graph"
FULL = {"epochs": 3}
SAMPLED = FULL | {"training": "sampled", "fanout": (3, 3), "batch_size": 20}
NOISE = noise_on_features(Condition("gaussian", 2.0))


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    settings = config("temp_gated", epochs=30)
    return train_group(small_graph(), settings, [0, 1], CPU)


def test_the_score_is_that_of_the_first_best_epoch() -> None:
    history = np.zeros((4, len(COLUMNS)))
    history[:, COLUMNS.index("val")] = [0.2, 0.8, 0.8, 0.5]
    history[:, COLUMNS.index("val_loss")] = [3.0, 2.0, 1.0, 1.0]
    found = scores_by_rule(history, METRICS["accuracy"])
    assert {rule: scores.epoch for rule, scores in found.items()} == {
        "best_val_accuracy": 2,
        "last_epoch": 4,
        "best_val_loss": 3,
    }
    error = replace(METRICS["accuracy"], better="lower")
    assert scores_by_rule(history, error)["best_val_accuracy"].epoch == 1


@pytest.mark.parametrize("rule", ["best_val_accuracy", "last_epoch", "best_val_loss"])
def test_weights_kept_are_those_of_the_selected_epoch(rule: str) -> None:
    settings = config("gated", epochs=20, selection=rule, learning_rate=0.05)
    loop = loop_of(settings, [0, 1, 2])
    seen = []
    for epoch in range(1, 21):
        loop.run(until=epoch)
        seen.append({k: v.detach().clone() for k, v in loop.runs.state.items()})
    results = finished_runs(loop, small_graph(), start=0.0)
    for slot, result in enumerate(results):
        assert result.selected_epoch == result.scores[rule].epoch
        expected = seen[result.selected_epoch - 1]
        for name, value in loop.best.items():
            assert torch.equal(value[slot], expected[name][slot]), name


def test_temperatures_and_gates_are_recorded_where_there_are_some() -> None:
    settings = config("temp_gated", num_layers=3, epochs=5, init_temp=0.7)
    result = train_group(small_graph(), settings, [0], CPU)[0]
    for learned in (result.selected, result.last):
        assert len(learned.temperatures) == 3
        assert all(0.6 < value < 0.8 for value in learned.temperatures)
        assert len(learned.gate_means) == 3
        assert all(0.0 < value < 1.0 for value in learned.gate_means)
    plain = train_group(small_graph(), config(epochs=2), [0], CPU)[0]
    assert plain.selected == plain.last == LayerRecord()
    assert plain.gate_counts is None
    assert plain.layers_at_epochs is None


def test_the_parameters_of_one_model_are_counted(runs: list[Run]) -> None:
    model = single_model(config("temp_gated"), 12, 3, seed=0)
    expected = sum(parameter.numel() for parameter in model.parameters())
    assert [run.parameter_count for run in runs] == [expected, expected]


@pytest.mark.parametrize("method", ["temp_gated_head", "temp_gated_head_v2"])
def test_a_temperature_per_head_trains_and_is_recorded_as_its_mean(method: str) -> None:
    settings = config(method, epochs=5, heads=2, learning_rate=0.05)
    loop = trained_loop(settings, [0, 1])
    theta = loop.runs.state["convs.0.theta"]
    assert theta.shape == (2, 2)
    assert theta.unique().numel() == 4
    recorded = torch.tensor(
        [r.last.temperatures for r in finished_runs(loop, small_graph(), start=0.0)]
    )
    assert recorded.shape == (2, 2)
    expected = (torch.nn.functional.softplus(theta) + 1e-6).mean(1)
    assert torch.allclose(recorded[:, 0], expected, atol=1e-6)


def test_a_seed_that_diverges_fails_alone() -> None:
    settings = config("gated_v2", epochs=8, attention_dropout=0.3)

    def train(poisoned: bool) -> Loop:
        loop = loop_of(settings, [3, 4, 5])
        loop.run(until=2)
        if poisoned:
            with torch.no_grad():
                loop.runs.parameters["convs.0.lin_l.weight"][1] = torch.inf
        loop.run()
        return loop

    healthy, poisoned = train(False), train(True)
    results = finished_runs(poisoned, small_graph(), start=0.0)
    assert [result.status for result in results] == ["done", "failed", "done"]
    assert results[1].failed_epoch == 3
    assert results[1].reason == "the loss was nan at epoch 3"
    assert results[1].scores == {}
    for name, value in healthy.runs.state.items():
        assert torch.equal(value[[0, 2]], poisoned.runs.state[name][[0, 2]]), name
    assert torch.equal(healthy.history[:, [0, 2]], poisoned.history[:, [0, 2]])


def test_a_non_finite_loss_fails_every_seed_at_the_first_epoch() -> None:
    graph = small_graph()
    graph.data.x[3, 2] = torch.nan
    for result in train_group(graph, config(epochs=3), [0, 1], CPU):
        assert (result.status, result.failed_epoch) == ("failed", 1)


def test_a_last_step_that_makes_weights_non_finite_fails_the_run() -> None:
    settings = config("temp_gated", epochs=1, learning_rate=1e30)
    (result,) = train_group(small_graph(), settings, [0], CPU)
    assert (result.status, result.failed_epoch) == ("failed", 1)
    assert re.fullmatch(r"the validation loss was \w+ at epoch 1", result.reason or "")


@pytest.mark.gpu
def test_the_time_of_a_run_includes_work_that_the_device_has_not_done_yet() -> None:
    settings = config("gat", epochs=2)
    loop = trained_loop(settings, device=torch.device("cuda"))
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    matrix = torch.randn(4096, 4096, device="cuda")
    start = time.perf_counter()
    first.record()
    for _ in range(300):
        matrix = matrix @ matrix
    last.record()
    (run,) = finished_runs(loop, small_graph(), start)
    last.synchronize()
    assert run.time_s >= first.elapsed_time(last) / 1000


@pytest.mark.parametrize("settings", [FULL, SAMPLED, SAMPLED | {"eval_batch_size": 30}])
def test_training_records_the_gates_that_there_are(settings: dict[str, object]) -> None:
    graph = small_graph()
    without = config("gated", gate_last_layer=False, **settings)
    (run,) = train_group(graph, without, [0], CPU)
    assert run.status == "done"
    assert len(run.last.gate_means) == 1
    (gated,) = train_group(graph, config("gated", **settings), [0], CPU)
    assert len(gated.last.gate_means) == 2


@pytest.mark.parametrize("method", ["gcn", "gat", "gated", "temp_gated"])
def test_stored_runs_are_trained_again_to_the_same_scores(method: str) -> None:
    stored = [r for r in read_runs(FIXTURES / "runs.csv") if r.method == method]
    settings = RunConfig.model_validate(stored[0].config)
    graph = as_dataset(FIXTURES / "graph")
    seeds = [run.seed for run in stored]
    runs = train_group(graph, settings, seeds, torch.device("cpu"))
    for run, expected in zip(runs, stored, strict=True):
        assert run.scores == expected.scores
        learned = run.selected.temperatures + run.selected.gate_means
        assert learned == pytest.approx(
            expected.selected.temperatures + expected.selected.gate_means, rel=1e-5
        )


def measure(loop: Loop, state: State) -> list[dict[str, tuple[float, ...]]]:
    weights = [
        float(of_run.detach().abs().sum()) for of_run in state["convs.0.lin.weight"]
    ]
    return [{"entropy": (value,)} for value in weights]


def measured(at_epochs: tuple[int, ...], epochs: int = 12, **changes: Any) -> list[Run]:
    """Runs with values of a measure at some epochs."""
    noise = replace(NOISE, measure=measure, epochs=at_epochs)
    settings = config("temp_gated", norm="batch", epochs=epochs, **changes)
    return train_group(small_graph(), settings, [3, 4], CPU, preparation=noise)


def test_values_at_a_fixed_epoch_are_those_of_a_training_that_ends_there() -> None:
    for run, short in zip(measured((4, 8, 50)), measured((), epochs=8), strict=True):
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
    both = measured((4,))
    for run, selected in zip(both, measured((), selection=rule), strict=True):
        assert run.layers_at_epochs is not None
        assert run.layers_at_epochs[run.scores[rule].epoch] == selected.selected


def test_recording_changes_no_score_and_no_identity() -> None:
    for run, plain in zip(measured((4, 8)), measured(()), strict=True):
        assert run.scores == plain.scores
        assert run.selected == plain.selected
        assert run.config_hash == plain.config_hash
        assert plain.layers_at_epochs is None


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
            average = np.average(middles, weights=counts)
            assert average == pytest.approx(mean, abs=0.5 / BINS)


def test_long_curves_keep_their_first_and_last_epoch() -> None:
    history = np.arange(1000.0)[:, None] * np.ones(5)
    curves = thinned_curves(history)
    assert (curves["epoch"][0], curves["epoch"][-1]) == (1, 1000)
    assert len(curves["epoch"]) == len(curves["loss"]) == 50
    assert curves["val"][-1] == 999
