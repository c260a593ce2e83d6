"""A group of runs: what it trains, and the errors raised before any work."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from sklearn.metrics import f1_score

from tempergat.base import UserError
from tempergat.data import Dataset, Target, csbm
from tempergat.nn import NodeClassifier, build_model
from tempergat.ops import Graph
from tempergat.training import (
    Condition,
    OutOfMemory,
    Preparation,
    config_hash,
    explain_out_of_memory,
    group_size,
    train_group,
)
from tempergat.training.devices.memory import bytes_per_seed
from tempergat.training.evaluate import accuracy
from tempergat.training.metrics import METRICS
from tempergat.training.optimizer import is_decayed, make_optimizer
from tempergat.training.runs.models import single_model
from tests.support.run_settings import (
    CPU,
    config,
    small_graph,
)


def changed(dataset: Dataset, **attributes: torch.Tensor) -> Dataset:
    data = dataset.data.clone()
    for name, value in attributes.items():
        data[name] = value
    return dataclasses.replace(dataset, data=data)


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
    micro_f1 = METRICS["micro_f1"].compute(predicted, labels, 3)
    assert micro_f1.item() == f1_score(labels, predicted, average="micro")


def test_every_epoch_is_reported() -> None:
    epochs: list[int] = []
    train_group(small_graph(), config(epochs=3), [0], CPU, on_epoch=epochs.append)
    assert epochs == [1, 2, 3]


def one_class() -> Dataset:
    graph = small_graph()
    return changed(graph, y=torch.full_like(graph.data.y, 2))


def with_labels(labelled: int) -> Dataset:
    """Twenty nodes, the first of them labelled, none of them for validation."""
    graph = csbm(n=20, a=5.0, b=2.0, d=4)
    y = torch.where(torch.arange(20) < labelled, graph.data.y, -1)
    every = torch.ones(20, dtype=torch.bool)
    return changed(graph, y=y, val_mask=~every, train_mask=every)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (
            one_class(),
            "all 36 training nodes of csbm are of class 2; a classifier needs at least "
            "two classes",
        ),
        (
            dataclasses.replace(
                one_class(), predicted=Target(3, ("low", "mid", "high"))
            ),
            "all 36 training nodes of csbm are of class high; a classifier needs at "
            "least two classes",
        ),
        (
            with_labels(20),
            "csbm has no labelled validation nodes; make a split of its 20 labelled "
            "nodes with --split 60/20/20 (split= in Python)",
        ),
        (
            with_labels(3),
            "csbm has no labelled validation nodes; its 3 labelled nodes are too few "
            "for --split 60/20/20, so label more",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(
    dataset: Dataset, message: str
) -> None:
    with pytest.raises(UserError) as refused:
        train_group(dataset, config(), [0], CPU)
    assert str(refused.value) == message


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UserError, match="seed is"):
        train_group(small_graph(), config(), [0, seed], CPU)


def fail_twice() -> None:
    try:
        torch.empty(2**50)
    except RuntimeError:
        raise RuntimeError("a second error because of the first")  # noqa: B904


def fail_in_cpp() -> None:
    raise RuntimeError("std::bad_alloc")


def fail_otherwise() -> None:
    raise RuntimeError("something else")


@pytest.mark.parametrize(
    ("fail", "runs", "error", "message"),
    [
        (fail_twice, 12, OutOfMemory, "12 runs of .* --training sampled .* fewer hidd"),
        (fail_in_cpp, 1, OutOfMemory, "one run of gat"),
        (lambda: torch.empty(2**46, 2**46), 1, OutOfMemory, "one run of gat"),
        (fail_otherwise, 12, RuntimeError, "^something else$"),
    ],
)
def test_running_out_of_memory_says_what_to_lower(
    fail: Callable[[], object], runs: int, error: type[Exception], message: str
) -> None:
    explained = explain_out_of_memory(config(), runs, CPU)
    with pytest.raises(error, match=message), explained:
        fail()


def test_group_size_depends_on_graph_and_settings_alone() -> None:
    small, large = small_graph(), small_graph(600)
    assert group_size(small, config(), CPU) >= 50
    assert bytes_per_seed(large, config()) > bytes_per_seed(small, config())
    wide = config(hidden_channels=4096, num_layers=4)
    assert bytes_per_seed(small, wide) > bytes_per_seed(small, config())
    huge = config(hidden_channels=2**20)
    assert group_size(large, huge, CPU) == 1


def test_only_the_last_layer_loses_its_gate() -> None:
    model = build_model("temp_gated", 5, 8, 3, heads=2, gate_last_layer=False)
    assert [conv.gate for conv in model.convs] == ["post", None]
    assert all(conv.temperature is not None for conv in model.convs)


def test_settings_with_the_gate_keep_their_hash() -> None:
    settings = config("gated").model_dump(mode="json")
    assert "gate_last_layer" not in settings
    changed = config("gated", gate_last_layer=False).model_dump(mode="json")
    assert config_hash(settings) != config_hash(changed)
