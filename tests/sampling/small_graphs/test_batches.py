"""Batches of any graphs equal PyG's, attribute by attribute, and for our layers."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from tempergat import (
    GraphLoader,
    TemperGATConv,
    TemperGATv2Conv,
    TemperTransformerConv,
)
from tests.sampling.small_graphs.drawn import InMemory, OwnData, edges, small_graphs

# What says how many nodes a graph has, besides its edges.
NODES: dict[str, Callable[[int], dict[str, Any]]] = {
    "features": lambda n: {"x": torch.randn(n, 2)},
    "double features": lambda n: {"x": torch.randn(n, 2, dtype=torch.float64)},
    "positions": lambda n: {"pos": torch.randn(n, 3)},
    "a number": lambda n: {"num_nodes": n},
    "both": lambda n: {"x": torch.randn(n), "num_nodes": n},
    "nothing": lambda n: {},
    "a name with node": lambda n: {"node_colour": torch.arange(n)},
}
# Attributes of a graph with n nodes and e edges.
ATTRIBUTES: dict[str, Callable[[int, int], Any]] = {
    "edge_index": lambda n, e: edges(n, e),
    "edge_attr": lambda n, e: torch.randn(e, 3),
    "edge_weight": lambda n, e: torch.rand(e, dtype=torch.float64),
    "edge_kind": lambda n, e: torch.randint(9, (e, 1), dtype=torch.uint8),
    "short_edge_index": lambda n, e: edges(n, e, torch.int32),
    "y": lambda n, e: torch.tensor(n / 3),
    "count": lambda n, e: n,
    "share": lambda n, e: n / 3,
    "is_small": lambda n, e: n < 3,
    "root_index": lambda n, e: torch.tensor(n),
    "first_index": lambda n, e: n + 1,
    "name": lambda n, e: f"graph of {n}",
    "words": lambda n, e: ["a", str(e)],
    "train_mask": lambda n, e: torch.rand(n) < 0.5,
    "no_width": lambda n, e: torch.zeros(n, 0),
    "face": lambda n, e: torch.randint(max(n, 1), (3, e // 2)),
    "my_batch": lambda n, e: torch.randint(4, (e + 1,)),
    "batch_number": lambda n, e: e,
    "whole": lambda n, e: torch.randn(2, 3),
    "columns": lambda n, e: torch.randn(2, n, 2),
    "turned": lambda n, e: torch.randn(3, n).t(),
}
PAIRS: dict[str, Callable[[int, int], Any]] = {
    "x_s": lambda n, e: torch.randn(n, 2),
    "x_t": lambda n, e: torch.randn(e, 3),
    "edge_index_s": lambda n, e: edges(n, e),
    "edge_index_t": lambda n, e: torch.randint(9, (2, n), dtype=torch.int32),
    "pairs": lambda n, e: torch.randint(9, (e, 2)),
}


def assert_same(ours: Data, theirs: Data) -> None:
    """Same attributes, and each of the same type with the same values."""
    assert set(ours.keys()) == set(theirs.keys())
    for name in theirs.keys():  # noqa: SIM118
        mine, expected = ours[name], theirs[name]
        assert type(mine) is type(expected), name
        if isinstance(expected, Tensor):
            torch.testing.assert_close(mine, expected, rtol=0, atol=0, msg=name)
        else:
            assert mine == expected, name


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.filterwarnings("ignore:Unable to accurately infer")
@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1),
    nodes=st.sampled_from(sorted(NODES)),
    names=st.sets(st.sampled_from(sorted(ATTRIBUTES)), min_size=1),
    pairs=st.booleans(),
    in_memory=st.booleans(),
    batch_size=st.integers(1, 5),
    data=st.data(),
)
def test_a_batch_of_any_graphs_equals_pygs(
    compiled: bool,
    sizes: list[tuple[int, int]],
    nodes: str,
    names: set[str],
    pairs: bool,
    in_memory: bool,
    batch_size: int,
    data: st.DataObject,
) -> None:
    # Nothing says how many nodes they have but their edges.
    names = names | ({"edge_index"} if nodes == "nothing" else set())
    makers = {name: ATTRIBUTES[name] for name in sorted(names)}
    makers |= PAIRS if pairs else {}
    own = pairs or not names.isdisjoint({"whole", "columns"})
    graphs: Any = [
        (OwnData if own else Data).from_dict(
            NODES[nodes](n) | {name: make(n, e) for name, make in makers.items()}
        )
        for n, e in sizes
    ]
    graphs = InMemory(graphs) if in_memory else graphs
    some = st.sets(st.sampled_from(sorted(makers)), max_size=2)
    options: dict[str, Any] = {
        "follow_batch": sorted(data.draw(some)),
        "exclude_keys": sorted(data.draw(some)),
        "shuffle": True,
    }
    with mock.patch(
        "tempergat.sampling.small_graphs.gather.can_gather", return_value=compiled
    ):
        loader = GraphLoader(graphs, batch_size, **options)
    torch.manual_seed(7)
    ours = list(loader)
    torch.manual_seed(7)
    theirs = list(DataLoader(graphs, batch_size, **options))
    assert len(ours) == len(theirs) == len(loader)
    for batch, expected in zip(ours, theirs, strict=True):
        assert type(batch) is type(expected)
        assert_same(batch, expected)
        assert batch.num_graphs == expected.num_graphs
        assert batch.num_nodes == expected.num_nodes
        pairs_of_graphs = batch.to_data_list(), expected.to_data_list()
        for graph, original in zip(*pairs_of_graphs, strict=True):
            assert type(graph) is type(original)
            assert_same(graph, original)


@pytest.mark.parametrize(
    "layer_class", [TemperGATConv, TemperGATv2Conv, TemperTransformerConv]
)
@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=1),
    edge_dim=st.sampled_from([None, 3]),
    kind=st.sampled_from([torch.float32, torch.float64]),
)
def test_our_layers_give_the_same_on_a_batch_as_on_pygs(
    layer_class: type[torch.nn.Module],
    sizes: list[tuple[int, int]],
    edge_dim: int | None,
    kind: torch.dtype,
) -> None:
    graphs = []
    for n, e in sizes:
        ends = edges(n, e)
        features = torch.randn(n, 4, dtype=kind), torch.randn(ends.size(1), 3).to(kind)
        graphs.append(
            Data(x=features[0], edge_index=ends, edge_attr=features[1])
            if edge_dim
            else Data(x=features[0], edge_index=ends)
        )
    layer = layer_class(4, 3, heads=2, edge_dim=edge_dim).to(kind)
    (batch,) = GraphLoader(graphs, len(graphs))
    results = []
    for each in (batch, Batch.from_data_list(graphs)):
        inputs = [each.x] if edge_dim is None else [each.x, each.edge_attr]
        wanted = [*(x.requires_grad_() for x in inputs), *layer.parameters()]
        out = layer(inputs[0], each.edge_index, *inputs[1:])
        grads = torch.autograd.grad(out.square().sum(), wanted)
        results.append([out, *grads])
    torch.testing.assert_close(*results, rtol=0, atol=0)


def test_numbers_of_different_types_have_one_type_in_every_batch() -> None:
    graphs = small_graphs(4)
    for graph, share in zip(graphs, (1, 2, 0.5, True), strict=True):
        graph.share = share
    shares = [batch.share for batch in GraphLoader(graphs, 2)]
    torch.testing.assert_close(torch.cat(shares), torch.tensor([1.0, 2.0, 0.5, 1.0]))
