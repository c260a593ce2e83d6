# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""What the Triton kernels share: items, tiles of a row, dropout.

Shapes in the kernels' comments: E edges of a step (BLOCK_E), H heads of a tile
(BLOCK_H), C channels of a tile (BLOCK_C), R rows, K partial results. `slots` are
places in the arrays of `Rows`; `cell` is an offset within a row of H * C numbers.
Offsets into tables are 64 bits wide throughout.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.random import drop_threshold


class Dropout(NamedTuple):
    """Dropout as the kernels take it: seed, threshold, keep_scale and DROPOUT."""

    seed: Tensor | None
    threshold: int
    keep_scale: float
    on: bool


def dropout_of(rate: float, seed: Tensor | None) -> Dropout:
    """The kernels' arguments for dropout at this rate."""
    scale = 1.0 / (1.0 - rate) if rate < 1.0 else float("nan")
    return Dropout(seed, drop_threshold(rate), scale, rate > 0.0)


def dense(x: Tensor | None) -> Tensor | None:
    """The tensor as one block of memory, as kernels address it; None stays None."""
    return None if x is None else x.contiguous()


def again_with_weights(call: Backward) -> Forward:
    """The forward call of a backward call, this time with its weights."""
    saved = call.saved
    return Forward(
        saved.inputs,
        saved.dropout_seed,
        saved.by_target,
        saved.by_source,
        call.settings,
        call.dropout,
        weights=True,
    )


def on_device(tensor: Tensor) -> AbstractContextManager[Any]:
    """Makes a CUDA tensor's device the current one, where kernels are launched."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


@triton.jit
def load_item(items_ptr, number):
    """Row, first slot, end slot and partial of one item of a schedule."""
    item = items_ptr + number * 4
    row = tl.load(item).to(tl.int64)
    return row, tl.load(item + 1), tl.load(item + 2), tl.load(item + 3).to(tl.int64)


@triton.jit
def mix32(x):
    """The mixer of ops/random.py."""
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def keep_factor(seed_ptr, heads, in_row, edge_id, threshold, keep_scale):
    """Dropout's factor of each weight: 0 or 1 / (1 - rate), [E, H]."""
    seed = tl.load(seed_ptr + heads, mask=in_row, other=0).to(tl.int64)
    seed_low = (seed & 0xFFFFFFFF).to(tl.uint32)
    seed_high = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    edge_id = edge_id.to(tl.int64)
    low = (edge_id & 0xFFFFFFFF).to(tl.uint32)
    high = ((edge_id >> 32) & 0xFFFFFFFF).to(tl.uint32)
    bits = mix32(low[:, None] ^ seed_low[None, :])
    bits = mix32(bits ^ high[:, None] ^ seed_high[None, :])
    kept = (bits >> 8).to(tl.int32) >= threshold
    return tl.where(kept, keep_scale, 0.0)


@triton.jit
def cells_of_tile(
    heads, channels, H: tl.constexpr, C: tl.constexpr, EXACT: tl.constexpr
):
    """Offsets of a tile in a row of H * C, and which of them are in the row."""
    cell = heads[:, None] * C + channels[None, :]
    if EXACT:
        in_row = tl.full(cell.shape, True, tl.int1)
    else:
        in_row = (heads[:, None] < H) & (channels[None, :] < C)
    return cell, in_row
