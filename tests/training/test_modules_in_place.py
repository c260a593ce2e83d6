"""A user's module that works in place reaches no tensor but its own."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import tempergat
from tempergat.base import UserError
from tempergat.data import Dataset, csbm, tensors
from tempergat.training.groups import check_user_module
from tempergat.training.runs import own_tensors
from tempergat.training.single import checkpoint
from tests.support.run_settings import CPU, config, loop_of, train_run, trained_loop
from tests.training.test_edge_inputs import SAMPLED, graph_with_edges

Write = Callable[[Tensor], Any]
WRITES: dict[str, Write] = {
    "dropout": lambda t: nn.functional.dropout(t, 0.5, inplace=True),
    "relu": lambda t: nn.functional.relu(t, inplace=True),
    "times": lambda t: t.mul_(1.05),
    "slice": lambda t: t[: len(t) // 2].add_(1),
    "copy": lambda t: t.copy_(t.flip(0)),
    "behind torch": lambda t: t.data.mul_(1.05),
    "numpy": lambda t: t.numpy().__imul__(2),
}
EDGE_WRITES: dict[str, Write] = {
    "swap": lambda t: t.copy_(t.flip(0)),
    "column": lambda t: t[:, 0].zero_(),
    "numpy": lambda t: t.numpy().fill(0),
}
NAMES = ("x", "edge_attr", "edge_weight")
DRAWS = [
    *itertools.product(WRITES.items(), NAMES, (None, True, False)),
    *itertools.product(EDGE_WRITES.items(), ("edge_index",), (None, True, False)),
]


def module_that_writes(
    write: Write, name: str, when: bool | None, *, clones: bool = False
) -> type[nn.Module]:
    """A module that writes into one of its inputs, or into a clone of it.

    Args:
        when: Whether it writes in training or in evaluation; None for both.
    """

    class Writes(nn.Module):
        def __init__(self, in_channels: int, out_channels: int) -> None:
            super().__init__()
            self.linear = nn.Linear(in_channels, out_channels)

        def forward(
            self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, edge_weight: Tensor
        ) -> Tensor:
            given = {"x": x, "edge_index": edge_index}
            given |= {"edge_attr": edge_attr, "edge_weight": edge_weight}
            if clones:
                given[name] = given[name].clone()
            if when is None or when == self.training:
                write(given[name])
            source, target = given["edge_index"]
            size = given["edge_weight"] * given["edge_attr"].sum(1)
            messages = given["x"][source] * size.unsqueeze(1)
            out: Tensor = self.linear(given["x"].index_add(0, target, messages))
            return out

    return Writes


def contents(graph: Dataset) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in tensors(graph.data)}


@pytest.mark.parametrize("sampled", [False, True], ids=["full", "sampled"])
def test_every_module_that_works_in_place_trains_like_one_that_clones(
    sampled: bool,
) -> None:
    graph = graph_with_edges()
    before = contents(graph)
    settings = config(
        "own",
        source_hash="abc",
        epochs=3,
        learning_rate=0.05,
        **({**SAMPLED, "fanout": (5, 5)} if sampled else {}),
    )
    seeds = [0] if sampled else [0, 1]
    for (what, write), name, when in DRAWS[:: 4 if sampled else 1]:
        case = f"{what} on {name}, {when}"
        modules = [module_that_writes(write, name, when, clones=c) for c in (0, 1)]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            loops = [trained_loop(settings, seeds, graph, build=m) for m in modules]
        assert torch.equal(*(loop.history for loop in loops)), case
        for key, value in loops[0].best.items():
            assert torch.equal(value, loops[1].best[key]), case
        lines = [str(line.message) for line in said]
        assert len(lines) == 1, (case, lines)
        assert lines[0].startswith(f"the module of own works in place on {name}: ")
        for key, value in contents(graph).items():
            assert torch.equal(value, before[key]), case


def test_predictions_and_calls_of_a_model_leave_the_graph_as_it_is() -> None:
    data = csbm(n=60, d=8).data
    before = data.clone()

    class InPlace(nn.Module):
        def __init__(self, in_channels: int, out_channels: int) -> None:
            super().__init__()
            self.conv = tempergat.nn.TemperGATConv(in_channels, out_channels)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            edge_index.copy_(edge_index.flip(0))
            out: Tensor = self.conv(x.mul_(2), edge_index)
            return out

    said = "works in place on edge_index, x: "
    options: dict[str, Any] = {"settings": {"epochs": 3}, "progress": False}
    with pytest.warns(UserWarning, match=said):
        model = tempergat.train(data, InPlace, **options)
    with pytest.warns(UserWarning, match=said):
        first = model.predict_proba(data)
    with pytest.warns(UserWarning, match=said):
        again = model.predict_proba(data)
    with torch.no_grad():
        called = model(data.x, data.edge_index).softmax(-1)
    tempergat.attention(model, data)
    assert torch.equal(first, again)
    assert torch.equal(first, called)
    assert torch.equal(data.x, before.x)
    assert torch.equal(data.edge_index, before.edge_index)


def test_a_module_in_place_changes_no_other_method_of_a_comparison() -> None:
    class Drops(nn.Module):
        def __init__(self, in_channels: int, out_channels: int) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5, inplace=True)
            self.linear = nn.Linear(in_channels, out_channels)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            out: Tensor = self.linear(self.drop(x))
            return out

    data = csbm(n=60, d=8).data
    x = data.x.clone()

    def scores(*methods: Any) -> dict[str, float]:
        found = tempergat.compare(
            data, [*methods, "gat"], 3, settings={"epochs": 4}, progress=False
        )
        return {row["method"]: row["mean"] for row in found.table}

    alone = scores("mlp")
    with pytest.warns(UserWarning, match="module of Drops works in place on x: it"):
        beside = scores(Drops, "mlp")
    beside.pop("Drops")
    assert beside == alone
    assert torch.equal(data.x, x)


def test_what_a_module_writes_to_in_training_is_said_before_any_run() -> None:
    # Runs on other machines show no warnings.
    module = module_that_writes(WRITES["dropout"], "x", True)
    settings = config("own", source_hash="abc")
    with pytest.warns(UserWarning, match="module of own works in place on x: it"):
        check_user_module(graph_with_edges(), settings, CPU, module)


def test_a_small_change_that_torch_does_not_see_ends_the_run_unstored(
    tmp_path: Any,
) -> None:
    def hidden(x: Tensor) -> None:
        x.numpy()[1, 1] += 1

    graph = graph_with_edges(n=400)
    settings = config("own", source_hash="abc", epochs=2)
    module = module_that_writes(hidden, "x", True)
    with pytest.raises(UserError, match=r"own writes into x where torch .* x\.clone"):
        train_run(settings, tmp_path, graph, build=module)
    # The checkpoint is that of the beginning.
    kept = checkpoint.read(checkpoint.file_at(tmp_path))
    assert int(kept.tensors["epoch"]) == 0


def test_a_module_that_asks_for_gradients_of_its_input_asks_a_new_copy() -> None:
    asked: list[bool] = []

    def ask(x: Tensor) -> None:
        asked.append(x.requires_grad)
        x.requires_grad_()

    settings = config("own", source_hash="abc", epochs=3)
    module = module_that_writes(ask, "x", True)
    trained_loop(settings, [0], graph_with_edges(), build=module)
    assert asked == [False] * 3


def test_large_copies_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_tensors, "_LARGE", 1000)
    module = module_that_writes(lambda t: t, "x", None)
    settings = config("own", source_hash="abc", epochs=1)
    with pytest.warns(UserWarning, match=r"copies of edge_attr, .* x, .* 0\.0 GiB"):
        loop_of(settings, graph=graph_with_edges(), build=module)


def test_a_module_that_only_reads_gets_the_same_tensors_in_every_call() -> None:
    seen: set[int] = set()
    calls: list[Tensor] = []

    def look(x: Tensor) -> None:
        seen.add(id(x))
        calls.append(x)

    settings = config("own", source_hash="abc", epochs=4)
    module = module_that_writes(look, "edge_index", None)
    trained_loop(settings, [0], graph_with_edges(), build=module)
    assert len(seen) == 1
    assert len(calls) >= 8
