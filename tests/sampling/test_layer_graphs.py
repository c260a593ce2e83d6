"""The graphs of a batch's layers: smaller, sorted, and with the seeds' outputs."""

from typing import Any

import pytest
import torch

from tempergat import Graph, NeighborSampler
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
