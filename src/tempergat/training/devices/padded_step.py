"""A step of sampled training in arrays of fixed size, as a CUDA graph needs it.

Rows and edges behind those of a batch belong to no edge and to no row, so the loss and
the gradients are those of a plain step up to rounding.

A batch that does not fit changes nothing: it raises a flag on the device, and this step
and all later ones leave the model, the optimizer and the counters as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tempergat.ops import Graph, fold_in, fold_numbers
from tempergat.training.graphs.batches import Batch

if TYPE_CHECKING:
    from tempergat.training.loop import Loop

# The label of seeds that a short batch does not have; the loss ignores it.
_NO_LABEL = -100


class PaddedStep:
    """The next step of an epoch, whatever its batch; reads no value back.

    Args:
        loop: What is trained.
        kernels: The module of the GPU kernels that sample.
        most_nodes: For how many nodes up to each hop there is room, the seeds first.
            The last row of all but the seeds must stay free.
        most_edges: For how many edges up to each hop there is room.

    Attributes:
        step: The number of the step in the epoch, 0-d int64.
        misfit: Whether a batch did not fit, 0-d float32; 1 until it is set to 0.
    """

    def __init__(
        self,
        loop: Loop,
        kernels: Any,
        most_nodes: tuple[int, ...],
        most_edges: tuple[int, ...],
    ) -> None:
        device, sampler = loop.device, loop.batches.sampler
        self._loop, self._kernels = loop, kernels
        self._room = most_nodes, most_edges
        self._topology = loop.batches.graph.topology
        self._fanout = list(sampler.fanout)
        self._batch = most_nodes[0]
        self._has_loops = _has_self_loops(self._topology.pointer, self._topology.source)
        places = len(sampler) * self._batch
        self._seeds = torch.full((places,), -1, dtype=torch.int64, device=device)
        self._labels = torch.full_like(self._seeds, _NO_LABEL)
        self._epoch_key = torch.zeros(1, dtype=torch.int64, device=device)
        self._first_step = torch.zeros((), dtype=torch.int64, device=device)
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.misfit = torch.zeros((), device=device)
        hops = len(self._fanout)
        # The seeds always fit. Of other nodes, the last row stays free.
        nodes = (0, 2**30, *(count - 1 for count in most_nodes[1:]))
        self._most_nodes = torch.tensor(nodes, dtype=torch.int32, device=device)
        edges = torch.tensor((0, *most_edges), dtype=torch.int32)
        self._most_edges = edges.to(device)
        assert len(nodes) == hops + 2

    def begin_epoch(self) -> None:
        """Takes over the order of the loop's epoch, and its next step."""
        loop, task = self._loop, self._loop.task
        epoch, sampler = loop.epochs_done, loop.batches.sampler
        order = sampler.order(epoch)
        examples = task.examples
        seeds = examples.numbers["train"].to(order.device)[order]
        labels = examples.targets["train"].to(order.device)[order]
        self._seeds[: order.size(0)] = seeds
        self._labels[: order.size(0)] = labels
        self._epoch_key.fill_(fold_numbers(loop.runs.seeds[0], epoch))
        self._first_step.fill_(epoch * len(sampler))
        self.step.fill_(loop.steps_done)

    def run(self) -> None:
        """Does the step, unless a batch did not fit."""
        loop, optimizer = self._loop, self._loop.optimizer
        graphs, nodes, labels, num_seeds = self.sample()
        x = loop.batches.graph.features.rows(nodes)
        number = self._first_step + self.step
        optimizer.zero_grad()
        losses, _ = loop.backward(Batch(x, graphs, labels), number)
        fits = self.misfit == 0
        # The optimizer then changes nothing, as after an overflow of float16.
        optimizer.found_inf = self.misfit  # type: ignore[attr-defined]
        try:
            loop.update(number)
        finally:
            del optimizer.found_inf  # type: ignore[attr-defined]
        loop.add_loss(torch.where(fits, losses, 0.0), num_seeds * fits)
        self.step += fits

    def sample(self) -> tuple[tuple[Graph, ...], Tensor, Tensor, Tensor]:
        """The layers' graphs, nodes, labels and number of seeds of the batch."""
        kernels, hops = self._kernels, len(self._fanout)
        most_nodes, most_edges = self._room
        device = self._seeds.device
        places = self.step * self._batch + torch.arange(self._batch, device=device)
        seeds = self._seeds.index_select(0, places)
        labels = self._labels.index_select(0, places)
        topology = self._topology
        relation = kernels.Relation(topology.pointer, topology.source, 0, 0)
        key = fold_in(self._epoch_key, self.step)
        sampled = kernels.sample(
            [relation], [topology.num_src], 0, seeds, [self._fanout], key, False
        )
        nodes, edges = sampled.nodes[0], sampled.edges[0]
        exceeds = (nodes[: hops + 2] > self._most_nodes).any()
        exceeds |= (edges[: hops + 1] > self._most_edges).any()
        self.misfit.copy_(torch.maximum(self.misfit, exceeds.float()))
        # Without room for the batch, its graphs are empty.
        fits = (self.misfit == 0).int()
        nodes, edges = nodes * fits, edges * fits
        source, target = sampled.source[0], sampled.target[0]
        loops = kernels.loops_of(source, target) if self._has_loops else None
        batch = kernels.Batch(
            sampled.pointer[0], source, target, nodes, edges, hops, loops
        )
        model = self._loop.runs.model
        self_loops = any(conv.add_self_loops for conv in model.convs)
        graphs = {}
        for depth in range(min(len(model.convs), hops + 1)):
            outer = min(depth + 1, hops)
            sizes = kernels.Sizes(
                most_nodes[outer], most_nodes[depth], most_edges[min(depth, hops - 1)]
            )
            graph = kernels.padded_graph(
                batch, depth, sizes, self_loops=self_loops, training=True
            )
            graph.in_use = (nodes[outer + 1], nodes[depth + 1])
            graphs[depth] = graph
        layers = range(len(model.convs) - 1, -1, -1)
        in_order = tuple(graphs[min(depth, hops)] for depth in layers)
        count = in_order[0].num_src
        outermost = in_order[0].in_use
        assert outermost is not None
        drawn, rows = sampled.n_id[0], torch.arange(count, device=device)
        # There may be more room than nodes.
        drawn = drawn[:count] if count <= drawn.size(0) else drawn[rows % drawn.size(0)]
        n_id = torch.where(rows < outermost[0], drawn, 0)
        return in_order, n_id, labels, nodes[1]


def _has_self_loops(pointer: Tensor, source: Tensor) -> bool:
    """Whether an edge of the graph leads from a node to itself."""
    # In parts, because the edges of a large graph may fill half of the memory.
    for first in range(0, source.size(0), 1 << 26):
        part = source[first : first + (1 << 26)]
        slots = torch.arange(first, first + part.size(0), device=pointer.device)
        target = torch.searchsorted(pointer, slots, right=True) - 1
        if bool((target == part).any()):
            return True
    return False
