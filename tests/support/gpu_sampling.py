"""Compares what the GPU kernels sample with the reference.

The kernels work on tensors of a GPU, or of the CPU in Triton's interpreter.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempergat.ops import Graph, Relation
from tempergat.ops.gpu import sampling as kernels
from tempergat.ops.gpu import schedule as schedules
from tempergat.sampling import Key, LayerGraphs, Topology, engine, reference
from tempergat.sampling.engine import sample_on_gpu
from tests.sampling.graphs import assert_same_hops, of_one_type


class Case(NamedTuple):
    """A random graph, with multi-edges, and what is sampled from it."""

    nodes: int
    edges: int
    fanout: list[int]
    seeds: int


# Two nodes have most of the edges, so that rows are cut; many nodes have none.
CASES = {
    "two hops": Case(50, 400, [3, 2], 8),
    "three hops": Case(150, 1500, [15, 10, 5], 5),
    "no edges": Case(5, 0, [2, 2], 3),
    "one node": Case(1, 2, [1], 1),
    "most nodes isolated": Case(300, 20, [4, 4], 40),
    "nothing drawn": Case(130, 900, [4, 0, 3], 5),
    "wide": Case(40, 2000, [70, 3], 2),
    "all": Case(33, 300, [-1, 2, -1], 2),
    "hub": Case(300, 2000, [63, 20], 100),
}


def topology_of(case: Case) -> Topology:
    """The case's graph."""
    generator = torch.Generator().manual_seed(case.nodes)
    ends = torch.rand(2, case.edges, generator=generator).pow(3) * case.nodes
    return Topology.of(ends.long(), case.nodes)


def seeds_of(case: Case) -> Tensor:
    """The case's seeds, in no order."""
    generator = torch.Generator().manual_seed(1)
    return torch.randperm(case.nodes, generator=generator)[: case.seeds]


def check_sample(case: Case, replace: bool, device: str) -> None:
    """Asserts that the kernels sample the reference's batch."""
    topology, rest = topology_of(case), (seeds_of(case), case.fanout)
    key = Key(7, 3, case.edges)
    expected = reference.sample(*of_one_type(topology, *rest), key, replace)
    moved = of_one_type(topology.to(device), *rest)
    assert_same_hops(sample_on_gpu(kernels, *moved, key, replace), expected)


def check_many_samples(case: Case) -> None:
    """Asserts that all batches are the reference's, also when they are a CUDA graph."""
    topology = topology_of(case)
    moved = topology.to("cuda")
    for step in range(8):
        # The last batches are short.
        seeds = seeds_of(case)[: case.seeds if step < 6 else case.seeds // step]
        key, rest = Key(5, 0, step), (seeds, case.fanout)
        expected = reference.sample(*of_one_type(topology, *rest), key, False)
        ours = sample_on_gpu(kernels, *of_one_type(moved, *rest), key, False)
        assert_same_hops(ours, expected)
    (captured,) = engine._captures[moved.pointer].values()
    assert ("sampler" in captured) == (case.seeds > 0)
    # The sampler does not keep the graph alive.
    count = len(engine._captures)
    del moved
    assert len(engine._captures) == count - 1


def check_typed_sample(device: str) -> None:
    """Asserts that the kernels sample the reference's batch of a typed graph."""
    sizes = [60, 40, 5]
    ends = [(0, 0), (1, 0), (0, 2), (2, 0), (0, 1)]
    generator = torch.Generator().manual_seed(0)
    relations = []
    for kinds in ends:
        edges = [
            torch.randint(sizes[kind], (200,), generator=generator) for kind in kinds
        ]
        both = (sizes[kinds[0]], sizes[kinds[1]])
        relations.append(Topology.of(torch.stack(edges), both).relation(*kinds))
    fanout = [[3, 2, number] for number in range(len(ends))]
    rest: Any = (sizes, 1, torch.tensor([7, 3]), fanout, Key(1, 2, 3), False)
    moved = [
        Relation(pointer.to(device), source.to(device), *kinds)
        for pointer, source, *kinds in relations
    ]
    ours = sample_on_gpu(kernels, moved, *rest)
    assert_same_hops(ours, reference.sample(relations, *rest))


def check_layers(case: Case, self_loops: bool, device: str) -> None:
    """Asserts that layers get the reference's graphs, and schedules that serve them."""
    key = Key(7, 3, case.edges)
    graph = of_one_type(topology_of(case), seeds_of(case), case.fanout)
    hops = reference.sample(*graph, key, False)
    assert hops.pointer is not None
    parts = (hops.source[0], hops.target[0], hops.pointer)
    count = len(case.fanout) + 1
    for training in (True, False):
        expected = LayerGraphs.of_hops(hops).for_layers(count, self_loops)
        graphs = kernels.layer_graphs(
            tuple(x.to(device) for x in parts),
            hops.nodes_per_hop[0], hops.edges_per_hop[0],
            [min(depth, count - 1) for depth in range(count - 1, -1, -1)],
            self_loops=self_loops, training=training,
        )  # fmt: skip
        for graph, plain in zip(graphs, expected, strict=True):
            _compare_graphs(graph, plain, training)


def _compare_graphs(graph: Graph, plain: Graph, training: bool) -> None:
    for name in ("num_src", "num_dst", "num_edges", "self_loops"):
        assert getattr(graph, name) == getattr(plain, name)
    pairs = [(getattr(graph, n), getattr(plain, n)) for n in ("src", "dst", "edge_id")]
    pairs += zip(graph.by_target, plain.by_target, strict=True)
    check_schedule(graph.by_target.pointer, padded=False)
    if training:
        assert graph._by_source is not None
        pairs += zip(graph._by_source, plain.by_source, strict=True)
        check_schedule(graph._by_source.pointer, padded=False)
        slots, _ = schedules.slots_by_source(graph.by_target, graph._by_source)
        expected, _ = schedules.slots_by_source(plain.by_target, plain.by_source)
        pairs.append((slots, expected))
    for ours, wanted in pairs:
        assert torch.equal(ours.cpu(), wanted)
        assert ours.data_ptr() % 16 == 0


def check_padded_layers(case: Case, self_loops: bool, device: str) -> None:
    """Asserts that padded graphs are the plain ones, with rows that have no edges."""
    key = Key(7, 3, case.edges)
    topology, hops = topology_of(case), len(case.fanout)
    # One seed is missing at the end of the batch.
    seeds = torch.cat([seeds_of(case), torch.tensor([-1])]).to(device)
    moved = of_one_type(topology.to(device), seeds, case.fanout)
    number = torch.tensor([key.of_step()], device=device)
    sampled = kernels.sample(*moved, number, False)
    source, target = sampled.source[0], sampled.target[0]
    graph = of_one_type(topology, seeds_of(case), case.fanout)
    plain = reference.sample(*graph, key, False)
    batch = kernels.Batch(
        sampled.pointer[0], source, target, sampled.nodes[0], sampled.edges[0], hops,
        kernels.loops_of(source, target),
    )  # fmt: skip
    expected = LayerGraphs.of_hops(plain).for_layers(hops, self_loops)
    for depth, wanted in enumerate(reversed(expected)):
        # No more than there is in the arrays of the batch.
        edges = min(wanted.num_edges + 70, source.size(0))
        sizes = kernels.Sizes(wanted.num_src + 9, wanted.num_dst + 5, edges)
        padded = kernels.padded_graph(
            batch, depth, sizes, self_loops=self_loops, training=True
        )
        assert padded._by_source is not None
        for rows, plain_rows in (
            (padded.by_target, wanted.by_target),
            (padded._by_source, wanted.by_source),
        ):
            used = plain_rows.pointer.size(0)
            assert torch.equal(rows.pointer[:used].cpu(), plain_rows.pointer)
            assert bool((rows.pointer[used:] == rows.pointer[used - 1]).all())
            for ours, values in zip(rows[1:], plain_rows[1:], strict=True):
                assert torch.equal(ours[: values.size(0)].cpu(), values)
            check_schedule(rows.pointer, padded=True)


def check_schedule(pointer: Tensor, padded: bool) -> None:
    """Asserts that a kept schedule serves every slot of every row once.

    Args:
        pointer: The rows.
        padded: Whether the schedule may have items and merges that do nothing.
    """
    plan = schedules._made.find(pointer, "schedule")
    ends = pointer.tolist()
    parts: dict[int, list[tuple[int, int, int]]] = {}
    for row, start, end, partial in plan.items.tolist():
        if padded and partial == plan.num_partials - 1 >= 0:
            assert start == end
        else:
            parts.setdefault(row, []).append((start, end, partial))
    merges = {
        row: range(first, first + count)
        for row, first, count in plan.merges.tolist()
        if count > 0 or not padded
    }
    partials = []
    for row, (start, end) in enumerate(pairwise(ends)):
        served = sorted(parts.pop(row))
        borders = [start] + [part[1] for part in served]
        assert [part[0] for part in served] == borders[:-1]
        assert borders[-1] == end
        numbers = [part[2] for part in served]
        assert numbers == (list(merges.pop(row)) if len(served) > 1 else [-1])
        partials += [number for number in numbers if number >= 0]
    assert not parts
    assert not merges
    assert len(set(partials)) == len(partials) <= plan.num_partials
