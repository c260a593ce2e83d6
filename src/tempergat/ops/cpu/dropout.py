"""Dropout of whole tensors by the C++ kernels."""

from torch import Tensor

from tempergat.ops.cpu import library


def run(x_RXC: Tensor, seeds_B: Tensor, rate: float) -> Tensor:
    """The op of `ops/features/elementwise.py`: [R, B, C]."""
    out = x_RXC.new_empty(x_RXC.size(0), seeds_B.size(0), x_RXC.size(2))
    library.library.dropout(x_RXC.contiguous(), seeds_B.contiguous(), rate, out)
    return out
