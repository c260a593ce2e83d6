"""Copies the rows of a batch out of a large tensor."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

# From here on memory is new with every batch, and numpy asks for it in large pages.
_LARGE = 1 << 22


def gather(x: Tensor, index: Tensor, dim: int = 0) -> Tensor:
    """``x.index_select(dim, index)``, on the device of x.

    On the CPU a large result is written into memory that the system gives out in large
    pages: with small ones, this would take longer than the copying.
    """
    index = index.to(x.device)
    shape = [*x.shape[:dim], index.size(0), *x.shape[dim + 1 :]]
    size = math.prod(shape) * x.element_size()
    plain = x.is_cpu and x.layout == torch.strided and not x.requires_grad
    if size < _LARGE or not plain:
        return x.index_select(dim, index)
    memory = torch.from_numpy(np.empty(size, dtype=np.uint8))
    out = memory.view(x.dtype).view(shape)
    return torch.index_select(x, dim, index, out=out)
