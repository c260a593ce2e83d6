"""Batches of the neighbour sampler: their fields, order and determinism."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv
from torch_geometric.utils import trim_to_layer

from tempergat import NeighborSampler, UserError
from tempergat.sampling import NodeFeatures, Topology
from tests.sampling.graphs import (
    EDGE_TYPES,
    random_data,
    random_edges,
    random_typed_data,
)


def all_fields(batch: Any) -> dict[str, Any]:
    return {str(k): v for store in batch.stores for k, v in store.items()}


def assert_equal(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    ours, theirs = all_fields(one), all_fields(other)
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        if isinstance(value, Tensor):
            assert torch.equal(value, theirs[key]), key
        elif key != "graph":
            assert value == theirs[key], key


def test_a_batch_has_the_fields_of_pyg() -> None:
    data = random_data()
    seeds = torch.arange(0, 200, 3)
    sampler = NeighborSampler(data, [4, 3], 16, seeds, shuffle=True)
    for batch in sampler:
        assert isinstance(batch, Data)
        n_id, e_id = batch.n_id, batch.e_id
        assert n_id.dtype == e_id.dtype == batch.edge_index.dtype == torch.int64
        assert batch.batch_size == batch.input_id.numel() == batch.num_sampled_nodes[0]
        assert torch.equal(seeds[batch.input_id], n_id[: batch.batch_size])
        assert sum(batch.num_sampled_nodes) == n_id.numel() == batch.num_nodes
        assert sum(batch.num_sampled_edges) == e_id.numel() == batch.num_edges
        assert torch.equal(batch.x, data.x[n_id])
        assert torch.equal(batch.y, data.y[n_id])
        assert torch.equal(batch.edge_attr, data.edge_attr[e_id])
        assert torch.equal(n_id[batch.edge_index], data.edge_index[:, e_id])
        assert batch.is_sorted(sort_by_row=False)


def test_a_typed_batch_has_the_fields_of_pyg() -> None:
    data = random_typed_data()
    fanout = {kind: [3, 2] for kind in EDGE_TYPES}
    fanout[EDGE_TYPES[3]] = [-1, 0]
    sampler = NeighborSampler(data, fanout, 16, ("paper", None))
    for batch in sampler:
        assert isinstance(batch, HeteroData)
        assert batch["paper"].batch_size == batch["paper"].input_id.numel()
        assert batch.node_types == data.node_types
        assert batch.edge_types == data.edge_types
        for kind in data.node_types:
            store = batch[kind]
            assert len(store.num_sampled_nodes) == 3
            assert sum(store.num_sampled_nodes) == store.n_id.numel() == store.num_nodes
            if "x" in data[kind]:
                assert torch.equal(store.x, data[kind].x[store.n_id])
        for kind in data.edge_types:
            store, whole = batch[kind], data[kind].edge_index
            assert len(store.num_sampled_edges) == 2
            assert sum(store.num_sampled_edges) == store.e_id.numel()
            for end in (0, 1):
                n_id = batch[kind[2 * end]].n_id
                assert torch.equal(n_id[store.edge_index[end]], whole[end, store.e_id])
        assert sum(batch[EDGE_TYPES[3]].num_sampled_edges[1:]) == 0


def test_trimming_to_layers_leaves_the_seeds_outputs() -> None:
    batch = NeighborSampler(random_data(), [4, 3, 2], 16).batch(0, 1)
    convs = [SAGEConv(5, 5) for _ in range(3)]
    whole = trimmed = batch.x
    edges, attributes = batch.edge_index, batch.edge_attr
    for layer, conv in enumerate(convs):
        whole = conv(whole, batch.edge_index)
        trimmed, edges, attributes = trim_to_layer(
            layer,
            batch.num_sampled_nodes,
            batch.num_sampled_edges,
            trimmed,
            edges,
            attributes,
        )
        trimmed = conv(trimmed, edges)
    torch.testing.assert_close(whole[:16], trimmed[:16])


@pytest.mark.filterwarnings("ignore:There exist node types")
def test_trimming_works_on_a_typed_batch() -> None:
    data = random_typed_data()
    batch = NeighborSampler(data, [4, 3], 16, "paper").batch(0, 1)
    features = {k: torch.randn(batch[k].num_nodes, 4) for k in batch.node_types}
    convs = [
        HeteroConv({kind: SAGEConv((4, 4), 4) for kind in EDGE_TYPES}) for _ in range(2)
    ]
    whole = trimmed = features
    edges = batch.edge_index_dict
    for layer, conv in enumerate(convs):
        whole = {**whole, **conv(whole, batch.edge_index_dict)}
        trimmed, edges, _ = trim_to_layer(
            layer,
            batch.num_sampled_nodes_dict,
            batch.num_sampled_edges_dict,
            trimmed,
            edges,
        )
        trimmed = {**trimmed, **conv(trimmed, edges)}
    torch.testing.assert_close(whole["paper"][:16], trimmed["paper"][:16])


def test_a_fanout_of_minus_one_takes_the_whole_neighbourhood() -> None:
    data = random_data()
    batch = NeighborSampler(data, [-1], 200).batch(0, 0)
    assert batch.e_id.sort().values.tolist() == list(range(data.num_edges))


def test_epochs_differ_and_a_resumed_epoch_goes_on_as_it_would_have() -> None:
    data = random_data()
    sampler = NeighborSampler(data, [4, 3], 32, shuffle=True, seed=5)
    first, second = list(sampler), list(sampler)
    assert len(first) == len(second) == len(sampler) == 7
    assert not torch.equal(first[0].n_id, second[0].n_id)
    resumed = NeighborSampler(data, [4, 3], 32, shuffle=True, seed=5)
    resumed.set_epoch(1, start_step=4)
    rest = list(resumed)
    assert len(rest) == 3
    for ours, theirs in zip(rest, second[4:], strict=True):
        assert_equal(ours, theirs)
    assert_equal(next(iter(resumed)), sampler.batch(2, 0))
    other = NeighborSampler(data, [4, 3], 32, shuffle=True, seed=6)
    assert not torch.equal(other.batch(0, 0).n_id, first[0].n_id)


@pytest.mark.parametrize(
    ("world_size", "drop_last"), [(2, False), (3, False), (3, True)]
)
def test_ranks_share_the_seeds_of_every_step(world_size: int, drop_last: bool) -> None:
    data, size = random_data(), 8
    settings: Any = {"shuffle": True, "drop_last": drop_last}
    alone = NeighborSampler(data, [2], size * world_size, **settings)
    ranks = [
        NeighborSampler(data, [2], size, rank=r, world_size=world_size, **settings)
        for r in range(world_size)
    ]
    assert {len(rank) for rank in ranks} == {len(alone)}
    for whole, *parts in zip(alone, *ranks, strict=True):
        shared = torch.cat([part.input_id for part in parts])
        assert torch.equal(shared, whole.input_id)
        # A seed has the same neighbours whoever draws them.
        drawn = [part.e_id[: part.num_sampled_edges[0]] for part in parts]
        assert torch.equal(torch.cat(drawn), whole.e_id)


def test_a_rank_without_seeds_has_an_empty_batch() -> None:
    data = random_data(num_nodes=9)
    sampler = NeighborSampler(data, [2, 2], 4, rank=0, world_size=2)
    batch = sampler.batch(0, 1)
    assert batch.batch_size == batch.num_nodes == batch.num_edges == 0
    assert batch.graph.for_layers(2, self_loops=True)[-1].num_dst == 0


def drawn_attributes(rng: random.Random, count: int, length: int) -> dict[str, Any]:
    """Attributes of so many nodes or edges by name, one of them perhaps of another."""
    names = ["x", "y", "pos", "train_mask"] if count == 12 else ["edge_attr", "y"]
    values = {}
    for name in rng.sample(names, rng.randint(1, len(names))):
        rows = length if rng.random() < 0.1 else count
        forms = [torch.arange(rows), np.arange(rows), list(range(rows))]
        values[name] = rng.choice(forms if name == "y" else forms[:1])
        if name == "x":
            values[name] = NodeFeatures(torch.arange(rows)[:, None].float())
    return values


def test_a_batch_has_the_rows_of_its_nodes_and_edges_or_there_is_none() -> None:
    refused = 0
    for seed in range(60):
        rng = random.Random(seed)
        edges = random_edges(12, 12, 40, seed)
        typed = rng.random() < 0.5
        data: Any = HeteroData() if typed else Data()
        nodes = data["a"] if typed else data
        relation = data["a", "to", "a"] if typed else data
        relation.edge_index, nodes.num_nodes = edges, 12
        length = rng.choice((1, 4, 11, 13, 39))
        of_nodes = drawn_attributes(rng, 12, length)
        of_edges = drawn_attributes(rng, 40, length)
        if not typed:
            of_edges.pop("y", None)
        for store, values in ((nodes, of_nodes), (relation, of_edges)):
            for name, value in values.items():
                store[name] = value
        lengths = {len(as_list(value)) for value in of_nodes.values()}
        wrong = lengths != {12} or {len(v) for v in of_edges.values()} - {40}
        settings: Any = {"seeds": "a"} if typed else {}
        if wrong:
            refused += 1
            with pytest.raises(UserError, match=f"has {length} rows, but there are"):
                NeighborSampler(data, [2, 2], 5, **settings)
            continue
        for batch in NeighborSampler(data, [2, 2], 5, **settings):
            ours = batch["a"] if typed else batch
            for name, value in of_nodes.items():
                rows = torch.tensor(as_list(value))[ours.n_id]
                assert torch.equal(torch.as_tensor(ours[name]).flatten(), rows), name
            links = batch["a", "to", "a"] if typed else batch
            for name, value in of_edges.items():
                rows = torch.tensor(as_list(value))[links.e_id]
                assert torch.equal(torch.as_tensor(links[name]), rows), name
    assert 10 < refused < 50


def as_list(value: Any) -> list[Any]:
    if isinstance(value, NodeFeatures):
        value = value.rows(torch.arange(value.size(0))).flatten()
    return value if isinstance(value, list) else value.tolist()


def test_masks_and_lists_are_seeds() -> None:
    data = random_data()
    mask = torch.zeros(200, dtype=torch.bool)
    mask[[3, 9, 150]] = True
    for seeds in (mask, [3, 9, 150], torch.tensor([3, 9, 150], dtype=torch.int32)):
        batch = NeighborSampler(data, [2], 4, seeds).batch(0, 0)
        assert batch.n_id[:3].tolist() == [3, 9, 150]


def test_edges_may_be_given_grouped_already() -> None:
    data = random_data()
    sampler = NeighborSampler(data, [4, 3], 32)
    topology = Topology.of(data.edge_index, 200)
    without = Data(x=data.x, y=data.y, edge_attr=data.edge_attr)
    other = NeighborSampler(without, [4, 3], 32, topology=topology)
    assert_equal(sampler.batch(0, 2), other.batch(0, 2))


def test_typed_edges_may_be_given_grouped_already() -> None:
    data, without = random_typed_data(), random_typed_data()
    sampler = NeighborSampler(data, [4, 3], 32, "paper")
    for kind in EDGE_TYPES:
        del without[kind]
    settings: Any = {"topology": sampler.topology}
    other = NeighborSampler(without, [4, 3], 32, "paper", **settings)
    ours, theirs = sampler.batch(0, 1), other.batch(0, 1)
    assert without.edge_types == []
    for kind in EDGE_TYPES:
        assert torch.equal(ours[kind].e_id, theirs[kind].e_id)
        assert torch.equal(ours[kind].edge_index, theirs[kind].edge_index)


def test_grouped_edges_of_another_graph_are_refused() -> None:
    other = Topology.of(random_edges(50, 50, 100), 50)
    with pytest.raises(
        UserError, match="topology has 50 source and 50 target nodes, b"
    ):
        NeighborSampler(random_data(), [2], 4, topology=other)
    typed = random_typed_data()
    with pytest.raises(UserError, match="topology must be a dict with a Topology"):
        NeighborSampler(typed, [2], 4, "paper", topology=other)
    with pytest.raises(UserError, match=r"topology has the edge types .* but the data"):
        NeighborSampler(typed, [2], 4, "paper", topology={EDGE_TYPES[0]: other})
    wrong: Any = {EDGE_TYPES[0]: other}
    with pytest.raises(UserError, match="topology must be a Topology for a graph with"):
        NeighborSampler(random_data(), [2], 4, topology=wrong)


def test_a_typed_graph_needs_edges_and_their_node_types() -> None:
    data = HeteroData()
    data["paper"].x = torch.zeros(3, 1)
    with pytest.raises(UserError, match="the graph has no edges"):
        NeighborSampler(data, [2], 1, "paper")
    data["author", "writes", "paper"].edge_index = torch.tensor([[0], [0]])
    with pytest.raises(UserError, match="the node type 'author', which the data does"):
        NeighborSampler(data, [2], 1, "paper")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be 1 or more, got 0"),
        ({"data": None}, "must be a Data or HeteroData .* got NoneType"),
        ({"seed": 1.5}, "seed must be a whole number of 64 bits, got 1.5"),
        ({"seeds": ("paper", None)}, "or a mask, got .'paper', None"),
        ({"device": "gpu"}, "device is 'gpu'; use 'cpu' or 'cuda'"),
        ({"seeds": [200]}, r"seed 200 does not exist: there are 200 nodes \(0..199\)"),
        ({"seeds": [-1]}, "seed -1 does not exist"),
        ({"seeds": [3, 4, 3]}, "seed 3 is given more than once"),
        ({"seeds": []}, "there are no seeds"),
        ({"seeds": torch.zeros(200, dtype=torch.bool)}, "there are no seeds"),
        ({"seeds": torch.zeros(7, dtype=torch.bool)}, r"mask of seeds has shape \[7\]"),
        ({"seeds": [0.5]}, "seeds must be a list of node numbers or a mask"),
        ({"fanout": [4, -2]}, r"fanout \[4, -2\] has the entry -2"),
        ({"fanout": [4, 2.5]}, "has the entry 2.5"),
        ({"fanout": [2**64]}, "has the entry 18446744073709551616"),
        ({"fanout": []}, r"one number for each hop, for example \[15, 10\], got \[\]"),
        ({"fanout": 5}, "one number for each hop"),
        ({"fanout": {("a", "to", "b"): [5]}}, "needs HeteroData"),
        ({"rank": 2, "world_size": 2}, "rank must be from 0 to world_size - 1 = 1"),
        ({"world_size": 0}, "world_size must be 1 or more"),
        ({"prefetch": -1}, "prefetch must be 0 or more, got -1"),
        ({"seed": 2**63}, "seed must be a whole number of 64 bits"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        NeighborSampler(
            **{"data": random_data(), "fanout": [2], "batch_size": 4, **settings}
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": None}, "needs the node type of the seeds"),
        ({"seeds": ("papers", [1])}, "no node type 'papers'; did you mean paper?"),
        ({"seeds": ("venue", [7])}, "there are 7 nodes of type 'venue'"),
        ({"fanout": {("paper", "cite", "paper"): [1]}}, "no edge type .* did you mean"),
        (
            {"fanout": {EDGE_TYPES[0]: [1, 1]}},
            r"no entry .*'writes'.* add one, \[0, 0\]",
        ),
        (
            {"fanout": {kind: [1] * (k + 1) for k, kind in enumerate(EDGE_TYPES)}},
            "the fanouts have 1 and 2 and 3 and 4 hops",
        ),
    ],
)
def test_wrong_typed_settings_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    usual = {"fanout": [2], "batch_size": 4, "seeds": ("paper", None)}
    with pytest.raises(UserError, match=message):
        NeighborSampler(random_typed_data(), **{**usual, **settings})


def test_a_graph_without_edges_or_with_wrong_ones_is_refused() -> None:
    with pytest.raises(UserError, match="the data has no edge_index"):
        NeighborSampler(Data(x=torch.zeros(3, 1)), [2], 1)
    wrong = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0], [3]]))
    with pytest.raises(UserError, match="refers to target node 3, but there are 3"):
        NeighborSampler(wrong, [2], 1)


def test_a_step_that_does_not_exist_is_refused() -> None:
    sampler = NeighborSampler(random_data(), [2], 100)
    with pytest.raises(UserError, match=r"no step 2: an epoch has 2 steps \(0..1\)"):
        sampler.batch(0, 2)
    for step in (-1, 3):
        with pytest.raises(UserError, match="start_step must be from 0 to 2"):
            sampler.set_epoch(0, step)
    with pytest.raises(UserError, match="epoch must be a whole number from 0, got -1"):
        sampler.batch(-1, 0)
    sampler.set_epoch(0, 2)
    assert list(sampler) == []


def test_all_edges_of_a_bipartite_type_may_be_missing() -> None:
    data = random_typed_data()
    data[EDGE_TYPES[3]].edge_index = random_edges(7, 120, 0)
    batch = NeighborSampler(data, [2, 2], 8, "paper").batch(0, 0)
    assert batch["venue"].n_id.numel() == 0
    assert batch[EDGE_TYPES[3]].edge_index.shape == (2, 0)
