"""The edges of a large graph, grouped by target, as samplers read them."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from tempergat.base import UserError
from tempergat.ops import group_by_target


@dataclass(frozen=True, eq=False)
class Topology:
    """Edges grouped by target.

    Target ``i`` owns the slots ``pointer[i]`` to ``pointer[i + 1]``. Its edges keep
    their order in ``edge_index``. All tensors may be mapped from files.

    Attributes:
        pointer: Where the slots of each target begin and end, [targets + 1], int64.
        source: The source of the edge in each slot, int32 or int64.
        edge_id: The number of the edge in ``edge_index``, int32 or int64; None if
            ``edge_index`` was grouped by target already.
        num_src: Number of source nodes.

    Raises:
        UserError: A part is not a list of whole numbers.
    """

    pointer: Tensor
    source: Tensor
    edge_id: Tensor | None
    num_src: int

    def __post_init__(self) -> None:
        for name in ("pointer", "source", "edge_id"):
            part = getattr(self, name)
            if part is None and name == "edge_id":
                continue
            # Engines read the memory of these tensors.
            if part.dtype not in (torch.int32, torch.int64) or part.dim() != 1:
                raise UserError(
                    f"{name} of a topology must be a list of int32 or int64 numbers, "
                    f"got {part.dtype} of shape {list(part.shape)}"
                )
            object.__setattr__(self, name, part.contiguous())

    def __repr__(self) -> str:
        return (
            f"Topology(sources={self.num_src}, targets={self.num_dst}, "
            f"edges={self.source.size(0)})"
        )

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int | tuple[int, int]) -> Topology:
        """Groups the edges of an ``edge_index`` by target.

        Args:
            edge_index: Source and target of every edge, [2, E].
            num_nodes: Number of nodes, or a pair (sources, targets) if bipartite.

        Raises:
            UserError: An edge refers to a node that does not exist.
        """
        sizes = (num_nodes, num_nodes) if isinstance(num_nodes, int) else num_nodes
        if isinstance(edge_index, EdgeIndex):
            edge_index = edge_index.as_tensor()
        _check_form(edge_index)
        if edge_index.is_cpu and max(*sizes, edge_index.size(1)) < 2**31:
            grouped = group_by_target(edge_index, sizes)
            if grouped is not None:
                return cls(*grouped, sizes[0])
        _check_range(edge_index, sizes)
        source, target = edge_index
        dtype = torch.int32 if sizes[0] < 2**31 else torch.int64
        edge_id = None
        if edge_index.size(1) > 1 and not bool((target[1:] >= target[:-1]).all()):
            target, edge_id = torch.sort(target, stable=True)
            source = source.index_select(0, edge_id)
            if edge_index.size(1) < 2**31:
                edge_id = edge_id.to(torch.int32)
        rows = torch.arange(sizes[1] + 1, device=target.device, dtype=target.dtype)
        pointer = torch.searchsorted(target.contiguous(), rows)
        return cls(pointer, source.to(dtype).contiguous(), edge_id, sizes[0])

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Topology:
        """Maps the edges that `save` wrote, in under a second at any size.

        Raises:
            UserError: The folder does not hold grouped edges, or a file is cut short.
        """
        # These modules need this one.
        from tempergat.sampling.storage.topology_files import open_topology

        return open_topology(folder)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the edges into a folder, replacing edges that were saved there.

        Raises:
            UserError: The folder cannot be written, or holds other files.
        """
        from tempergat.sampling.storage.topology_files import save_topology

        save_topology(self, folder)

    @property
    def num_dst(self) -> int:
        """Number of target nodes."""
        return self.pointer.size(0) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.source.size(0)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.pointer.device

    def edges_of(self, slots: Tensor) -> Tensor:
        """The numbers in ``edge_index`` of the edges in some slots, int64."""
        if self.edge_id is None:
            return slots
        return self.edge_id.index_select(0, slots).long()

    def to(self, device: torch.device | str) -> Topology:
        """The same edges on another device."""
        edge_id = self.edge_id if self.edge_id is None else self.edge_id.to(device)
        tensors = self.pointer.to(device), self.source.to(device), edge_id
        return Topology(*tensors, self.num_src)


def _check_form(edge_index: Tensor) -> None:
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise UserError(
            f"edge_index must have shape [2, num_edges], got "
            f"{list(edge_index.shape)}; row 0 holds sources, row 1 targets"
        )
    if edge_index.dtype not in (torch.int32, torch.int64):
        raise UserError(
            f"edge_index must hold int64 or int32 node numbers, got "
            f"{edge_index.dtype}; convert it with edge_index.long()"
        )


def _check_range(edge_index: Tensor, sizes: tuple[int, int]) -> None:
    for side, ends, count in zip(("source", "target"), edge_index, sizes, strict=True):
        if ends.numel() == 0:
            continue
        low, high = (int(x) for x in torch.aminmax(ends))
        if low < 0 or high >= count:
            raise UserError(
                f"edge_index refers to {side} node {low if low < 0 else high}, but "
                f"there are {count} {side} nodes (0..{count - 1}); set num_nodes of "
                "the data to the number of nodes"
            )
