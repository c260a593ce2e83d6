"""`tempergat.attention` of trained models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.data import Data, HeteroData

import tempergat
from tempergat import NeighborSampler, TemperGATConv, TrainedModel, UserError
from tempergat.data import csbm
from tests.support.tiny_graph import write_recipe
from tests.support.typed_graph import typed_graph


def small_graph() -> Data:
    data = csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0).data
    # Features are normalised by the model; negative ones would not be.
    data.x = data.x.abs()
    return data


Train = Callable[..., TrainedModel]


@pytest.fixture(name="trained")
def trained_models(tmp_path: Path) -> Train:
    recipe = write_recipe(tmp_path / "recipe.yaml", epochs=2, normalize_features=True)

    def train(graph: Any, method: Any = "temp_gated") -> TrainedModel:
        return tempergat.train(
            graph, method, recipe=recipe, device="cpu", progress=False
        )

    return train


def incoming(layer: Any, edges: Any, num_nodes: dict[str, int]) -> dict[str, Any]:
    """The sum of the coefficients into each node, its self-loop included."""
    heads = next(iter(layer.weights.values())).size(1)
    total = {kind: torch.zeros(n, heads) for kind, n in num_nodes.items()}
    for kind, loops in layer.self_loops.items():
        total[kind][: loops.size(0)] += loops
    for kind, weights in layer.weights.items():
        total[kind[2]].index_add_(0, edges[kind][1], weights)
    return total


def test_a_trained_model_prepares_the_graph_as_in_training(trained: Train) -> None:
    data = small_graph()
    model = trained(data)
    normalised = Data(
        x=data.x / data.x.sum(dim=1, keepdim=True), edge_index=data.edge_index
    )
    expected = tempergat.attention(model.module, normalised)
    layers = tempergat.attention(model, data)
    assert [layer.layer for layer in layers] == ["convs.0", "convs.1"]
    for a, b in zip(layers, expected, strict=True):
        torch.testing.assert_close(a.weights, b.weights)
        torch.testing.assert_close(a.self_loops, b.self_loops)
        assert torch.equal(a.edge_index, data.edge_index)
        assert not a.from_model


def test_reading_sorts_and_merges_edges_but_the_columns_stay_the_callers(
    trained: Train,
) -> None:
    data = small_graph()
    model = trained(data)
    repeated = torch.cat([data.edge_index, data.edge_index[:, :5]], dim=1)
    order = torch.randperm(repeated.size(1))
    other = Data(x=data.x, edge_index=repeated[:, order])
    for a, b in zip(
        tempergat.attention(model, data), tempergat.attention(model, other), strict=True
    ):
        assert torch.equal(b.edge_index, other.edge_index)
        # Of two equal edges the first one is used.
        expected = torch.cat([a.weights, a.weights[:5]])[order]
        torch.testing.assert_close(b.weights[b.used], expected[b.used])
        assert int(b.used.sum()) == data.num_edges
        assert not b.weights[~b.used].any()


def test_columns_of_a_large_int32_graph_stay_the_callers(trained: Train) -> None:
    # Beyond 46,341 nodes the product of two int32 ends overflows.
    model, count = trained(small_graph()), 70_000
    edges = torch.tensor([[69_999, 0, 50_000, 3], [1, 60_000, 2, 69_998]])
    data = Data(x=torch.rand(count, 8), edge_index=edges.int())
    (layer, _) = tempergat.attention(model, data)
    assert not layer.from_model
    assert torch.equal(layer.edge_index, data.edge_index)
    total = layer.self_loops.index_add(0, edges[1], layer.weights)
    torch.testing.assert_close(total, torch.ones_like(total))


def test_a_batch_has_the_coefficients_of_the_whole_graph(trained: Train) -> None:
    data = small_graph()
    model = trained(data)
    whole = tempergat.attention(model, data)
    batch = NeighborSampler(data, [-1, -1], 8).batch(0, 0)
    for a, b in zip(tempergat.attention(model, batch), whole, strict=True):
        torch.testing.assert_close(a.weights[a.used], b.weights[a.edge_id[a.used]])


def test_a_typed_model_gives_coefficients_by_edge_type(trained: Train) -> None:
    data = typed_graph()
    model = trained(data)
    edges = data.edge_index_dict
    counts = {kind: data[kind].num_nodes for kind in data.node_types}
    layers = tempergat.attention(model, data)
    assert len(layers) == 2
    for layer in layers:
        assert list(layer.weights) == data.edge_types
        for total in incoming(layer, edges, counts).values():
            torch.testing.assert_close(total, torch.ones_like(total))
    # The columns are the caller's: edges in another order give the same, reordered.
    other, orders = data.clone(), {}
    for kind in data.edge_types:
        orders[kind] = torch.randperm(data[kind].edge_index.size(1))
        other[kind].edge_index = data[kind].edge_index[:, orders[kind]]
    for a, b in zip(layers, tempergat.attention(model, other), strict=True):
        for kind, order in orders.items():
            torch.testing.assert_close(a.weights[kind][order], b.weights[kind])


def test_a_typed_batch_gives_coefficients_by_edge_type(trained: Train) -> None:
    data: HeteroData = typed_graph()
    model = trained(data)
    whole = tempergat.attention(model, data)
    fanout = {key: [-1, -1] for key in data.edge_types}
    seeds = ("paper", torch.tensor([3, 17, 40]))
    batch = NeighborSampler(data, fanout, 3, seeds=seeds).batch(0, 0)
    for number, (a, b) in enumerate(
        zip(tempergat.attention(model, batch), whole, strict=True)
    ):
        used = 0
        for kind in data.edge_types:
            assert torch.equal(a.edge_id[kind], batch[kind].e_id)
            places = a.edge_id[kind][a.used[kind]]
            used += places.numel()
            torch.testing.assert_close(
                a.weights[kind][a.used[kind]], b.weights[kind][places]
            )
        assert used > 0
        reached = a.self_loops["paper"].size(0)
        torch.testing.assert_close(
            a.self_loops["paper"], b.self_loops["paper"][batch["paper"].n_id[:reached]]
        )
        assert number == 0 or reached == 3


def test_a_users_own_module_is_called_as_in_training(trained: Train) -> None:
    def build(in_channels: int, out_channels: int) -> nn.Module:
        return TemperGATConv(in_channels, out_channels)

    data = small_graph()
    (layer,) = tempergat.attention(trained(data, build), data)
    assert layer.weights.shape == (data.num_edges, 1)
    assert not layer.from_model


def test_mistakes_are_said_in_one_line(trained: Train) -> None:
    data = small_graph()
    model = trained(data)
    with pytest.raises(UserError, match="x cannot be given; leave it out"):
        tempergat.attention(model, data, x=data.x)
    typed = NeighborSampler(typed_graph(), [2, 2], 4, seeds="paper").batch(0, 0)
    with pytest.raises(UserError, match="the batch is of a typed graph"):
        tempergat.attention(model, typed)
    with pytest.raises(UserError, match="3 features per node"):
        tempergat.attention(model, Data(x=data.x[:, :3], edge_index=data.edge_index))
