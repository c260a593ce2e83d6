"""What the explorer stores of a model, and what it refuses."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import tempergat
from tempergat import TemperGATConv, TrainedModel, UserError
from tempergat.comparison.explorer import model_record
from tempergat.comparison.explorer.layers import (
    pack_integers,
    pack_logits,
    pack_numbers,
)
from tempergat.comparison.explorer.model_record import record
from tests.comparison.explorer.test_page import graph, write_explorer
from tests.support.tiny_graph import write_recipe
from tests.support.typed_graph import typed_graph


def trained(folder: Path, graph: Any, method: Any, **changes: Any) -> TrainedModel:
    recipe = write_recipe(folder / "recipe.yaml", epochs=2, **changes)
    return tempergat.train(graph, method, recipe=recipe, device="cpu", progress=False)


def unpacked(packed: Any) -> np.ndarray:
    kind = {"levels": "<u2", "float16": "<f2"}.get(packed["kind"], packed["kind"])
    values = np.frombuffer(base64.b64decode(packed["text"]), dtype=kind)
    if packed["kind"] == "levels":
        return packed["low"] + packed["step"] * values.astype(float)
    return values.astype(float)


def test_packed_numbers_come_back() -> None:
    drawn = np.random.default_rng(0).normal(size=10_000)
    assert unpacked(pack_numbers(drawn)) == pytest.approx(drawn, abs=1e-4)
    assert unpacked(pack_numbers(drawn[:9])) == pytest.approx(drawn[:9], abs=1e-6)
    for whole in ([0, 255], [-1, 300], [0, 40_000], [0, 70_000]):
        assert unpacked(pack_integers(np.array(whole))).tolist() == whole


def test_half_precision_of_logits_suffices_at_any_temperature() -> None:
    differences = -np.geomspace(1e-3, 1e3, 2000)
    stored = unpacked(pack_logits(differences))
    for temperature in (0.01, 1.0, 100.0):
        wanted = np.exp(differences / temperature)
        assert np.exp(stored / temperature) == pytest.approx(wanted, abs=2e-4)


def test_a_large_graph_is_sampled_and_the_page_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = graph(400)
    model = trained(tmp_path, data, "temp_gated")
    monkeypatch.setattr(model_record, "MOST_CHARACTERS", 20_000)
    monkeypatch.setattr(model_record, "_LEAST_CHARACTERS", 0)
    file = tmp_path / "explore.html"
    recorded = write_explorer(model, file, data)
    assert not recorded.sample.is_whole
    shown = int(recorded.sample.shown.sum())
    assert f"The page holds {shown} of 400 nodes, drawn at random" in file.read_text()


def test_what_the_page_cannot_compute_is_said(tmp_path: Path) -> None:
    model = trained(tmp_path, graph(), "temp_gated", norm="layer")
    file = tmp_path / "explore.html"
    recorded = write_explorer(model, file, graph())
    assert recorded.why_not_exact == "the model has the normalisation LayerNorm"
    assert "changes the attention weights of the chosen layer only" in file.read_text()
    assert all("logits" in layer for layer in recorded.values["layers"])


def test_another_graph_has_no_known_split(tmp_path: Path) -> None:
    model = trained(tmp_path, graph(), "temp_only")
    data = graph().data
    other = Data(x=data.x, edge_index=data.edge_index)
    recorded = record(model, other)
    assert not recorded.is_training_graph
    assert recorded.labelled == 0


def test_mistakes_are_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gcn has no attention to show; train one of"):
        record(trained(tmp_path, graph(), "gcn"), graph())

    def build(in_channels: int, out_channels: int) -> nn.Module:
        return TemperGATConv(in_channels, out_channels)

    with pytest.raises(UserError, match="is your own module; the explorer shows"):
        record(trained(tmp_path, graph(), build), graph())
    typed = typed_graph()
    with pytest.raises(UserError, match="is a typed graph, and the explorer shows"):
        record(trained(tmp_path, typed, "temp_only"), typed)
    model = trained(tmp_path, graph(), "temp_only")
    with pytest.raises(UserError, match="what has that name here cannot be used"):
        record(model)
    small = Data(x=torch.ones(3, 2), edge_index=torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(UserError, match="2 features per node, but the model was"):
        record(model, small)
