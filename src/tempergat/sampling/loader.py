"""The sampler as users see it: a loader of batches."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType

from tempergat.base import UserError
from tempergat.sampling import engine
from tempergat.sampling.batches import make_batch
from tempergat.sampling.draws import Key, shuffled
from tempergat.sampling.inputs import (
    check_data_and_numbers,
    check_epoch,
    check_rows,
    checked_device,
    checked_fanout,
    checked_seeds,
    checked_typed_fanout,
    num_nodes_of,
    topologies_of,
    topology_of,
    typed_seeds,
)
from tempergat.sampling.layer_graphs import LayerGraphs
from tempergat.sampling.topology import Topology

T = TypeVar("T")
# What a graph without types has in place of them.
_NO_TYPE = ""
_NO_EDGE_TYPE = (_NO_TYPE, _NO_TYPE, _NO_TYPE)


class NeighborSampler:
    """Batches of seeds with sampled neighbours, in PyG's form.

    A batch is a ``Data`` or ``HeteroData`` with the fields of PyG's
    ``NeighborLoader``: ``n_id`` (the seeds first), ``e_id``, ``input_id``,
    ``batch_size``, ``num_sampled_nodes``, ``num_sampled_edges``, and the node and edge
    attributes of the data for its nodes and edges. ``trim_to_layer`` takes it. Its
    ``graph``, a `LayerGraphs`, has the edges sorted for the layers.

    The draws are a hash of seed, epoch, step, hop, edge type, node and draw: the same
    batches come out on every device, for any number of threads, and in an epoch that
    is resumed.

    Args:
        data: The whole graph. Features that are not a tensor in memory may be
            `NodeFeatures`; then set ``data.num_nodes``.
        fanout: How many neighbours of a node are drawn in each hop, -1 for all; with
            ``HeteroData`` also a dict with a list for each edge type.
        batch_size: Number of seeds in a batch.
        seeds: The nodes to make batches of: node numbers or a mask, None for all. With
            ``HeteroData`` a node type, or a pair of a node type and nodes.
        replace: Whether a neighbour may be drawn more than once.
        shuffle: Whether every epoch has another order of the seeds.
        drop_last: Whether a last batch that is too short is left out.
        seed: The seed of all draws.
        training: Whether a backward pass will need the layers' edges by source.
        device: Where batches are made; None for the device of the edges.
        rank: In training over several processes, which of them this is. The processes
            share each global batch of ``batch_size * world_size`` seeds.
        world_size: Number of these processes.
        prefetch: How many batches are made ahead in the background, by as many
            threads, but not more than torch has.
        transform: Called with every batch, in the background too; the sampler yields
            what it returns.
        topology: The edges grouped by target already, by edge type with
            ``HeteroData``; ``data`` then needs no ``edge_index``.

    Raises:
        UserError: The seeds, the fanout or a number does not fit the graph.
    """

    def __init__(
        self,
        data: Data | HeteroData,
        fanout: Sequence[int] | Mapping[EdgeType, Sequence[int]],
        batch_size: int,
        seeds: Any = None,
        *,
        replace: bool = False,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        training: bool = True,
        device: torch.device | str | None = None,
        rank: int = 0,
        world_size: int = 1,
        prefetch: int = 2,
        transform: Callable[[Any], Any] | None = None,
        topology: Topology | dict[EdgeType, Topology] | None = None,
    ) -> None:
        check_data_and_numbers(data, batch_size, rank, world_size, prefetch, seed)
        self.data, self.training, self.replace = data, training, replace
        self.seed, self.prefetch, self.transform = seed, prefetch, transform
        if isinstance(data, HeteroData):
            self.seed_type, seeds = typed_seeds(data, seeds)
            self._num_nodes = {k: num_nodes_of(data[k]) for k in data.node_types}
            topologies = topologies_of(data, self._num_nodes, topology)
            self.fanout: Any = checked_typed_fanout(fanout, list(topologies))
            for node_type, number in self._num_nodes.items():
                check_rows(data[node_type], {"nodes": number}, f" of '{node_type}'")
            for kind in data.edge_types:
                number = topologies[kind].num_edges
                check_rows(data[kind], {"edges": number}, f" of {kind!r}")
        else:
            self.seed_type, count = _NO_TYPE, num_nodes_of(data)
            self._num_nodes = {_NO_TYPE: count}
            self.fanout = checked_fanout(fanout)
            grouped = topology_of(data, count, topology)
            topologies = {_NO_EDGE_TYPE: grouped}
            check_rows(data._store, {"nodes": count, "edges": grouped.num_edges})
        self.device = next(iter(topologies.values())).device
        if device is not None:
            self.device = checked_device(device)
        if self.device.type == "cuda":
            # The kernels of a GPU sample from its own memory.
            topologies = {k: t.to(self.device) for k, t in topologies.items()}
        self._topologies = topologies
        count = self._num_nodes[self.seed_type]
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        self.rank, self.world_size = rank, world_size
        self._seeds = checked_seeds(seeds, count, self.seed_type).to(self.device)
        self.epoch = self.start_step = 0
        self._order: tuple[int, Tensor] | None = None
        # The layers' graphs that were asked for, which later batches bring along.
        self._wanted: set[tuple[int, bool]] = set()

    @property
    def topology(self) -> Any:
        """The edges grouped by target, by edge type with ``HeteroData``."""
        if isinstance(self.data, HeteroData):
            return self._topologies
        return self._topologies[_NO_EDGE_TYPE]

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        count, whole = self._seeds.size(0), self.batch_size * self.world_size
        return count // whole if self.drop_last else -(-count // whole)

    def set_epoch(self, epoch: int, start_step: int = 0) -> None:
        """Chooses the epoch of the next iteration, and the step it begins with.

        Raises:
            UserError: It is no epoch, or has no such step.
        """
        check_epoch(epoch)
        if not 0 <= start_step <= len(self):
            raise UserError(
                f"start_step must be from 0 to {len(self)}, the steps of an epoch, got "
                f"{start_step}"
            )
        self.epoch, self.start_step = epoch, start_step

    def __iter__(self) -> Iterator[Any]:
        """The batches of the current epoch; the next iteration is the next epoch."""
        epoch, start = self.epoch, self.start_step
        self.set_epoch(epoch + 1)
        order = self.order(epoch)
        return prefetched(
            lambda step: self._make(order, epoch, step),
            range(start, len(self)),
            # A GPU works in the background anyway.
            self.prefetch if self.device.type == "cpu" else 0,
            max(1, min(self.prefetch, torch.get_num_threads())),
        )

    def batch(self, epoch: int, step: int) -> Any:
        """One batch of any epoch.

        Raises:
            UserError: It is no epoch, or has no such step.
        """
        check_epoch(epoch)
        if not 0 <= step < len(self):
            raise UserError(
                f"there is no step {step}: an epoch has {len(self)} steps "
                f"(0..{len(self) - 1})"
            )
        return self._make(self.order(epoch), epoch, step)

    def order(self, epoch: int) -> Tensor:
        """The seeds' places in the order of an epoch, int64; the last one is kept."""
        if self._order is None or self._order[0] != epoch:
            count = self._seeds.size(0)
            order = torch.arange(count)
            if self.shuffle:
                order = shuffled(self.seed, epoch, count)
            self._order = (epoch, order.to(self.device))
        return self._order[1]

    def _places(self, order: Tensor, step: int) -> Tensor:
        """The places among the seeds that this rank's batch of a step has.

        The ranks share a global batch: rank 0 has its first seeds. So the batches of an
        epoch do not depend on who makes them, and every seed is in exactly one rank's
        batch. Where the last global batch is too short for all, a rank may have a batch
        without seeds.
        """
        whole = self.batch_size * self.world_size
        batch = order[step * whole : (step + 1) * whole]
        first, last = (
            batch.size(0) * part // self.world_size
            for part in (self.rank, self.rank + 1)
        )
        return batch[first:last]

    def _make(self, order: Tensor, epoch: int, step: int) -> Any:
        """The flow of a batch: seeds, hops, layer graphs, fields."""
        typed = isinstance(self.data, HeteroData)
        node_types, edge_types = list(self._num_nodes), list(self._topologies)
        places = self._places(order, step)
        hops = engine.sample(
            [
                topology.relation(node_types.index(kind[0]), node_types.index(kind[2]))
                for kind, topology in self._topologies.items()
            ],
            list(self._num_nodes.values()),
            node_types.index(self.seed_type),
            self._seeds[places],
            list(self.fanout.values()) if typed else [self.fanout],
            Key(self.seed, epoch, step),
            self.replace,
        )
        types = (node_types, edge_types) if typed else ()
        graph = LayerGraphs.of_hops(hops, *types, training=self.training)
        batch = make_batch(
            self.data, self._topologies, hops, self.seed_type, places, graph
        )
        graph.prepare(self._wanted)
        return batch if self.transform is None else self.transform(batch)

    def __repr__(self) -> str:
        return (
            f"NeighborSampler(seeds={self._seeds.size(0)}, fanout={self.fanout}, "
            f"batch_size={self.batch_size})"
        )


def prefetched(
    make: Callable[[int], T], steps: Iterable[int], ahead: int, threads: int
) -> Iterator[T]:
    """Yields ``make(step)`` for each step, in order.

    An error in a thread is raised where its result would have been yielded. When the
    iterator is dropped, the threads end.

    Args:
        make: Called in the threads.
        steps: What to call it with.
        ahead: How many results are made ahead; 0 makes them in the caller's thread.
        threads: Number of threads.
    """
    if ahead == 0:
        yield from map(make, steps)
        return
    process, rest = os.getpid(), iter(steps)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tempergat-sampler")
    try:
        waiting: deque[Future[T]] = deque(
            pool.submit(make, step) for step in islice(rest, ahead)
        )
        while waiting:
            if os.getpid() != process:
                raise UserError(
                    "an iteration over a sampler cannot go on in a forked process, "
                    "which has none of its threads; begin a new one there"
                )
            done = waiting.popleft().result()
            waiting.extend(pool.submit(make, step) for step in islice(rest, 1))
            yield done
    finally:
        # A forked process has no threads to wait for.
        own = os.getpid() == process
        pool.shutdown(wait=own, cancel_futures=own)
