# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Products of nodes with the linear map of edge features, in Triton.

Attention by dot products never projects an edge: what belongs to the map is computed
once per node, because ``<q, W x> = <W^T q, x>`` and ``sum a W x = W sum a x``. Tables
are read as they are, in half precision too; products and results are float32.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import (
    KNOWS_TARGET,
    row_stride,
    row_tables,
    target_info,
    widen,
)
from tempergat.ops.gpu.features.outer import block_of, sum_of_outer
from tempergat.ops.gpu.launching.launch import divide_up, launch

# Nodes of a program.
_NODES = 64


@triton.jit(do_not_specialize=["rows", "x_units", "num_heads"])
def _multiply_kernel(
    x_ptr, map_ptr, out_ptr, rows, x_units, num_heads,
    STRIDED: tl.constexpr, INS: tl.constexpr, OUTS: tl.constexpr,
    IN_STEP: tl.constexpr, OUT_STEP: tl.constexpr, ADD: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_I: tl.constexpr, BLOCK_O: tl.constexpr,
):  # fmt: skip
    TILES: tl.constexpr = (OUTS + BLOCK_O - 1) // BLOCK_O
    # AMD's cards have float32.
    NVIDIA: tl.constexpr = target_info.is_cuda() if KNOWS_TARGET else True
    PRECISION: tl.constexpr = "tf32x3" if NVIDIA else "ieee"
    head = tl.program_id(1) // TILES
    o = tl.program_id(1) % TILES * BLOCK_O + tl.arange(0, BLOCK_O)
    node = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    here = (node < rows)[:, None]
    x_row = x_ptr + node[:, None] * row_stride(x_units, num_heads, INS, STRIDED)
    total = tl.zeros([BLOCK_N, BLOCK_O], tl.float32)
    for first in tl.static_range(0, INS, BLOCK_I):
        i = first + tl.arange(0, BLOCK_I)
        mask = here & (i < INS)[None, :]
        x = tl.load(x_row + head * INS + i[None, :], mask=mask, other=0.0)
        cell = head * (INS * OUTS) + i[:, None] * IN_STEP + o[None, :] * OUT_STEP
        mask = (i < INS)[:, None] & (o < OUTS)[None, :]
        weight = tl.load(map_ptr + cell, mask=mask, other=0.0)
        total = tl.dot(widen(x), widen(weight), total, input_precision=PRECISION)
    target = out_ptr + (node * num_heads + head)[:, None] * OUTS + o[None, :]
    mask = here & (o < OUTS)[None, :]
    if ADD:
        total += tl.load(target, mask=mask, other=0.0).to(tl.float32)
    tl.store(target, total.to(out_ptr.dtype.element_ty), mask=mask)


def pull_back(x_THC: Tensor, edge_map_HCD: Tensor) -> Tensor:
    """``edge_map^T x`` of every node and head, [T, H, D]."""
    heads, channels, width = edge_map_HCD.shape
    out = x_THC.new_empty((x_THC.size(0), heads, width), dtype=torch.float32)
    _multiply(x_THC, edge_map_HCD, out, (channels, width, width, 1), add=False)
    return out


def add_push(out_THC: Tensor, sum_THD: Tensor, edge_map_HCD: Tensor) -> None:
    """Adds ``edge_map sum`` to what every node and head has, in place."""
    _, channels, width = edge_map_HCD.shape
    _multiply(sum_THD, edge_map_HCD, out_THC, (width, channels, 1, width), add=True)


def map_gradient(
    query_THC: Tensor, du_THD: Tensor, dout_THC: Tensor, c_THD: Tensor
) -> Tensor:
    """The gradient of the map, [H, C, D]: a sum over nodes of outer products."""
    return sum_of_outer((query_THC, du_THD), (dout_THC, c_THD))


def _multiply(
    x: Tensor,
    edge_map: Tensor,
    out: Tensor,
    sizes: tuple[int, int, int, int],
    *,
    add: bool,
) -> None:
    """Each row of x times a matrix of its head.

    Args:
        x: The rows, [T, H, ins].
        edge_map: The matrices.
        out: The result, [T, H, outs].
        sizes: Ins and outs, and the steps of the matrices along them.
        add: Whether products are added to what is there.
    """
    (x,), (units,), strided = row_tables(x)
    rows, heads, _ = x.shape
    ins, outs = map(block_of, sizes[:2])
    launch(
        _multiply_kernel,
        (divide_up(rows, _NODES), heads * divide_up(sizes[1], outs)),
        (x, edge_map.contiguous(), out),
        (rows, units, heads),
        (strided, *sizes, add, _NODES, ins, outs),
        warps=4,
    )
