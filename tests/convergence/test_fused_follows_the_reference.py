"""Training on the fused kernels follows training in plain PyTorch."""

import pytest
import torch

from tempergat import ops
from tempergat.ops import Graph, backend
from tempergat.ops.cpu import library as cpu
from tempergat.training.loop import COLUMNS
from tests.support.plain_loop import train_plainly
from tests.support.run_settings import config, small_graph

LOSSES = [COLUMNS.index("loss"), COLUMNS.index("val_loss")]


@pytest.mark.skipif(cpu.library.problem is not None, reason="no CPU kernels")
@pytest.mark.parametrize("method", ["temp_gated", "gated_temp", "temp_gated_v2"])
def test_the_losses_on_the_cpu_kernels_are_the_references(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = small_graph()
    settings = config(method, epochs=20, feature_dropout=0.4, attention_dropout=0.5)
    graph, z = Graph(torch.tensor([[0], [1]]), 2), torch.zeros(2, 2, 8)
    curves = []
    for name in ("cpu", "reference"):
        if name == "reference":
            monkeypatch.setattr(backend, "BACKENDS", ())
        assert ops.explain(graph, z).backend == name
        curves.append(train_plainly(dataset, settings, 3)["history"][:, LOSSES])
    assert curves[0][-1, 0] < curves[0][0, 0]
    torch.testing.assert_close(*curves, rtol=2e-4, atol=2e-5)
