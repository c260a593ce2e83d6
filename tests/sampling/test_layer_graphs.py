"""The graphs of the layers, of our own batches and of those that others made."""

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from tempergat import Graph, NeighborSampler, TemperGATConv, UserError
from tempergat.sampling import LayerGraphs, layer_graphs
from tests.sampling.graphs import random_data, random_typed_data


def batch_of(fanout: list[int], training: bool = True) -> Any:
    sampler = NeighborSampler(random_data(), fanout, 16, training=training)
    return sampler.batch(0, 2)


def assert_same_graph(graph: Graph, expected: Graph) -> None:
    for name in (
        "num_src",
        "num_dst",
        "num_edges",
        "num_loops",
        "self_loops",
        "padded",
    ):
        assert getattr(graph, name) == getattr(expected, name), name
    for name in ("src", "dst", "edge_id", "edge_index"):
        ours, theirs = getattr(graph, name), getattr(expected, name)
        assert torch.equal(ours, theirs), name
    for rows in ("by_target", "by_source"):
        ours, theirs = getattr(graph, rows), getattr(expected, rows)
        for name in ours._fields:
            one, other = getattr(ours, name), getattr(theirs, name)
            assert one.dtype == other.dtype, (rows, name)
            assert torch.equal(one, other), (rows, name)


@pytest.mark.parametrize("by_cpp", [True, False])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2, 3, 4, 5])
def test_a_layers_graph_is_that_of_its_edges(
    num_layers: int, self_loops: bool, by_cpp: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_cpp:
        monkeypatch.setattr(layer_graphs, "make_layer_graph", lambda *_: None)
    batch = batch_of([4, 3, 2])
    assert (batch.edge_index[0] == batch.edge_index[1]).any()
    nodes, edges = batch.num_sampled_nodes, batch.num_sampled_edges
    graphs = batch.graph.for_layers(num_layers, self_loops)
    assert len(graphs) == num_layers
    for after, graph in enumerate(reversed(graphs)):
        used = batch.edge_index[:, : sum(edges[: after + 1])]
        sizes = sum(nodes[: after + 2]), sum(nodes[: after + 1])
        assert_same_graph(graph, Graph(used, sizes, self_loops=self_loops))
    if num_layers > 3:
        assert graphs[0].num_src == graphs[0].num_dst == batch.num_nodes


def test_edges_by_source_are_sorted_only_for_training() -> None:
    for training in (False, True):
        graphs = batch_of([4, 3], training).graph.for_layers(2, True)
        assert all((g._by_source is not None) == training for g in graphs)


def test_graphs_move_with_their_batch() -> None:
    batch = batch_of([4, 3])
    made = batch.graph.for_layers(2, True)
    moved = batch.graph.to("meta")
    assert moved.source.device.type == "meta"
    assert moved.for_layers(2, True)[0].device.type == "meta"
    assert moved.for_layers(2, True)[0].num_edges == made[0].num_edges
    assert isinstance(batch.to("cpu").graph, LayerGraphs)


def test_a_typed_batch_is_one_graph_with_the_seeds_first() -> None:
    batch = NeighborSampler(random_typed_data(), [4, 3], 16, "paper").batch(0, 1)
    rows = batch.graph.rows_of_type
    assert torch.cat(list(rows.values())).sort().values.tolist() == list(
        range(batch.num_nodes)
    )
    assert rows["paper"][:16].tolist() == list(range(16))
    expected = set()
    for kind in batch.edge_types:
        source, target = batch[kind].edge_index
        ends = rows[kind[0]][source], rows[kind[2]][target]
        expected |= set(zip(*(end.tolist() for end in ends), strict=True))
    whole = batch.graph.for_layers(3, False)[0]
    assert set(zip(whole.src.tolist(), whole.dst.tolist(), strict=True)) == expected
    for graph in batch.graph.for_layers(2, True):
        edges = graph.edge_index[:, : graph.src.numel() - graph.num_loops]
        again = Graph(edges, (graph.num_src, graph.num_dst), self_loops=True)
        assert torch.equal(graph.by_target.pointer, again.by_target.pointer)
        assert torch.equal(graph.by_target.other, again.by_target.other)


def foreign(shuffle: bool, *left_out: str) -> tuple[Any, Any]:
    """A batch of ours, and the same one as others would give it."""
    ours = NeighborSampler(random_data(), [4, 3], 16).batch(0, 1)
    order = torch.arange(ours.num_edges)
    if shuffle:
        order = torch.randperm(
            ours.num_edges, generator=torch.Generator().manual_seed(0)
        )
    names = "x", "y", "n_id", "num_sampled_nodes", "num_sampled_edges", "batch_size"
    fields = {name: ours[name] for name in names if name not in left_out}
    edges = {
        "edge_index": ours.edge_index[:, order],
        "edge_attr": ours.edge_attr[order],
    }
    return ours, Data(**fields, **edges)


def outputs(batch: Any, graphs: LayerGraphs) -> torch.Tensor:
    torch.manual_seed(0)
    convs = [TemperGATConv(5, 5, edge_dim=1) for _ in range(2)]
    h, edge_attr = batch.x, graphs.in_edge_order(batch.edge_attr)
    for conv, graph in zip(convs, graphs.for_layers(2, True), strict=True):
        h = conv(h[: graph.num_src], graph, edge_attr[: graph.num_edges])
    return h[: batch.batch_size].detach()


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_batch_made_elsewhere_gives_the_same_graphs(shuffle: bool) -> None:
    ours, other = foreign(shuffle)
    graphs = LayerGraphs.of_batch(other)
    assert graphs.nodes_per_hop == ours.graph.nodes_per_hop
    assert graphs.edges_per_hop == ours.graph.edges_per_hop
    for one, two in zip(
        graphs.for_layers(2, True), ours.graph.for_layers(2, True), strict=True
    ):
        assert torch.equal(one.by_target.pointer, two.by_target.pointer)
        assert (one.num_src, one.num_dst) == (two.num_src, two.num_dst)
    expected = outputs(ours, ours.graph)
    torch.testing.assert_close(outputs(other, graphs), expected)


@pytest.mark.parametrize(
    "left_out",
    [("num_sampled_nodes",), ("num_sampled_nodes", "num_sampled_edges", "n_id")],
)
def test_without_the_fields_every_layer_gets_the_whole_batch(
    left_out: tuple[str, ...],
) -> None:
    ours, other = foreign(True, *left_out)
    graphs = LayerGraphs.of_batch(other)
    for graph in graphs.for_layers(2, True):
        assert graph.num_src == graph.num_dst == ours.num_nodes
        assert graph.num_edges == ours.num_edges
    torch.testing.assert_close(outputs(other, graphs), outputs(ours, ours.graph))


def test_an_induced_subgraph_is_used_whole() -> None:
    data = random_data()
    ours, other = foreign(False)
    inside = torch.isin(data.edge_index, ours.n_id).all(dim=0)
    place = torch.full((200,), -1)
    place[ours.n_id] = torch.arange(ours.num_nodes)
    other.edge_index = place[data.edge_index[:, inside]]
    del other.num_sampled_edges
    graphs = LayerGraphs.of_batch(other).for_layers(2, False)
    assert {graph.num_edges for graph in graphs} == {int(inside.sum())}


def test_our_own_batches_keep_their_graphs() -> None:
    batch = NeighborSampler(random_data(), [4, 3], 16).batch(0, 1)
    assert LayerGraphs.of_batch(batch) is batch.graph


@pytest.mark.parametrize("fields", [True, False])
def test_a_typed_batch_made_elsewhere_is_one_graph(fields: bool) -> None:
    batch = NeighborSampler(random_typed_data(), [4, 3], 16, "author").batch(0, 1)
    ours = batch.graph
    del batch.graph
    for kind in batch.edge_types:
        edges = batch[kind].edge_index
        batch[kind].edge_index = edges[:, torch.randperm(edges.size(1))]
    if not fields:
        for kind in batch.node_types:
            del batch[kind].num_sampled_nodes
    graphs = LayerGraphs.of_batch(batch)
    assert graphs.rows_of_type is not None
    seeds = batch["author"].batch_size
    assert graphs.rows_of_type["author"][:seeds].tolist() == list(range(seeds))
    if fields:
        assert graphs.nodes_per_hop == ours.nodes_per_hop
        assert graphs.edges_per_hop == ours.edges_per_hop
        assert torch.equal(graphs.target, ours.target)
    else:
        assert graphs.for_layers(2, False)[1].num_dst == batch.num_nodes
    assert graphs.source.numel() == ours.source.numel()


def test_fields_that_contradict_each_other_are_refused() -> None:
    _, other = foreign(False)
    other.num_sampled_nodes = [16, 3, 3]
    with pytest.raises(UserError, match="num_sampled_nodes of the batch adds up to 22"):
        LayerGraphs.of_batch(other)
    _, other = foreign(False)
    other.num_sampled_edges = [1, 1]
    with pytest.raises(UserError, match="num_sampled_edges of the batch adds up to 2"):
        LayerGraphs.of_batch(other)
