"""Attention coefficients in the caller's order, compared with PyG's own layers."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GATConv, GATv2Conv, HeteroConv, to_hetero
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

import tempergat
from tempergat import (
    Graph,
    NeighborSampler,
    TemperGATConv,
    TemperGATv2Conv,
    UserError,
)
from tempergat.nn import build_model
from tempergat.sampling import LayerGraphs

PAIRS = {"gat": (GATConv, TemperGATConv), "gatv2": (GATv2Conv, TemperGATv2Conv)}
PLAIN: dict[str, Any] = {"temperature": None, "gate": None}


def messy_edges(seed: int = 0) -> Tensor:
    """Edges of 12 nodes in random order, with duplicates and self-loops among them."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, 12, (2, 60), generator=generator)
    loops = torch.tensor([[3, 3, 7], [3, 3, 7]])
    together = torch.cat([edges, edges[:, :15], loops], dim=1)
    return together[:, torch.randperm(together.size(1), generator=generator)]


def messy_graph(seed: int = 0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(12, 5, generator=generator)
    return Data(x=x, edge_index=messy_edges(seed))


class TwoLayers(nn.Module):
    def __init__(self, layer: type[nn.Module], **options: Any) -> None:
        super().__init__()
        self.first = layer(5, 4, heads=3, **options)
        self.second = layer(12, 2, heads=2, concat=False, **options)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return out


def pyg_weights(model: TwoLayers, data: Data) -> list[tuple[Tensor, Tensor]]:
    """What PyG's layers return, one pair of edges and coefficients for each."""
    out, first = model.first(data.x, data.edge_index, return_attention_weights=True)
    second = model.second(out.relu(), data.edge_index, return_attention_weights=True)
    return [first, second[1]]


def expected_in_callers_order(
    edge_index: Tensor, theirs: tuple[Tensor, Tensor], replaced: bool
) -> tuple[Tensor, Tensor]:
    """PyG's order is the caller's without self-loops, then a loop for every node."""
    weights = theirs[1]
    kept = edge_index[0] != edge_index[1]
    if not replaced:
        return weights, weights[:0]
    placed = weights.new_zeros(edge_index.size(1), weights.size(1))
    placed[kept] = weights[: int(kept.sum())]
    return placed, weights[int(kept.sum()) :]


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_coefficients_are_those_of_pyg_in_the_callers_order(
    kind: str, loops: bool, seed: int
) -> None:
    theirs, ours = PAIRS[kind]
    torch.manual_seed(seed)
    oracle = TwoLayers(theirs, add_self_loops=loops).eval()
    model = TwoLayers(ours, add_self_loops=loops, **PLAIN)
    model.load_state_dict(oracle.state_dict())
    data = messy_graph(seed)
    layers = tempergat.attention(model, data)
    assert [layer.layer for layer in layers] == ["first", "second"]
    for layer, expected in zip(layers, pyg_weights(oracle, data), strict=True):
        weights, own = expected_in_callers_order(data.edge_index, expected, loops)
        torch.testing.assert_close(layer.weights, weights)
        assert torch.equal(layer.edge_index, data.edge_index)
        assert torch.equal(layer.edge_id, torch.arange(data.num_edges))
        is_loop = data.edge_index[0] == data.edge_index[1]
        assert torch.equal(layer.used, ~is_loop if loops else torch.ones_like(is_loop))
        if loops:
            torch.testing.assert_close(layer.self_loops, own)
        else:
            assert layer.self_loops is None


def test_shuffled_edges_give_the_same_coefficients_which_sum_to_one() -> None:
    torch.manual_seed(0)
    model = TwoLayers(TemperGATConv)
    data = messy_graph()
    order = torch.randperm(data.num_edges)
    shuffled = Data(x=data.x, edge_index=data.edge_index[:, order])
    one, other = (tempergat.attention(model, graph) for graph in (data, shuffled))
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a.weights[order], b.weights)
        torch.testing.assert_close(a.self_loops, b.self_loops)
        total = a.self_loops.clone()
        total.index_add_(0, data.edge_index[1], a.weights)
        torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("to_matrix", [to_torch_coo_tensor, to_torch_csr_tensor])
@pytest.mark.parametrize("loops", [True, False])
def test_a_sparse_matrix_has_its_entries_as_edges(to_matrix: Any, loops: bool) -> None:
    data = messy_graph()
    edges = torch.unique(data.edge_index, dim=1)
    adj_t = to_matrix(edges.flip(0), size=(12, 12))
    torch.manual_seed(0)
    model = TwoLayers(TemperGATConv, add_self_loops=loops)
    layers = tempergat.attention(model, Data(x=data.x), edge_index=adj_t)
    order = edges.flip(0)
    order = order[:, (order[0] * 12 + order[1]).argsort()].flip(0)
    expected = tempergat.attention(model, Data(x=data.x, edge_index=order))
    for a, b in zip(layers, expected, strict=True):
        assert torch.equal(a.edge_index, order)
        torch.testing.assert_close(a.weights, b.weights)
        if loops:
            torch.testing.assert_close(a.self_loops, b.self_loops)


@pytest.mark.parametrize(
    ("channels", "options"),
    [
        (5, {"heads": 2, "flow": "target_to_source"}),
        ((5, 3), {"heads": 2, "add_self_loops": False}),
        (5, {"edge_dim": 3}),
    ],
    ids=["against the edges", "bipartite", "edge features"],
)
def test_every_form_of_a_layer_keeps_the_columns(
    channels: Any, options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    oracle = GATConv(channels, 4, **options)
    layer = TemperGATConv(channels, 4, **options, **PLAIN)
    layer.load_state_dict(oracle.state_dict())
    data, given = messy_graph(), {}
    if "edge_dim" in options:
        data.edge_attr = torch.randn(data.num_edges, 3)
    if channels == (5, 3):
        given["x"] = (data.x, torch.randn(12, 3))
    inputs = given.get("x", data.x), data.edge_index, data.edge_attr
    _, theirs = oracle(*inputs, return_attention_weights=True)
    looped = options.get("add_self_loops", True)
    weights, own = expected_in_callers_order(data.edge_index, theirs, looped)
    (ours,) = tempergat.attention(layer, data, **given)
    torch.testing.assert_close(ours.weights, weights)
    torch.testing.assert_close(ours.self_loops, own if looped else None)


def typed_graph() -> HeteroData:
    torch.manual_seed(3)
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.randn(8, 5), torch.randn(6, 5)
    data["author", "writes", "paper"].edge_index = torch.stack(
        [torch.randint(0, 6, (20,)), torch.randint(0, 8, (20,))]
    )
    data["paper", "cites", "paper"].edge_index = torch.randint(0, 8, (2, 25))
    data["paper", "by", "author"].edge_index = data[
        "author", "writes", "paper"
    ].edge_index.flip(0)
    return data


class OneLayer(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.layer(x, edge_index)


class ByType(OneLayer):
    def forward(self, x_dict: Any, edge_index_dict: Any) -> Any:  # type: ignore[override]
        return self.layer(x_dict, edge_index_dict)


class EveryOtherEdge(OneLayer):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.layer(x, edge_index[:, 1::2])


def test_layers_of_a_hetero_conv_are_worse_than_best_by_edge_type() -> None:
    data = typed_graph()
    kinds = {kind: {"add_self_loops": kind[0] == kind[2]} for kind in data.edge_types}
    theirs = {kind: GATConv((-1, -1), 3, **options) for kind, options in kinds.items()}
    theirs["paper", "cites", "paper"] = GATConv(5, 3)
    model = ByType(HeteroConv(theirs))
    model(data.x_dict, data.edge_index_dict)
    tempergat.upgrade(model, temperature=None, gate=None)
    layers = {next(iter(one.weights)): one for one in tempergat.attention(model, data)}
    assert set(layers) == set(data.edge_types)
    for kind, layer in layers.items():
        x = (data[kind[0]].x, data[kind[2]].x)
        _, expected = theirs[kind](
            x[0] if kind[0] == kind[2] else x,
            data[kind].edge_index,
            return_attention_weights=True,
        )
        weights, own = expected_in_callers_order(
            data[kind].edge_index, expected, kind[0] == kind[2]
        )
        torch.testing.assert_close(layer.weights[kind], weights)
        if kind[0] == kind[2]:
            torch.testing.assert_close(layer.self_loops, {"paper": own})


def test_a_model_of_to_hetero_is_called_by_type() -> None:
    data = typed_graph()
    options = {"add_self_loops": False, "heads": 2}
    layer = to_hetero(OneLayer(TemperGATConv((-1, -1), 3, **options)), data.metadata())
    layer(data.x_dict, data.edge_index_dict)
    layers = tempergat.attention(layer, data)
    assert sorted(next(iter(one.weights)) for one in layers) == sorted(data.edge_types)
    for one in layers:
        ((kind, weights),) = one.weights.items()
        target = data[kind].edge_index[1]
        total = torch.zeros(data[kind[2]].num_nodes, 2).index_add_(0, target, weights)
        torch.testing.assert_close(
            total[target.unique()], torch.ones(target.unique().numel(), 2)
        )


def test_a_sampled_batch_has_the_coefficients_of_its_edges() -> None:
    torch.manual_seed(0)
    data = messy_graph()
    model = build_model("temp_gated", 5, 8, 3, heads=2)
    whole = tempergat.attention(model, data)
    # All neighbours are taken, so the coefficients are those of the whole graph.
    batch = NeighborSampler(data, [-1, -1], 2, seeds=torch.tensor([4, 9])).batch(0, 0)
    layers = tempergat.attention(model, batch)
    for layer, (a, b) in enumerate(zip(layers, whole, strict=True)):
        assert torch.equal(a.edge_id, batch.e_id)
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
        # Edges into the first nodes are all there.
        reached = a.self_loops.size(0)
        seen = batch.edge_index[1] < reached
        assert torch.equal(a.used, seen & (batch.edge_index[0] != batch.edge_index[1]))
        torch.testing.assert_close(a.weights[seen], b.weights[batch.e_id[seen]])
        torch.testing.assert_close(a.self_loops, b.self_loops[batch.n_id[:reached]])
        assert layer == 0 or reached == 2


def test_a_batch_that_others_made_keeps_the_order_of_its_edges() -> None:
    torch.manual_seed(0)
    data = messy_graph()
    model = build_model("temp_gated", 5, 8, 3, heads=2)
    expected = tempergat.attention(model, data)
    # Sorting for the layers changes the order of the edges.
    batch = data.clone()
    batch.graph = LayerGraphs.of_batch(batch)
    for a, b in zip(tempergat.attention(model, batch), expected, strict=True):
        torch.testing.assert_close(a.weights, b.weights)
        assert torch.equal(a.used, b.used)
        assert not a.from_model


@pytest.mark.parametrize("loops", [True, False])
def test_a_ready_graph_keeps_the_columns(loops: bool) -> None:
    torch.manual_seed(0)
    data = messy_graph()
    model = TwoLayers(TemperGATConv)
    expected = tempergat.attention(model, data)
    graph = Graph(data.edge_index, 12, self_loops=loops)
    # By which edges the graph was made is only known where the data has them.
    for given in (data, Data(x=data.x)):
        layers = tempergat.attention(model, given, edge_index=graph)
        for a, b in zip(layers, expected, strict=True):
            torch.testing.assert_close(a.weights, b.weights)
            torch.testing.assert_close(a.self_loops, b.self_loops)
            assert torch.equal(a.used, b.used)


def test_a_module_that_changes_its_edges_is_marked() -> None:
    data = messy_graph()
    (layer,) = tempergat.attention(EveryOtherEdge(TemperGATConv(5, 2)), data)
    assert layer.from_model
    assert torch.equal(layer.edge_index, data.edge_index[:, 1::2])
    assert layer.weights.size(0) == layer.edge_index.size(1)


def test_the_model_stays_in_training_mode_and_keeps_no_hooks() -> None:
    model = TwoLayers(TemperGATConv, dropout=0.5).train()
    model.second.eval()
    first, second = (tempergat.attention(model, messy_graph()) for _ in range(2))
    # Without dropout: both calls agree.
    torch.testing.assert_close(first[0].weights, second[0].weights)
    assert model.first.training
    assert not model.second.training
    assert not model.first._forward_hooks
    assert not first[0].weights.requires_grad


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(UserError, match="no attention layers of tempergat"):
        tempergat.attention(build_model("gcn", 5, 8, 3), messy_graph())


def test_a_missing_argument_is_named() -> None:
    model = TwoLayers(TemperGATConv)
    with pytest.raises(UserError, match="takes x, which the graph does not have"):
        tempergat.attention(model, Data(edge_index=messy_edges()))
    with pytest.raises(UserError, match="the graph is a Tensor"):
        tempergat.attention(model, messy_edges())


def test_the_result_says_what_it_holds() -> None:
    layers = tempergat.attention(TwoLayers(TemperGATConv), messy_graph())
    assert repr(layers[0]) == "LayerAttention(first, 78 edges, 3 heads, temperature 1)"


@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_model_gives_what_the_model_gives(in_place: bool) -> None:
    model, data = TwoLayers(TemperGATConv).eval(), messy_graph()
    expected = tempergat.attention(model, data)
    compiled: Any = model
    if in_place:
        model.compile(backend="eager")
    else:
        compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(data.x, data.edge_index)
    layers = tempergat.attention(compiled, data)
    assert [layer.layer for layer in layers] == ["first", "second"]
    for one, other in zip(layers, expected, strict=True):
        assert torch.equal(one.weights, other.weights)


def test_repeated_entries_of_a_sparse_matrix_are_one_edge() -> None:
    data = messy_graph()
    index, size = data.edge_index.flip(0), (12, 12)
    matrix = torch.sparse_coo_tensor(index, torch.ones(index.size(1)), size)
    model = TwoLayers(TemperGATConv, add_self_loops=False)
    (first, _) = tempergat.attention(model, Data(x=data.x), edge_index=matrix)
    assert first.edge_index.unique(dim=1).size(1) == first.edge_index.size(1)
    total = torch.zeros(12, 3).index_add_(0, first.edge_index[1], first.weights)
    has_edges = data.edge_index[1].unique()
    torch.testing.assert_close(total[has_edges], torch.ones(len(has_edges), 3))
