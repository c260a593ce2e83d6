"""A typed graph as one graph of a single type."""

import torch

from tempergat.training.typed import node_types_of, typed_inputs, union_edges
from tests.support.typed_graph import typed_graph


def test_the_target_type_comes_first_and_every_edge_keeps_its_ends() -> None:
    data = typed_graph()
    names = [kind.name for kind in node_types_of(data, "venue")]
    assert names[0] == "venue"
    assert sorted(names) == sorted(data.node_types)
    edges, count = union_edges(data, "venue")
    assert count == data.num_nodes
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
    found = typed_inputs(data, "paper", lambda x: x * 2)
    kinds = node_types_of(data, "paper")
    for kind, values in zip(kinds, found.inputs, strict=True):
        if kind.name == "author":
            assert values is None
        else:
            assert torch.equal(values, data[kind.name].x * 2)
    assert found.num_targets == data["paper"].num_nodes
