"""A kernel call being filled in, argument by argument."""

from __future__ import annotations

import torch
from torch import Tensor

from tempergat.ops.calls import Forward, working_dtype
from tempergat.ops.cpu import library
from tempergat.ops.cpu.structures import CallStructure
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
        self.call = CallStructure()
        self.call.storage = library.STORAGE[z.dtype]
        self.call.heads, self.call.channels = z.shape[1:]
        self.call.negative_slope = negative_slope
        if dropout > 0.0:
            if dropout_seed is None:
                raise ValueError("dropout > 0 needs dropout_seed, one int64 per head")
            self.call.dropout = dropout
            self.call.drop_threshold = drop_threshold(dropout)
            self.add_dense(dropout_seed=dropout_seed)

    def add_edges(self, name: str, rows: Rows) -> None:
        """Edges grouped by one end."""
        self.call.wide_index = int(rows.pointer.dtype == torch.int64)
        field = getattr(self.call, name)
        field.count = rows.pointer.size(0) - 1
        for part, tensor in zip(Rows._fields, rows, strict=True):
            setattr(field, part, tensor.data_ptr())

    def add_features(self, **tensors: Tensor | None) -> None:
        """Tensors [rows, H, C] in the storage type; None for absent ones."""
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            # Rows may be apart, as in a slice of a wider product.
            if tensor.stride()[1:] != (tensor.size(2), 1):
                tensor = tensor.contiguous()
            self.tensors.append(tensor)
            field = getattr(self.call, name)
            field.data, field.rows = tensor.data_ptr(), tensor.size(0)
            field.stride = tensor.stride(0)

    def add_dense(self, **tensors: Tensor | None) -> None:
        """Contiguous tensors in the working type; None for absent ones."""
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            tensor = tensor.contiguous()
            self.tensors.append(tensor)
            setattr(self.call, name, tensor.data_ptr())

    def add_records(self, rows: Rows, size: int) -> None:
        """What a pass of backward leaves to the next, ``size`` bytes per edge."""
        field = self.call.records
        field.rows, field.stride = rows.other.size(0), (size + 7) // 8 * 8
        tensor = self.z.new_empty(field.rows * field.stride, dtype=torch.uint8)
        self.tensors.append(tensor)
        field.data = tensor.data_ptr()

    def run(self, kernel: str) -> None:
        """Runs a kernel of the library."""
        library.library.run(kernel, self.call)

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
