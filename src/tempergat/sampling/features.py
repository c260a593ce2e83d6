"""Node features of a large graph: on a GPU, in memory, or in a file larger than it.

Arrays in ``.npy`` files are mapped into memory: nothing is read until it is used.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tempergat.base import UserError, available_bytes
from tempergat.ops import gather_rows

# The share of a GPU's free memory that features may take.
_SHARE = 0.5
# From here on memory is new with every batch, and numpy asks for it in large pages.
_LARGE = 1 << 22


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
        tensor = x if isinstance(x, Tensor) else _as_tensor(x)
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
        rows = self._stored_rows(nodes)
        return rows if self._transform is None else self._transform(rows)

    def _stored_rows(self, nodes: Tensor) -> Tensor:
        x = self._x
        nodes = nodes.to(x.device)
        if x.layout == torch.sparse_csr:
            return _rows_of_csr(x, nodes).to(self.device)
        if x.is_cpu and not self._was_read:
            self._was_read = True
            _expect_random_reads(x)
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


def gather(x: Tensor, index: Tensor, dim: int = 0) -> Tensor:
    """``x.index_select(dim, index)``, on the device of x.

    On the CPU a large result is written into memory that the system gives out in large
    pages: with small ones, this would take longer than the copying.
    """
    index = index.to(x.device)
    shape = [*x.shape[:dim], index.size(0), *x.shape[dim + 1 :]]
    size = math.prod(shape) * x.element_size()
    plain = x.is_cpu and x.layout == torch.strided and not x.requires_grad
    if dim == 0 and x.is_cuda:
        return gather_rows(x, index)
    if size < _LARGE or not plain:
        return x.index_select(dim, index)
    memory = torch.from_numpy(np.empty(size, dtype=np.uint8))
    out = memory.view(x.dtype).view(shape)
    return torch.index_select(x, dim, index, out=out)


def open_array(path: str | os.PathLike[str]) -> Tensor:
    """Maps a ``.npy`` file into memory, in a time that does not depend on its size.

    The tensor must not be written to: its memory is read-only, so that the system
    reserves none for it and the file may be larger than memory.

    Raises:
        UserError: The file cannot be read, is no array of numbers, or is shorter than
            its header says.
    """
    file = Path(path)
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror or error}") from error
    except Exception as error:
        # A damaged header can raise almost any exception in numpy.
        raise UserError(
            f"{file} is damaged or no .npy file of numbers: {_reason(file, error)}; "
            "write it again with numpy.save"
        ) from error
    return _as_tensor(array)


def _as_tensor(array: np.ndarray) -> Tensor:
    """An array as a tensor of the same memory.

    Raises:
        UserError: torch has no such type of numbers.
    """
    try:
        with warnings.catch_warnings():
            # torch warns of arrays that must not be written to.
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"an array of {array.dtype} with shape {list(array.shape)} cannot be used; "
            "write it as float32 or int64, in C order"
        ) from error


def _expect_random_reads(x: Tensor) -> None:
    """Tells the system that rows will be read in no order, if they exceed memory.

    By default 128 KiB around a row are read from its file. A file that fits into memory
    is soon read by that; of a larger one most is dropped before it is used.

    Args:
        x: A tensor in the CPU's memory, which may be mapped from a file.
    """
    size = x.numel() * x.element_size()
    advice = getattr(mmap, "MADV_RANDOM", None)
    if advice is None or size <= available_bytes():
        return
    begin = x.data_ptr() // mmap.PAGESIZE * mmap.PAGESIZE
    length = x.data_ptr() + size - begin
    # Only advice: it changes no result, so a failure may be ignored.
    ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(length), advice)


def _reason(file: Path, error: Exception) -> str:
    if "mmap length" in str(error):
        return f"its {file.stat().st_size} bytes are fewer than its header says"
    return " ".join(str(error).split())[:100]
