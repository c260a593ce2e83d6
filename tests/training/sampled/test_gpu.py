"""Sampled training on a GPU gives what it gives on the CPU."""

import pytest
import torch

from tempergat.nn import build_model
from tempergat.sampling import NodeFeatures, Topology
from tempergat.training import infer_layerwise, train_group
from tests.support.run_settings import CPU, config, small_graph, trained_loop

pytestmark = pytest.mark.gpu
CUDA = torch.device("cuda")
SAMPLED = {"training": "sampled", "fanout": (3, 2), "batch_size": 16, "epochs": 3}
OPTIMIZER = {"optimizer": "adamw", "schedule": "cosine", "clip_norm": 0.5}


@pytest.mark.parametrize("eval_batch_size", [None, 10])
@pytest.mark.parametrize("method", ["gcn", "temp_gated", "gated_temp_v2"])
def test_losses_are_those_of_the_cpu(method, eval_batch_size):
    settings = config(
        method,
        feature_dropout=0.3,
        attention_dropout=0.2,
        eval_batch_size=eval_batch_size,
        **SAMPLED,
        **OPTIMIZER,
    )
    found, expected = (
        trained_loop(settings, device=device).history.cpu() for device in (CUDA, CPU)
    )
    torch.testing.assert_close(found[..., :2], expected[..., :2], rtol=1e-3, atol=1e-4)


def test_a_captured_full_batch_step_has_schedule_and_limit_of_the_gradient():
    settings = config("temp_gated", epochs=30, **OPTIMIZER)
    ends = {}
    for device in (CPU, CUDA):
        runs = train_group(small_graph(), settings, [0, 1], device)
        ends[device] = [run.last.temperatures for run in runs]
    for found, expected in zip(ends[CUDA], ends[CPU], strict=True):
        assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("place", [CPU, CUDA])
@pytest.mark.parametrize("method", ["gcn", "gated_temp", "temp_gated_v2"])
def test_layer_by_layer_equals_the_whole_graph(method, place):
    data = small_graph().data
    model = build_model(method, data.x.size(1), 8, 3, heads=2).to(CUDA).eval()
    with torch.no_grad():
        expected = model(data.x.to(CUDA), data.edge_index.to(CUDA))
    features = NodeFeatures(data.x.to(place), CUDA)
    topology = Topology.of(data.edge_index.to(place), data.num_nodes)
    for keep_on in (None, "cpu"):
        found = infer_layerwise(model, features, topology, chunk=16, keep_on=keep_on)
        torch.testing.assert_close(found.to(CUDA), expected, rtol=1e-4, atol=1e-5)


def test_features_on_the_gpu_or_beside_it_give_the_same_rows():
    x = torch.randn(50, 7)
    nodes = torch.tensor([3, 49, 0])
    beside, near = NodeFeatures(x, CUDA), NodeFeatures(x).near(CUDA)
    for features in (beside, near):
        rows = features.rows(nodes.to(CUDA))
        assert rows.device.type == "cuda"
        assert torch.equal(rows.cpu(), x[nodes])
