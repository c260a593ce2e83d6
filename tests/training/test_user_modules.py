"""A user's own module: its training, its mistakes, the hash of its source."""

import functools
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv

import tempergat.nn
from tempergat.base import UserError
from tempergat.training.loop import Loop
from tempergat.training.runs.user_modules import BuildModule, callable_name, source_hash
from tests.support.run_settings import config, loop_of, small_graph, trained_loop


class TwoLayerGAT(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first = GATConv(in_channels, 4, heads=2, dropout=0.4)
        self.norm = nn.BatchNorm1d(8)
        self.second = GATConv(-1, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = nn.functional.dropout(x, 0.5, self.training)
        return self.second(self.norm(self.first(h, edge_index)).relu(), edge_index)


def train(build: BuildModule, seeds: list[int], epochs: int = 12) -> Loop:
    settings = config("own", source_hash="abc", epochs=epochs, learning_rate=0.02)
    return trained_loop(settings, seeds, build=build)


def test_a_plain_pyg_module_trains_and_repeats_bit_for_bit() -> None:
    torch.manual_seed(1)
    first = train(TwoLayerGAT, [3, 4])
    torch.manual_seed(2)
    again = train(TwoLayerGAT, [3, 4])
    assert torch.equal(first.history, again.history)
    for name, value in first.best.items():
        assert torch.equal(value, again.best[name]), name
    losses = first.history[:, :, 0]
    assert (losses[-1] < losses[0]).all()
    assert not torch.equal(losses[:, 0], losses[:, 1])


def test_a_run_does_not_depend_on_the_other_seeds() -> None:
    both, alone = train(TwoLayerGAT, [3, 4]), train(TwoLayerGAT, [4])
    assert torch.equal(both.history[:, 1], alone.history[:, 0])


def test_the_callers_random_numbers_are_left_alone() -> None:
    before = torch.get_rng_state()
    train(TwoLayerGAT, [0], epochs=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_best_weights_are_those_of_the_selected_epoch() -> None:
    settings = config("own", source_hash="abc", epochs=10)
    loop = loop_of(settings, build=TwoLayerGAT)
    seen = []
    for epoch in range(1, 11):
        loop.run(until=epoch)
        seen.append({k: v.clone() for k, v in loop.runs.state.items()})
    best = int(loop.history[:, 0, 3].argmax())
    for name, value in loop.best.items():
        assert torch.equal(value, seen[best][name]), name


def test_modules_are_given_dense_features_and_a_plain_edge_index() -> None:
    given: list[Any] = []

    class Spy(nn.Module):
        def __init__(self, in_channels: int, out_channels: int) -> None:
            super().__init__()
            self.linear = nn.Linear(in_channels, out_channels)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            given.append((type(x), x.layout, x.dtype, type(edge_index), edge_index))
            out: Tensor = self.linear(x)
            return out

    graph = small_graph()
    graph.data.x = (graph.data.x * (graph.data.x > 1.5)).to_sparse_csr()
    settings = config("own", source_hash="abc", epochs=1)
    loop_of(settings, graph=graph, build=Spy)
    kind, layout, dtype, edges_kind, edge_index = given[0]
    assert (kind, layout, dtype) == (Tensor, torch.strided, torch.float32)
    assert edges_kind is Tensor
    assert torch.equal(edge_index, graph.data.edge_index)


def test_biases_are_decayed_only_if_the_settings_say_so() -> None:
    for decay_bias in (True, False):
        settings = config("own", source_hash="abc", decay_bias=decay_bias)
        loop = loop_of(settings, build=TwoLayerGAT)
        decays = {
            id(parameter): part["weight_decay"]
            for part in loop.optimizer.param_groups
            for parameter in part["params"]
        }
        expected = settings.weight_decay if decay_bias else 0.0
        assert decays[id(loop.runs.model.first.bias)] == expected


class WrongShape(TwoLayerGAT):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index)[:, :1]


class Pair(TwoLayerGAT):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return x, edge_index


class Failing(TwoLayerGAT):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        raise KeyError("no such\nedge")


class FailingBackward(TwoLayerGAT):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = super().forward(x, edge_index).exp()
        return h + h.add_(1.0)


class WithoutParameters(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.out_channels = out_channels

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x[:, : self.out_channels]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            WrongShape,
            r"module of own returned a torch.float32 tensor \[60, 1\]; .*"
            r"tensor \[60, 3\]: one row per node",
        ),
        (
            Pair,
            "module of own returned an object of type tuple; return a floating",
        ),
        (Failing, r"the module of own failed with KeyError: 'no such\\nedge'"),
        (FailingBackward, "the module of own failed with RuntimeError: .*inplace"),
        (WithoutParameters, "own has no parameters to train"),
        (
            lambda inputs, outputs: 3,
            r"own\(12, 3\) returned an object of type int; return a torch.nn",
        ),
        (
            lambda inputs, outputs: nn.Linear(inputs, outputs, device="meta"),
            "returned a module on the device meta, which has no numbers; build it",
        ),
        (lambda inputs: 3, "the module of own failed with TypeError"),
    ],
)
def test_mistakes_in_a_module_are_one_line(build: BuildModule, message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        train(build, [0], epochs=1)
    assert "\n" not in str(refused.value)


def test_the_traceback_of_a_users_error_is_chained() -> None:
    with pytest.raises(UserError) as refused:
        train(Failing, [0], epochs=1)
    assert isinstance(refused.value.__cause__, KeyError)


def test_a_module_can_be_given_as_a_partial() -> None:
    build = functools.partial(GCNConv, improved=True)
    assert train(build, [0], epochs=1).runs.seeds == (0,)


LAYERS = """
from torch import nn
WIDTH = 8
def scale(): return 2
class Base(nn.Module):
    def forward(self, x, edge_index): return self.linear(x) * scale()
"""
METHOD = """
import layers
from layers import Base
class Mine(Base):
    def __init__(self, i, o):
        super().__init__()
        self.linear = layers.nn.Linear(i, o)
        self.width = layers.WIDTH
def build(i, o):
    def inner(): return Mine(i, o)
    return inner()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def load(folder: Path, layers: str = LAYERS, method: str = METHOD) -> ModuleType:
    (folder / "layers.py").write_text(layers)
    (folder / "method.py").write_text(method)
    for name in ("layers", "method"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("method")


def test_equal_code_has_equal_hashes(folder: Path) -> None:
    first = source_hash(load(folder).build)
    assert source_hash(load(folder).build) == first


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("method", "super().__init__()", "super().__init__()  # changed"),
        ("method", "def inner(): return Mine(i, o)", "def inner(): return Mine(i, 3)"),
        ("layers", "return 2", "return 3"),
        ("layers", "WIDTH = 8", "WIDTH = 9"),
        ("layers", "self.linear(x) *", "self.linear(x) +"),
    ],
)
def test_every_change_of_the_code_changes_the_hash(
    folder: Path, file: str, old: str, new: str
) -> None:
    before = source_hash(load(folder).build)
    texts = {"layers": LAYERS, "method": METHOD}
    assert old in texts[file]
    texts[file] = texts[file].replace(old, new)
    assert source_hash(load(folder, **texts).build) != before


def test_lambdas_on_one_line_have_different_hashes() -> None:
    narrow, wide = lambda i, o: GATConv(i, o, 1), lambda i, o: GATConv(i, o, 2)
    assert source_hash(narrow) != source_hash(wide)


def test_values_of_partials_and_closures_count() -> None:
    def make(heads: int):
        return lambda i, o: GATConv(i, o, heads)

    assert source_hash(make(1)) != source_hash(make(2))
    one, two = (functools.partial(GATConv, heads=heads) for heads in (1, 2))
    assert source_hash(one) != source_hash(two)
    assert source_hash(one) == source_hash(functools.partial(GATConv, heads=1))
    assert callable_name(one) == "GATConv"


def test_a_layer_that_pyg_has_under_the_same_name_is_another_one() -> None:
    ours = functools.partial(tempergat.nn.GATConv, heads=1)
    assert callable_name(ours) == "tempergat.nn.GATConv"
    assert callable_name(tempergat.nn.TemperGATConv) == "TemperGATConv"
    assert source_hash(ours) != source_hash(functools.partial(GATConv, heads=1))


def test_code_without_a_file_has_a_hash() -> None:
    places: dict[str, object] = {}
    for number in (1, 2):
        exec(f"def build{number}(i, o): return {number}", places)
    assert source_hash(places["build1"]) != source_hash(places["build2"])
