"""The results of a group of runs, and the errors raised before any work."""

import dataclasses
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tempergat.base import UserError
from tempergat.data import Dataset, csbm
from tempergat.nn import NodeClassifier, build_model
from tempergat.ops import Graph
from tempergat.training import (
    Condition,
    LayerRecord,
    OutOfMemory,
    Preparation,
    config_hash,
    explain_out_of_memory,
    group_size,
    train_group,
)
from tempergat.training.devices.memory import bytes_per_seed
from tempergat.training.evaluate import accuracy, micro_f1
from tempergat.training.loop import COLUMNS, Loop
from tempergat.training.optimizer import is_decayed, make_optimizer
from tempergat.training.results import chosen_epochs, finished_runs
from tempergat.training.runs.models import single_model
from tests.support.run_settings import (
    CPU,
    config,
    loop_of,
    small_graph,
    train_run,
    trained_loop,
)


def changed(dataset: Dataset, **attributes: torch.Tensor) -> Dataset:
    data = dataset.data.clone()
    for name, value in attributes.items():
        data[name] = value
    return dataclasses.replace(dataset, data=data)


def test_the_score_is_that_of_the_first_best_epoch() -> None:
    history = np.zeros((4, len(COLUMNS)))
    history[:, COLUMNS.index("val")] = [0.2, 0.8, 0.8, 0.5]
    history[:, COLUMNS.index("val_loss")] = [3.0, 2.0, 1.0, 1.0]
    assert chosen_epochs(history) == {
        "best_val_accuracy": 2,
        "last_epoch": 4,
        "best_val_loss": 3,
    }


@pytest.mark.parametrize("rule", ["best_val_accuracy", "last_epoch", "best_val_loss"])
def test_weights_kept_are_those_of_the_selected_epoch(rule: str) -> None:
    settings = config("gated", epochs=20, selection=rule, learning_rate=0.05)
    loop = loop_of(settings, [0, 1, 2])
    seen = []
    for epoch in range(1, 21):
        loop.run(until=epoch)
        seen.append({k: v.detach().clone() for k, v in loop.current.items()})
    results = finished_runs(loop, small_graph(), start=0.0)
    for slot, result in enumerate(results):
        assert result.selected_epoch == result.scores[rule].epoch
        expected = seen[result.selected_epoch - 1]
        for name, value in loop.best.items():
            assert torch.equal(value[slot], expected[name][slot]), name


def test_temperatures_and_gates_are_recorded_per_layer() -> None:
    settings = config("temp_gated", num_layers=3, epochs=5, init_temp=0.7)
    result = train_group(small_graph(), settings, [0], CPU)[0]
    for learned in (result.selected, result.last):
        assert len(learned.temperatures) == 3
        assert all(0.6 < value < 0.8 for value in learned.temperatures)
        assert len(learned.gate_means) == 3
        assert all(0.0 < value < 1.0 for value in learned.gate_means)
    plain = train_group(small_graph(), config(epochs=2), [0], CPU)[0]
    assert plain.selected == plain.last == LayerRecord()


def test_the_parameters_of_one_model_are_counted() -> None:
    settings = config("temp_gated", epochs=1)
    model = single_model(settings, 12, 3, seed=0)
    expected = sum(parameter.numel() for parameter in model.parameters())
    for run in train_group(small_graph(), settings, [0, 1], CPU):
        assert run.parameter_count == expected


@pytest.mark.parametrize("method", ["temp_gated_head", "temp_gated_head_v2"])
def test_a_temperature_per_head_trains_and_is_recorded_as_its_mean(method: str) -> None:
    settings = config(method, epochs=5, heads=2, learning_rate=0.05)
    loop = trained_loop(settings, [0, 1])
    theta = loop.current["convs.0.theta"]
    assert theta.shape == (2, 2)
    assert theta.unique().numel() == 4
    recorded = torch.tensor(
        [r.last.temperatures for r in finished_runs(loop, small_graph(), start=0.0)]
    )
    assert recorded.shape == (2, 2)
    expected = (torch.nn.functional.softplus(theta) + 1e-6).mean(1)
    assert torch.allclose(recorded[:, 0], expected, atol=1e-6)


def test_a_group_trains_the_model_that_was_changed_for_it() -> None:
    def remove_slope(model: NodeClassifier, edges: Graph) -> None:
        for conv in model.convs:
            conv.negative_slope = 1.0

    def clear_weights(model: NodeClassifier, edges: Graph) -> None:
        for parameter in model.parameters():
            torch.nn.init.zeros_(parameter)

    graph, settings = small_graph(), config("gat", epochs=5)
    plain, changed, cleared = (
        train_group(graph, settings, [0, 1], CPU, preparation=preparation)
        for preparation in (
            None,
            Preparation(model=remove_slope),
            Preparation(Condition(change="cleared"), model=clear_weights),
        )
    )
    for run, other, drawn_after in zip(plain, changed, cleared, strict=True):
        assert run.curves["loss"][0] != other.curves["loss"][0]
        assert run.curves == drawn_after.curves
        assert drawn_after.condition == Condition(change="cleared")
        assert other.condition.change.startswith("remove_slope ")
        assert len({r.config_hash for r in (run, other, drawn_after)}) == 3


def test_an_mlp_trains_and_does_not_depend_on_the_edges() -> None:
    graph, settings = small_graph(), config("mlp", epochs=5)
    no_edges = changed(graph, edge_index=graph.data.edge_index[:, :0])
    runs, others = (
        train_group(data, settings, [0, 1], CPU) for data in (graph, no_edges)
    )
    assert [run.status for run in runs] == ["done", "done"]
    assert [run.scores for run in runs] == [run.scores for run in others]


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
    for name, value in healthy.current.items():
        assert torch.equal(value[[0, 2]], poisoned.current[name][[0, 2]]), name
    assert torch.equal(healthy.history[:, [0, 2]], poisoned.history[:, [0, 2]])


def test_a_non_finite_loss_fails_every_seed_at_the_first_epoch() -> None:
    graph = small_graph()
    x = graph.data.x.clone()
    x[3, 2] = torch.nan
    for result in train_group(changed(graph, x=x), config(epochs=3), [0, 1], CPU):
        assert (result.status, result.failed_epoch) == ("failed", 1)


def test_a_last_step_that_makes_weights_non_finite_fails_the_run() -> None:
    settings = config("temp_gated", epochs=1, learning_rate=1e30)
    (result,) = train_group(small_graph(), settings, [0], CPU)
    assert (result.status, result.failed_epoch) == ("failed", 1)
    assert re.fullmatch(r"the validation loss was \w+ at epoch 1", result.reason or "")


def test_initial_weights_are_those_of_the_single_model() -> None:
    settings = config("temp_gated_v2", norm="batch", jk="cat", residual=True)
    initial = loop_of(settings, [9, 2]).current
    for slot, seed in enumerate((9, 2)):
        torch.manual_seed(seed)
        model = build_model(
            settings.method,
            12,
            settings.hidden_channels,
            3,
            settings.num_layers,
            settings.heads,
            norm="batch",
            jk="cat",
            residual=True,
            gate_bias_init=settings.gate_bias_init,
        )
        expected = model.state_dict()
        assert set(expected) == set(initial)
        for name, value in initial.items():
            assert torch.equal(value[slot], expected[name]), name


def test_the_settings_choose_which_parameters_are_decayed() -> None:
    model = single_model(config("temp_gated_v2"), 12, 3, seed=0)
    names = [name for name, _ in model.named_parameters()]
    spared = {
        "decay_temperature": {"convs.0.theta", "convs.1.theta"},
        "decay_gate": {name for name in names if "lin_gate" in name},
        "decay_bias": {
            name for name in names if name.endswith("bias") and "gate" not in name
        },
    }
    assert len(spared["decay_gate"]) == 4
    assert len(spared["decay_bias"]) == 6
    for setting, expected in spared.items():
        settings = config("temp_gated_v2", **{setting: False})
        assert {n for n in names if not is_decayed(n, settings)} == expected
        adam = make_optimizer(dict(model.named_parameters()), settings)
        decays = {g["weight_decay"]: len(g["params"]) for g in adam.param_groups}
        assert decays == {5e-4: len(names) - len(expected), 0.0: len(expected)}


def test_micro_f1_of_one_class_per_node_is_accuracy() -> None:
    predicted = torch.tensor([0, 1, 2, 2, 1])
    labels = torch.tensor([0, 1, 1, 2, 0])
    assert accuracy(predicted, labels).item() == 0.6
    assert micro_f1(predicted, labels).item() == pytest.approx(0.6)


def test_torchs_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    train_group(small_graph(), config(epochs=2, feature_dropout=0.5), [0, 1], CPU)
    assert torch.equal(before, torch.get_rng_state())


def test_every_epoch_is_reported() -> None:
    epochs: list[int] = []
    train_group(small_graph(), config(epochs=3), [0], CPU, epochs.append)
    assert epochs == [1, 2, 3]


def no_validation() -> Dataset:
    graph = small_graph()
    return changed(graph, val_mask=torch.zeros_like(graph.data.val_mask))


def one_class() -> Dataset:
    graph = small_graph()
    return changed(graph, y=torch.full_like(graph.data.y, 2))


@pytest.mark.parametrize(
    ("dataset", "changes", "message"),
    [
        (no_validation, {}, "no labelled validation nodes; make a split"),
        (one_class, {}, "all 36 training nodes of csbm are of class 2"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(
    dataset: Any, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as found:
        train_group(dataset(), config(**changes), [0], CPU)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UserError, match="seed is"):
        train_group(small_graph(), config(), [0, seed], CPU)


def fail_twice() -> None:
    try:
        torch.empty(2**50)
    except RuntimeError:
        raise RuntimeError("a second error because of the first")  # noqa: B904


def test_running_out_of_memory_says_what_to_lower() -> None:
    with (
        pytest.raises(
            OutOfMemory,
            match=r"12 runs of .* --training sampled .* fewer hidden_channels",
        ),
        explain_out_of_memory(config(), 12, CPU),
    ):
        fail_twice()
    with (
        pytest.raises(OutOfMemory, match="one run of gat"),
        explain_out_of_memory(config(), 1, CPU),
    ):
        raise RuntimeError("std::bad_alloc")
    with (
        pytest.raises(OutOfMemory, match="one run of gat"),
        explain_out_of_memory(config(), 1, CPU),
    ):
        torch.empty(2**46, 2**46)
    with (
        pytest.raises(RuntimeError, match="something else"),
        explain_out_of_memory(config(), 12, CPU),
    ):
        raise RuntimeError("something else")


def test_group_size_depends_on_graph_and_settings_alone() -> None:
    small, large = small_graph(), small_graph(600)
    assert group_size(small, config(), CPU) >= 50
    assert bytes_per_seed(large, config()) > bytes_per_seed(small, config())
    wide = config(hidden_channels=4096, num_layers=4)
    assert bytes_per_seed(small, wide) > bytes_per_seed(small, config())
    huge = config(hidden_channels=2**20)
    assert group_size(large, huge, CPU) == 1


def test_trackers_take_every_epoch(tmp_path: Path) -> None:

    class Listing:
        def __init__(self) -> None:
            self.rows: list[tuple[int, set[str]]] = []
            self.finished = False

        def log(self, epoch: int, values: Any) -> None:
            assert 0.0 <= values["val"] <= 1.0
            self.rows.append((epoch, set(values)))

        def finish(self) -> None:
            self.finished = True

    tracker = Listing()
    train_run(config(epochs=3), tmp_path, tracker=tracker)
    assert tracker.rows == [(epoch, set(COLUMNS)) for epoch in (1, 2, 3)]
    assert tracker.finished


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


def with_labels(labelled: int) -> Dataset:
    """Twenty nodes, the first of them labelled, none of them for validation."""
    graph = csbm(n=20, a=5.0, b=2.0, d=4)
    data = graph.data.clone()
    data.y[labelled:] = -1
    data.val_mask = torch.zeros(20, dtype=torch.bool)
    data.train_mask = torch.ones(20, dtype=torch.bool)
    return dataclasses.replace(graph, data=data)


def test_split_that_would_do_is_proposed_by_its_option() -> None:
    expected = (
        "csbm has no labelled validation nodes; make a split of its 20 labelled "
        "nodes with --split 60/20/20 (split= in Python)"
    )
    with pytest.raises(UserError) as caught:
        train_group(with_labels(20), config(), [0], CPU)
    assert str(caught.value) == expected


def test_split_that_would_leave_a_part_empty_is_not_proposed() -> None:
    expected = "its 3 labelled nodes are too few for --split 60/20/20, so label more"
    with pytest.raises(UserError, match=expected):
        train_group(with_labels(3), config(), [0], CPU)


FULL = {"epochs": 3}
SAMPLED = FULL | {"training": "sampled", "fanout": (3, 3), "batch_size": 20}


def test_only_the_last_layer_loses_its_gate() -> None:
    model = build_model("temp_gated", 5, 8, 3, heads=2, gate_last_layer=False)
    assert [conv.gate for conv in model.convs] == ["post", None]
    assert all(conv.temperature is not None for conv in model.convs)


@pytest.mark.parametrize("settings", [FULL, SAMPLED, SAMPLED | {"eval_batch_size": 30}])
def test_training_records_the_gates_that_there_are(settings: dict[str, object]) -> None:
    graph = small_graph()
    without = config("gated", gate_last_layer=False, **settings)
    (run,) = train_group(graph, without, [0], CPU)
    assert run.status == "done"
    assert len(run.last.gate_means) == 1
    (whole,) = train_group(graph, config("gated", **settings), [0], CPU)
    assert len(whole.last.gate_means) == 2


def test_settings_with_the_gate_keep_their_hash() -> None:
    settings = config("gated").model_dump(mode="json")
    assert "gate_last_layer" not in settings
    changed = config("gated", gate_last_layer=False).model_dump(mode="json")
    assert config_hash(settings) != config_hash(changed)
