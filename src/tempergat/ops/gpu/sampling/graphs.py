"""The graphs of a sampled batch for the layers of a model, ready for the kernels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tempergat.ops.gpu import schedule as schedules
from tempergat.ops.gpu.sampling.layers import FACTS, Batch, Layer, Sizes, group_layer
from tempergat.ops.gpu.schedule import Schedule
from tempergat.ops.graph import Graph, Rows


def loops_of(source: Tensor, target: Tensor) -> Tensor:
    """How many edges up to each one, itself included, are self-loops, int32."""
    return torch.cumsum(source == target, 0, dtype=torch.int32)


def layer_graphs(
    batch: Batch,
    depths: Sequence[int],
    sizes: Sequence[Sizes],
    *,
    self_loops: bool,
    training: bool,
) -> list[Graph]:
    """Graphs of a batch of known size; waits for the device once.

    Args:
        batch: The batch.
        depths: How many layers there are after each of the layers.
        sizes: The sizes of each layer's graph: exactly these.
        self_loops: Whether every target gets exactly one self-loop.
        training: Whether a backward pass will need the edges by source.
    """
    facts = batch.source.new_empty(len(depths), FACTS)
    layers = [
        group_layer(
            batch, depth, size, row, looped=self_loops, both=training, padded=False
        )
        for depth, size, row in zip(depths, sizes, facts.unbind(), strict=True)
    ]
    return [
        _exact_graph(layer, size, found, self_loops)
        for layer, size, found in zip(layers, sizes, facts.tolist(), strict=True)
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
    target_plan = layer.target_plan.exactly(*facts[:3])
    source_plan = layer.source_plan.exactly(*facts[4:7])
    return _graph(layer, sizes, target_plan, source_plan, self_loops)


def _first(tensors: Sequence[Tensor], length: int) -> tuple[Tensor, ...]:
    return tuple(x[:length] for x in tensors)


def padded_graph(
    batch: Batch, depth: int, sizes: Sizes, *, self_loops: bool, training: bool
) -> Graph:
    """The graph of a layer for CUDA graphs: the same shapes for every batch.

    Rows behind those in use have no edges, and edges behind those in use belong to no
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
    plans = layer.target_plan.padded(), layer.source_plan.padded()
    graph = _graph(layer, sizes, *plans, self_loops)
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
