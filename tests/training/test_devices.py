"""Kernels of a group of runs are compiled before it is trained."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tempergat.data import Dataset, load
from tempergat.training import compile_kernels, load_recipe
from tempergat.training.devices import choice


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is compiled, without a GPU."""
    calls: list[dict[str, Any]] = []

    def note(op: str, heads: int, channels: int, **others: Any) -> None:
        calls.append({"op": op, "heads": heads, "channels": channels, **others})

    monkeypatch.setattr(choice, "compile_ahead", note)
    return calls


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return load("demo")


@pytest.mark.parametrize(
    ("method", "op"), [("temp_gated", "gat"), ("temp_gated_v2", "gatv2")]
)
def test_the_kernels_of_training_and_evaluation_of_every_layer_are_asked_for(
    method: str, op: str, asked: list[dict[str, Any]], demo: Dataset
) -> None:
    config = load_recipe("demo").config_for(method)
    compile_kernels(demo, config, 7, torch.device("cuda"))
    # Dropout of features, and gradients of the weights of all runs at once.
    others = [call["op"] for call in asked if call["op"] != op]
    assert others == ["dropout", "dropout", "outer"]
    asked[:] = [call for call in asked if call["op"] == op]
    layers = [(config.heads, config.hidden_channels // config.heads), (1, 2)]
    shapes = [(call["heads"], call["channels"]) for call in asked]
    assert shapes == [*layers, *layers]
    assert [call["training"] for call in asked] == [True, True, False, False]
    # In evaluation nothing is dropped.
    assert [call["dropout"] for call in asked] == [True, True, False, False]
    for call in asked:
        assert call["op"] == op
        assert (call["models"], call["nodes"]) == (7, 2000)


@pytest.mark.parametrize(
    ("method", "device"), [("temp_gated", "cpu"), ("gcn", "cuda"), ("mlp", "cuda")]
)
def test_nothing_is_asked_for_on_a_cpu_or_for_methods_without_attention(
    method: str, device: str, asked: list[dict[str, Any]], demo: Dataset
) -> None:
    config = load_recipe("demo").config_for(method)
    compile_kernels(demo, config, 7, torch.device(device))
    assert not asked


def test_the_product_with_sparse_features_is_asked_for(
    asked: list[dict[str, Any]], demo: Dataset
) -> None:
    x = demo.data.x * (torch.rand(demo.data.x.shape) < 0.1)
    data = demo.data.clone()
    data.x = x.to_sparse_csr()
    config = load_recipe("demo").config_for("gat")
    compile_kernels(replace(demo, data=data), config, 7, torch.device("cuda"))
    (product,) = (call for call in asked if call["op"] == "aggregate")
    assert (product["channels"], product["models"]) == (config.hidden_channels, 7)
