"""The graphs of a sampled batch for the layers of a model, ready for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from tempergat.ops.gpu import schedule as schedules
from tempergat.ops.gpu.launching.launch import divide_up
from tempergat.ops.gpu.sampling.layers import FACTS, Batch, Layer, Sizes, group_layer
from tempergat.ops.gpu.schedule import Schedule
from tempergat.ops.graphs.graph import Graph, Rows


def loops_of(source: Tensor, target: Tensor) -> Tensor:
    """How many edges up to each one, itself included, are self-loops, int32."""
    return torch.cumsum(source == target, 0, dtype=torch.int32)


def layer_graphs(
    ends: tuple[Tensor, Tensor, Tensor],
    nodes_per_hop: Sequence[int],
    edges_per_hop: Sequence[int],
    depths: Sequence[int],
    *,
    self_loops: bool,
    training: bool,
) -> list[Graph]:
    """The graphs of a batch for some layers; waits for the device once.

    Args:
        ends: Source and target of each edge, and the pointer by target.
        nodes_per_hop: Number of seeds, then of new nodes in each hop.
        edges_per_hop: Number of edges in each hop.
        depths: How many layers there are after each of the layers; at most the number
            of hops.
        self_loops: Whether every target gets exactly one self-loop.
        training: Whether a backward pass will need the edges by source.
    """
    source, target, pointer = ends
    nodes = list(accumulate(nodes_per_hop, initial=0))
    edges = list(accumulate(edges_per_hop, initial=0))
    # Both begin at a multiple of 16 bytes, on which compiled kernels rely.
    room = divide_up(len(nodes), 4) * 4
    counts = torch.tensor(nodes + [0] * (room - len(nodes)) + edges, dtype=torch.int32)
    counts = counts.to(source.device, non_blocking=True)
    loops = loops_of(source, target) if self_loops else None
    per_hop = (counts[:room], counts[room:], len(edges_per_hop))
    batch = Batch(pointer, source, target, *per_hop, loops)
    sizes = [
        Sizes(
            nodes[min(depth + 2, len(nodes) - 1)],
            nodes[depth + 1],
            edges[min(depth + 1, len(edges) - 1)],
        )
        for depth in depths
    ]
    facts = source.new_empty(len(depths), FACTS)
    layers = [
        group_layer(
            batch, depth, size, row, looped=self_loops, both=training, padded=False
        )
        for depth, size, row in zip(depths, sizes, facts.unbind(), strict=True)
    ]
    return [
        _exact_graph(layer, size, numbers, self_loops)
        for layer, size, numbers in zip(layers, sizes, facts.tolist(), strict=True)
    ]


def _exact_graph(
    layer: Layer, sizes: Sizes, facts: list[int], self_loops: bool
) -> Graph:
    by_source = layer.by_source
    if self_loops:
        # Without the edges that the self-loops replace.
        length = facts[3] + sizes.num_dst
        if by_source is not None:
            by_source = (by_source[0], *_first(by_source[1:], length))
        layer = layer._replace(
            ends=_first(layer.ends, length),
            by_target=(layer.by_target[0], *_first(layer.by_target[1:], length)),
            by_source=by_source,
            slots=layer.slots[:length],
        )
    target_plan = _exact_schedule(*layer.target_plan, *facts[:3])
    source_plan = _exact_schedule(*layer.source_plan, *facts[4:7])
    return _graph(layer, sizes, target_plan, source_plan, self_loops)


def _first(tensors: Sequence[Tensor], length: int) -> tuple[Tensor, ...]:
    return tuple(x[:length] for x in tensors)


def _exact_schedule(
    items: Tensor, merges: Tensor, num_items: int, num_partials: int, num_merges: int
) -> Schedule:
    """The schedule, given how many items, partial results and merges there are."""
    used = items[merges.size(0) - num_items :]
    return Schedule(used, merges[:num_merges], num_partials)


def _padded_schedule(items: Tensor, merges: Tensor) -> Schedule:
    """The schedule without knowing what was cut.

    Items that do nothing write to one more partial result. Merges that do nothing write
    zeros to the last row, which must not be in use.
    """
    extra = merges.size(0)
    return Schedule(items, merges, 2 * extra + 1 if extra else 0)


def padded_graph(
    batch: Batch, depth: int, sizes: Sizes, *, self_loops: bool, training: bool
) -> Graph:
    """The graph of a layer for CUDA graphs: the same shapes for every batch.

    Rows after those in use have no edges, and edges after those in use belong to no
    row. The last source row must not be in use.

    Args:
        batch: The batch.
        depth: How many layers there are after this one.
        sizes: What the graph has room for.
        self_loops: Whether every target in use gets exactly one self-loop.
        training: Whether a backward pass will need the edges by source.
    """
    facts = batch.source.new_empty(FACTS)
    layer = group_layer(
        batch, depth, sizes, facts, looped=self_loops, both=training, padded=True
    )
    plans = [_padded_schedule(*x) for x in (layer.target_plan, layer.source_plan)]
    graph = _graph(layer, sizes, plans[0], plans[1], self_loops)
    graph.padded = True
    return graph


def _graph(
    layer: Layer,
    sizes: Sizes,
    target_plan: Schedule,
    source_plan: Schedule,
    self_loops: bool,
) -> Graph:
    by_target = Rows(*layer.by_target)
    schedules.keep_schedule(by_target.pointer, target_plan)
    by_source = None
    if layer.by_source is not None:
        by_source = Rows(*layer.by_source)
        schedules.keep_schedule(by_source.pointer, source_plan)
        schedules.keep_slots_by_source(by_target, by_source, layer.slots)
    src, dst, edge_id = layer.ends
    return Graph.ready(
        src,
        dst,
        edge_id,
        (sizes.num_src, sizes.num_dst),
        by_target=by_target,
        by_source=by_source,
        num_edges=sizes.num_edges,
        self_loops=self_loops,
    )
