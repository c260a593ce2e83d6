"""Node features of a large graph: on a GPU, in memory, or in a file larger than it."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.sampling.storage.array_files import (
    as_tensor,
    expect_random_reads,
    open_array,
)
from tempergat.sampling.storage.gathering import gather

# The share of a GPU's free memory that features may take.
_SHARE = 0.5


class NodeFeatures:
    """The features of all nodes, of which a batch gets some rows.

    They stay where they are; only the rows of a batch are copied. Rows from the CPU's
    memory, or from a file that is mapped into it, are collected in pinned memory and
    copied to a GPU without waiting.

    Args:
        x: The features, [num_nodes, channels]: a tensor on any device, dense or CSR,
            or an array, which may be mapped from a file.
        device: Where the rows of a batch are wanted; None for the device of x.
        transform: Applied to the rows of every batch, like a normalisation; None for
            none.

    Raises:
        UserError: It is not a matrix.
    """

    def __init__(
        self,
        x: Tensor | np.ndarray,
        device: torch.device | str | None = None,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        tensor = x if isinstance(x, Tensor) else as_tensor(x)
        if tensor.dim() != 2:
            raise UserError(
                f"the features have shape {list(tensor.shape)}; give a matrix with one "
                "row per node"
            )
        self._x = tensor
        self._transform = transform
        self._was_read = False
        self.device = tensor.device if device is None else torch.device(device)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], device: torch.device | str | None = None
    ) -> NodeFeatures:
        """Maps the features in a ``.npy`` file, which may be larger than memory.

        Raises:
            UserError: The file cannot be read, or is shorter than its header says.
        """
        return cls(open_array(path), device)

    @property
    def is_on_gpu(self) -> bool:
        """Whether all features are dense and on a GPU."""
        return self._x.is_cuda and self._x.layout == torch.strided

    @property
    def shape(self) -> torch.Size:
        """Number of nodes and of features."""
        return self._x.shape

    def size(self, dim: int) -> int:
        """The number of nodes (0) or of features (1)."""
        return self._x.size(dim)

    def rows(self, nodes: Tensor) -> Tensor:
        """The features of some nodes, dense float32, on the device of the batch.

        Args:
            nodes: Their numbers, int64.
        """
        found = self._stored_rows(nodes)
        return found if self._transform is None else self._transform(found)

    def _stored_rows(self, nodes: Tensor) -> Tensor:
        x = self._x
        nodes = nodes.to(x.device)
        if x.layout == torch.sparse_csr:
            return _rows_of_csr(x, nodes).to(self.device)
        if x.is_cpu and not self._was_read:
            self._was_read = True
            expect_random_reads(x)
        if x.is_cuda or self.device.type != "cuda":
            return gather(x, nodes).float().to(self.device)
        staged = torch.empty((nodes.size(0), x.size(1)), dtype=x.dtype, pin_memory=True)
        torch.index_select(x, 0, nodes, out=staged)
        return staged.to(self.device, non_blocking=True).float()

    def to(self, device: torch.device | str) -> NodeFeatures:
        """The same features, with the rows of a batch on another device."""
        return NodeFeatures(self._x, device, self._transform)

    def near(self, device: torch.device | str) -> NodeFeatures:
        """The same features, on a GPU if they take at most half of its free memory.

        Args:
            device: Where the rows of a batch are wanted.
        """
        place = torch.device(device)
        if place.type != "cuda" or self._x.is_cuda:
            return self.to(place)
        free, _ = torch.cuda.mem_get_info(place)
        dense = self._x.layout == torch.strided
        size = self._x.numel() * self._x.element_size()
        if dense and size <= _SHARE * free:
            return NodeFeatures(self._x.to(place), place, self._transform)
        return self.to(place)

    def __repr__(self) -> str:
        shape = list(self.shape)
        return f"NodeFeatures({shape}, {self._x.dtype}, on {self._x.device})"


def _rows_of_csr(x: Tensor, nodes: Tensor) -> Tensor:
    start = x.crow_indices().index_select(0, nodes)
    counts = x.crow_indices().index_select(0, nodes + 1) - start
    row = torch.repeat_interleave(torch.arange(nodes.size(0), device=x.device), counts)
    first = counts.cumsum(0) - counts
    within = torch.arange(row.size(0), device=x.device) - first[row]
    slots = start[row] + within
    dense = torch.zeros(nodes.size(0), x.size(1), device=x.device)
    dense[row, x.col_indices()[slots]] = x.values()[slots].float()
    return dense
