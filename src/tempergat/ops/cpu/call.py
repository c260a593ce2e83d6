"""A kernel call being filled in, argument by argument."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.calls import Forward, working_dtype
from tempergat.ops.cpu import library
from tempergat.ops.cpu.library import PLACE
from tempergat.ops.graph import Rows
from tempergat.ops.random import drop_threshold


class KernelCall:
    """Fills in the C structure and keeps the tensors it points to alive.

    Args:
        z: The features, whose type and shape the call has, [rows, H, C].
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the weights.
        dropout_seed: One seed per head, needed when ``dropout`` > 0, [H].
    """

    def __init__(
        self,
        z: Tensor,
        negative_slope: float = 0.0,
        dropout: float = 0.0,
        dropout_seed: Tensor | None = None,
    ) -> None:
        self.z = z
        self.tensors: list[Tensor] = []
        self.values: list[Any] = [0] * library.CALL_LENGTH
        _, heads, channels = z.shape
        self._set("storage", library.STORAGE[z.dtype])
        self._set("heads", heads, channels)
        self._set("negative_slope", negative_slope, dropout)
        if dropout > 0.0:
            if dropout_seed is None:
                raise ValueError("dropout > 0 needs dropout_seed, one int64 per head")
            self._set("drop_threshold", drop_threshold(dropout))
            self.add_dense(dropout_seed=dropout_seed)

    def _set(self, name: str, *values: Any) -> None:
        """Sets a field, and those after it if there are more values."""
        place = PLACE[name]
        self.values[place : place + len(values)] = values

    def add_edges(self, name: str, rows: Rows) -> None:
        """Edges grouped by one end."""
        pointer, other, position, edge_id = rows
        if pointer.dtype == torch.int64:
            self._set("wide_index", 1)
        self._set(
            name,
            pointer.data_ptr(),
            other.data_ptr(),
            position.data_ptr(),
            edge_id.data_ptr(),
            pointer.size(0) - 1,
        )

    def add_features(self, **tensors: Tensor | None) -> None:
        """Tensors [rows, H, C] in the storage type; None for absent ones."""
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            # There may be space between rows, as in a slice of a wider product.
            if tensor.stride()[1:] != (tensor.size(2), 1):
                tensor = tensor.contiguous()
            self.tensors.append(tensor)
            self._set(name, tensor.data_ptr(), tensor.size(0), tensor.stride(0))

    def add_dense(self, **tensors: Tensor | None) -> None:
        """Contiguous tensors in the working type; None for absent ones."""
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            tensor = tensor.contiguous()
            self.tensors.append(tensor)
            self.values[PLACE[name]] = tensor.data_ptr()

    def add_edge_map(self, edge_x: Tensor | None, edge_map: Tensor | None) -> None:
        """Edge features [E, D] and their linear map [H, C, D], both or neither."""
        if edge_x is None or edge_map is None:
            return
        self._set("edge_width", edge_x.size(1))
        self.add_dense(edge_x=edge_x, edge_map=edge_map)

    def add_records(self, rows: Rows, size: int) -> None:
        """What a pass of backward leaves to the next, ``size`` bytes per edge."""
        count, stride = rows.other.size(0), (size + 7) // 8 * 8
        tensor = self.z.new_empty(count * stride, dtype=torch.uint8)
        self.tensors.append(tensor)
        self._set("records", tensor.data_ptr(), count, stride)

    def run(self, kernel: str) -> None:
        """Runs a kernel of the library."""
        library.library.run(kernel, self.values)

    def run_forward(
        self, kernel: str, forward: Forward
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Runs a forward kernel: out [T, H, C], lse [T, H] and the weights [E, H].

        There are no rows of weights where none are wanted.
        """
        by_target = forward.by_target
        heads, channels = self.z.shape[1:]
        targets = by_target.pointer.size(0) - 1
        edges = by_target.other.size(0) if forward.weights else 0
        work = working_dtype(self.z.dtype)
        out = self.z.new_empty(targets, heads, channels)
        lse = self.z.new_empty(targets, heads, dtype=work)
        # A padded edge has weight 0.
        weights = self.z.new_zeros(edges, heads, dtype=work)
        self.add_edges("by_target", by_target)
        self.add_features(out=out)
        self.add_dense(lse=lse, weights=weights if forward.weights else None)
        self.run(kernel)
        return out, lse, weights
