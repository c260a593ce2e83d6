"""Batches of many small graphs, gathered from a set that is concatenated once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tempergat.base import UserError, counted, shown
from tempergat.ops import tensor_cache
from tempergat.sampling.draws import shuffled
from tempergat.sampling.inputs import (
    check_epoch,
    check_number,
    check_seed,
    checked_device,
)
from tempergat.sampling.small_graphs.graph_set import GraphSet
from tempergat.sampling.small_graphs.members import members_of
from tempergat.sampling.small_graphs.padding import (
    PaddedSize,
    levels_of,
    padded_batch,
    padded_size,
)


class GraphLoader:
    """Batches of graphs, in the place of PyG's ``DataLoader``.

    It yields PyG's ``Batch`` objects with what ``DataLoader`` yields. The graphs are
    concatenated once, and a batch is gathered from them in one call. Our layers find
    the edges of a batch sorted already.

    In training over several processes (`torch.distributed`) each makes its part of
    every global batch of ``batch_size`` times the number of processes. Where the last
    one has fewer graphs than there are processes, some repeat its first graph.

    Args:
        dataset: A list of ``Data``, a ``Dataset``, or a ``Subset`` of one. The tensors
            of an ``InMemoryDataset`` are used as they are, also where they are mapped
            from a file. They must not change while the loader is used.
        batch_size: Number of graphs in a batch.
        shuffle: Whether every epoch has another order of the graphs.
        device: Where the graphs are kept and batches made; None for where they are.
        drop_last: Whether a last batch that is too short is left out.
        follow_batch: Attributes that get a batch vector of their own, as in PyG.
        exclude_keys: Attributes to leave out.
        seed: The order of epoch e depends on the seed and on e. None draws it from
            torch's generator: the same order, from the same state, as PyG's loader.
        padded: Whether batches are padded to one size. The padding is like one more
            graph: its nodes have ``batch == num_graphs``, so that pooling gives one
            more row, which a step drops, and its edges join only them.
            ``num_real_nodes``, 0-d, says how many nodes are before it. Give ``device``
            rather than move batches: gates find the padding by the batch's own edges.

    Attributes:
        padded_size: How many nodes and edges a padded batch has, chosen so that at most
            one batch in a thousand is larger; such a one is padded by two nodes.

    Raises:
        UserError: The graphs do not fit together, or a number does not fit them.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        device: torch.device | str | None = None,
        drop_last: bool = False,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Sequence[str] | None = None,
        seed: int | None = None,
        padded: bool = False,
    ) -> None:
        check_number("batch_size", batch_size, 1)
        if seed is not None:
            check_seed(seed)
        members = members_of(dataset, exclude_keys or ())
        self.dataset, self._chosen = dataset, members.chosen
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        self.seed = seed
        if drop_last and len(self) == 0:
            raise UserError(
                f"batch_size is {batch_size}, but the dataset has "
                f"{counted(len(self._chosen), 'graph')}, and drop_last leaves out a "
                "batch that is too short; make batch_size smaller"
            )
        place = None if device is None else checked_device(device)
        self._set = GraphSet(members, place, exclude_keys or (), follow_batch or ())
        self.padded_size: PaddedSize | None = None
        if padded:
            self._levels = levels_of(self._set)
            self.padded_size = padded_size(self._set, self._chosen, batch_size, shuffle)
        self.set_epoch(0)

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        count, whole = len(self._chosen), self.batch_size * _processes()[1]
        return count // whole if self.drop_last else -(-count // whole)

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch of the next iteration.

        Raises:
            UserError: It is no epoch.
        """
        check_epoch(epoch)
        self.epoch = epoch
        self._state: dict[str, Any] = {"epoch": epoch, "step": 0, "order": None}

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: the epoch, its next step, and what its order is from."""
        return self._state | {
            "graphs": len(self._chosen),
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "seed": self.seed,
            "processes": _processes()[1],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues where another loader of the same graphs was.

        Raises:
            UserError: It is no state, or that of a loader of other batches.
        """
        own = self.state_dict()
        if not isinstance(state, Mapping) or set(state) != set(own):
            raise UserError(
                f"the state of a GraphLoader has {', '.join(own)}, got {shown(state)}; "
                "give what state_dict() returned"
            )
        for name in own.keys() - self._state.keys():
            if state[name] != own[name]:
                raise UserError(
                    f"the state has {name} {state[name]}, but this loader has "
                    f"{own[name]}; make it as the other one was made"
                )
        self.set_epoch(state["epoch"])
        check_number("step", state["step"], 0)
        if state["order"] is not None:
            check_seed(state["order"])
        self._state = {name: state[name] for name in self._state}

    def __iter__(self) -> Iterator[Any]:
        """The batches of the current epoch; the next iteration is the next epoch."""
        is_resumed = self._state["epoch"] == self.epoch and self._state["step"] > 0
        if self.seed is None and not is_resumed:
            # PyG's loader draws a number for workers before that of the order.
            _draw()
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        # An epoch begins with its first batch: some trainers call iter() twice.
        state = dict(self._state)
        if state["epoch"] != self.epoch:
            # An iteration began the epoch before this one and did not end it.
            state = {"epoch": self.epoch, "step": 0, "order": None}
        self.epoch += 1
        order = self._order(state)
        for step in range(state["step"], len(self)):
            self._state = state | {"step": step + 1}
            if step + 1 == len(self):
                self._state = {"epoch": state["epoch"] + 1, "step": 0, "order": None}
            yield self._batch(self._part(order, step))

    def _order(self, state: dict[str, Any]) -> np.ndarray:
        """The graphs' numbers in the order of an epoch, which the state then has."""
        if not self.shuffle:
            return self._chosen
        count = len(self._chosen)
        if self.seed is not None:
            places = shuffled(self.seed, state["epoch"], count)
        else:
            if _processes()[1] > 1:
                raise UserError(
                    "each process would draw another order of the graphs; give seed="
                )
            if state["order"] is None:
                state["order"] = _draw()
            generator = torch.Generator().manual_seed(state["order"])
            places = torch.randperm(count, generator=generator)
        order: np.ndarray = self._chosen[places.numpy()]
        return order

    def _part(self, order: np.ndarray, step: int) -> np.ndarray:
        """The graphs of a step that this process has."""
        rank, processes = _processes()
        whole = self.batch_size * processes
        batch = order[step * whole : (step + 1) * whole]
        first, last = (len(batch) * part // processes for part in (rank, rank + 1))
        return batch[first:last] if first < last else batch[:1]

    def _batch(self, numbers: np.ndarray) -> Any:
        # Layers keep nothing for a tensor that was made in inference mode.
        graphs, size = self._set, self.padded_size
        with torch.inference_mode(False):
            if size is None:
                return graphs.batch(numbers)
            batch = padded_batch(graphs, self._levels, numbers, size)
            # Layers leave the padding's gates out of their mean.
            in_use = batch.num_real_nodes, batch.num_real_nodes
            tensor_cache.keep(batch.edge_index, "in_use", in_use)
        return batch

    def __repr__(self) -> str:
        return (
            f"GraphLoader(graphs={len(self._chosen)}, batch_size={self.batch_size}, "
            f"shuffle={self.shuffle})"
        )


def _processes() -> tuple[int, int]:
    """The number of this process in training over several, and how many there are."""
    group = torch.distributed
    if not (group.is_available() and group.is_initialized()):
        return 0, 1
    return group.get_rank(), group.get_world_size()


def _draw() -> int:
    """A number from torch's generator, drawn as torch's loaders do."""
    return int(torch.empty((), dtype=torch.int64).random_())
