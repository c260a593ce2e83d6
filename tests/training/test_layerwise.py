"""Inference layer by layer equals the model on the whole graph."""

import numpy as np
import pytest
import torch

from tempergat import Graph
from tempergat.nn import METHODS, build_model
from tempergat.sampling import NodeFeatures, Topology
from tempergat.training.graphs.layerwise import infer_layerwise
from tests.support.run_settings import small_graph

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
NODES = 60
GENERATOR = torch.Generator().manual_seed(1)
X = torch.randn(NODES, 6, generator=GENERATOR)
EDGES = torch.randint(0, NODES, (2, 300), generator=GENERATOR)
# A hub, existing self-loops, and nodes without any edge.
EDGES[1, :80] = 7
EDGES[:, 80:84] = torch.arange(4)
EDGES = EDGES[:, (EDGES < NODES - 3).all(0)]


def trained_model(method, **options):
    torch.manual_seed(0)
    model = build_model(method, 6, 8, 3, heads=2, **options)
    model.train()
    # Batch norm gets statistics that differ from its initial ones.
    model(X, EDGES, *options.get("attr", ()))
    return model.eval()


@torch.no_grad()
@pytest.mark.parametrize(
    ("method", "chunk"),
    [*((method, 7) for method in METHODS), ("gcn", 1), ("temp_gated", 1000)],
)
def test_every_method_gives_what_it_gives_on_the_whole_graph(method, chunk):
    model = trained_model(method, norm="batch", residual=True)
    expected = model(X, EDGES)
    scores = infer_layerwise(model, X, Topology.of(EDGES, NODES), chunk=chunk)
    torch.testing.assert_close(scores, expected)


@torch.no_grad()
@pytest.mark.parametrize("norm", [None, "layer", "graph"])
@pytest.mark.parametrize("jk", [None, "last", "cat", "max"])
def test_jumping_knowledge_and_normalisation_over_all_nodes(jk, norm):
    model = trained_model("temp_gated", norm=norm, jk=jk)
    nodes = torch.tensor([5, 59, 0, 7])
    scores = infer_layerwise(model, X, Graph(EDGES, NODES), chunk=16, nodes=nodes)
    torch.testing.assert_close(scores, model(X, EDGES)[nodes])


@torch.no_grad()
def test_edge_features_and_weights_are_used():
    attr = torch.randn(EDGES.size(1), 2)
    weight = torch.rand(EDGES.size(1)) + 0.1
    attention = build_model("gatv2", 6, 8, 3, heads=2, edge_dim=2).eval()
    scores = infer_layerwise(attention, X, EDGES, chunk=9, edge_attr=attr)
    torch.testing.assert_close(scores, attention(X, EDGES, attr))
    gcn = build_model("gcn", 6, 8, 3).eval()
    scores = infer_layerwise(gcn, X, EDGES, chunk=9, edge_weight=weight)
    torch.testing.assert_close(scores, gcn(X, EDGES, edge_weight=weight))


@torch.no_grad()
def test_features_may_be_sparse_or_mapped_from_a_file(tmp_path):
    model = trained_model("gated_temp")
    np.save(tmp_path / "x.npy", X.numpy())
    features = NodeFeatures.open(tmp_path / "x.npy")
    expected = model(X, EDGES)
    scores = infer_layerwise(model, features, EDGES, chunk=16)
    torch.testing.assert_close(scores, expected)
    sparse = NodeFeatures(X.to_sparse_csr())
    scores = infer_layerwise(model, sparse, EDGES, chunk=16)
    torch.testing.assert_close(scores, expected)


@torch.no_grad()
def test_a_hub_ends_its_chunk_early_and_the_mode_is_kept(monkeypatch):
    from tempergat.training.graphs import layerwise

    monkeypatch.setattr(layerwise, "_EDGES_PER_TARGET", 1)
    model = trained_model("gat").train()
    seen = []
    scores = infer_layerwise(
        model, X, EDGES, chunk=16, on_layer=lambda *call: seen.append(call)
    )
    assert model.training
    torch.testing.assert_close(scores, model.eval()(X, EDGES))
    sizes = [rows.size(0) for number, _, rows in seen if number == 0]
    assert sum(sizes) == NODES
    assert min(sizes) < max(sizes) <= 16


@pytest.mark.gpu
@pytest.mark.parametrize("place", [CPU, CUDA])
@pytest.mark.parametrize("method", ["gcn", "gated_temp", "temp_gated_v2"])
def test_layer_by_layer_equals_the_whole_graph_on_a_gpu(method, place):
    data = small_graph().data
    model = build_model(method, data.x.size(1), 8, 3, heads=2).to(CUDA).eval()
    with torch.no_grad():
        expected = model(data.x.to(CUDA), data.edge_index.to(CUDA))
    features = NodeFeatures(data.x.to(place), CUDA)
    topology = Topology.of(data.edge_index.to(place), data.num_nodes)
    for keep_on in (None, "cpu"):
        scores = infer_layerwise(model, features, topology, chunk=16, keep_on=keep_on)
        torch.testing.assert_close(scores.to(CUDA), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_features_on_the_gpu_or_beside_it_give_the_same_rows():
    x = torch.randn(50, 7)
    nodes = torch.tensor([3, 49, 0])
    beside, near = NodeFeatures(x, CUDA), NodeFeatures(x).near(CUDA)
    for features in (beside, near):
        rows = features.rows(nodes.to(CUDA))
        assert rows.device.type == "cuda"
        assert torch.equal(rows.cpu(), x[nodes])
