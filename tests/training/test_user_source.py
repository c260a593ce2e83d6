"""The hash of a user's module changes with every piece of code it is built from."""

import functools
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
from torch_geometric.nn import GATConv

from tempergat.training.runs.user_modules import callable_name, source_hash

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


def test_code_without_a_file_has_a_hash() -> None:
    places: dict[str, object] = {}
    for number in (1, 2):
        exec(f"def build{number}(i, o): return {number}", places)
    assert source_hash(places["build1"]) != source_hash(places["build2"])
