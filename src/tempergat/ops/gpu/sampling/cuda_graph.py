"""All hops of a batch as one CUDA graph, for batches of one size and more of them.

Starting the kernels of a batch takes the host several times as long as the device needs
to run them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from tempergat.ops.gpu.sampling.hops import Bounds, Sampled, sample
from tempergat.ops.graphs.graph import Relation

# A captured sampler keeps a number for every node of the graph.
_MOST_NODES = 1 << 26


class CapturedSampler:
    """Samples batches of at most so many seeds; each result has its own memory.

    Args:
        relation: The edges.
        num_nodes: Number of nodes.
        batch_size: The most seeds of a batch.
        fanout: How many neighbours are drawn in each hop; -1 takes all.
        replace: Whether a neighbour may be drawn more than once.
    """

    def __init__(
        self,
        relation: Relation,
        num_nodes: int,
        batch_size: int,
        fanout: Sequence[int],
        replace: bool,
    ) -> None:
        device = relation.pointer.device
        self.batch_size, self._hops = batch_size, len(fanout)
        # The CUDA graph reads their memory. Tensors of its own, because the
        # sampler is dropped with the relation's.
        self._memory = relation.pointer.detach(), relation.source.detach()
        self._seeds = torch.full((batch_size,), -1, dtype=torch.int64, device=device)
        self._key = torch.zeros(1, dtype=torch.int64, device=device)
        self._lock = threading.Lock()
        self._graph = torch.cuda.CUDAGraph()
        arguments = ([relation], [num_nodes], 0, self._seeds, [fanout], self._key)
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        current = torch.cuda.current_stream(device)
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            # Compiles the kernels.
            sample(*arguments, replace)
        current.wait_stream(stream)
        # Other threads may use the device in the meantime.
        with torch.cuda.graph(
            self._graph, stream=stream, capture_error_mode="thread_local"
        ):
            self._made = sample(*arguments, replace)

    def sample(
        self, seeds: Tensor, key: int
    ) -> tuple[Sampled, list[list[int]], list[list[int]]]:
        """The batch, in arrays of its size, and what `Sampled.read` returns."""
        count = seeds.size(0)
        with self._lock, torch.cuda.device(seeds.device):
            self._seeds[:count] = seeds
            if count < self.batch_size:
                self._seeds[count:] = -1
            self._key.fill_(key)
            self._graph.replay()
            made = self._made
            nodes, edges = made.read(self._hops)
            num_edges = edges[0][-1]
            own = Sampled(
                [made.n_id[0][: nodes[0][-1]].clone()],
                [made.pointer[0][: nodes[0][-2] + 1].clone()],
                [made.source[0][:num_edges].clone()],
                [made.target[0][:num_edges].clone()],
                [made.slot[0][:num_edges].clone()],
                made.counts,
            )
        return own, nodes, edges


def can_capture(
    relation: Relation,
    num_nodes: int,
    batch_size: int,
    fanout: Sequence[int],
    replace: bool,
) -> bool:
    """Whether such a sampler can be made now."""
    if torch.cuda.is_current_stream_capturing():
        return False
    bounds = Bounds([relation], [num_nodes], 0, batch_size, [fanout], replace)
    bounds.add_all()
    return bounds.are_small and num_nodes <= _MOST_NODES
