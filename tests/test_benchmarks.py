"""The benchmarks name no speed for a kernel that is wrong."""

from typing import Any

import pytest
import torch

from benchmarks import attention_cpu
from tempergat import ops
from tempergat.ops import Graph


def _measure(backbone: str) -> dict[str, Any]:
    edge_index = torch.randint(20, (2, 100))
    return attention_cpu.measure("cora", backbone, "op", Graph(edge_index, 20), 1)


@pytest.mark.parametrize("backbone", ["gat", "gatv2"])
def test_a_correct_kernel_has_a_speed(backbone: str) -> None:
    row = _measure(backbone)
    if row["backend"] != "cpu":
        pytest.skip("no CPU kernels")
    assert row["check"] == "passed"
    assert float(row["times_faster"]) > 0


@pytest.mark.parametrize("backbone", ["gat", "gatv2"])
@pytest.mark.parametrize("wrong", [1.01, torch.nan], ids=["differs", "is not a number"])
def test_a_kernel_with_a_wrong_gradient_has_no_speed(
    backbone: str, wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(ops, backbone)

    def call(graph: Graph, *arguments: torch.Tensor) -> Any:
        *others, last = arguments
        last = last.clone()
        last.register_hook(lambda gradient: gradient * wrong)
        return right(graph, *others, last)

    monkeypatch.setattr(ops, backbone, call)
    row = _measure(backbone)
    assert row["check"] == "FAILED"
    assert not [name for name in row if name.endswith("_ms") or "times" in name]
