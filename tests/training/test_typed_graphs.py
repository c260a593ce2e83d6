"""A typed graph as one graph of a single type."""

import pytest
import torch

from tempergat.nn import build_typed_model
from tempergat.ops import Graph
from tempergat.training.graphs.typed import (
    node_types_of,
    typed_inputs,
    union_edges,
    union_graphs,
)
from tests.support.typed_graph import typed_graph


def test_the_target_type_comes_first_and_every_edge_keeps_its_ends() -> None:
    data = typed_graph()
    names = [kind.name for kind in node_types_of(data, "venue")]
    assert names[0] == "venue"
    assert sorted(names) == sorted(data.node_types)
    edges = union_edges(data, "venue")
    starts, start = {}, 0
    for name in names:
        starts[name] = start
        start += data[name].num_nodes
    expected = {
        (starts[source] + a, starts[end] + b)
        for (source, _, end), store in zip(
            data.edge_types, data.edge_stores, strict=True
        )
        for a, b in store.edge_index.T.tolist()
    }
    assert {tuple(edge) for edge in edges.T.tolist()} == expected
    assert edges.size(1) == data.num_edges


def test_types_without_features_have_no_input() -> None:
    data = typed_graph()
    found = typed_inputs(data, "paper", lambda x, _: x * 2)
    kinds = node_types_of(data, "paper")
    for kind, values in zip(kinds, found.inputs, strict=True):
        if kind.name == "author":
            assert values is None
        else:
            assert torch.equal(values, data[kind.name].x * 2)
    assert found.num_targets == data["paper"].num_nodes


@pytest.mark.parametrize("method", ["gcn", "gat", "temp_gated_v2", "mlp"])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_graphs_by_layer_give_the_scores_of_the_whole_graph(
    method: str, layers: int
) -> None:
    data = typed_graph()
    kinds = node_types_of(data, "paper")
    model = build_typed_model(method, kinds, 8, 2, num_layers=layers, heads=2).eval()
    x = typed_inputs(data, "paper", lambda x, _: x)
    graphs = union_graphs(
        data, "paper", layers, torch.device("cpu"), whole=method == "gcn"
    )
    if layers > 1:
        assert graphs[-1].num_dst == data["paper"].num_nodes
    whole = Graph(union_edges(data, "paper"), data.num_nodes)
    torch.testing.assert_close(model(x, graphs), model(x, whole))


def test_types_that_no_target_can_see_are_not_computed() -> None:
    data = typed_graph()
    assert node_types_of(data, "paper")[-1].name == "review"
    graphs = union_graphs(data, "paper", 3, torch.device("cpu"))
    assert all(graph.num_dst <= data.num_nodes - 5 for graph in graphs)
