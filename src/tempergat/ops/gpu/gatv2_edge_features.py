# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""GATv2's edge features, projected while the edges are read.

A program holds the linear map of its heads, one [H, C] for each of the D features,
and takes one edge after the other (E is 1).
"""

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import Tile, choose_tile, load_row
from tempergat.ops.gpu.launching.launch import power_of_two

# The elements of the map that a warp holds in registers.
_HELD_BY_A_WARP = 1024


@triton.jit
def load_map(edge_map_ptr, cell, in_row, width, D: tl.constexpr):
    """The linear map of edge features, D times [1, H, C]."""
    edge_map = ()
    for d in tl.static_range(D):
        edge_map = edge_map + (load_row(edge_map_ptr, d, width, cell, in_row, 1),)
    return edge_map


@triton.jit
def load_features(edge_x_ptr, position, valid, D: tl.constexpr):
    """An edge's features, D times [E]."""
    x = ()
    for d in tl.static_range(D):
        x = x + (tl.load(edge_x_ptr + position * D + d, mask=valid, other=0.0),)
    return x


@triton.jit
def add_projected(v, x, edge_map, D: tl.constexpr):
    """v plus the projected features, [E, H, C]."""
    for d in tl.static_range(D):
        v += x[d][:, None, None] * edge_map[d]
    return v


@triton.jit
def zero_map(edge_map, D: tl.constexpr):
    """Zeros of the map's shape."""
    zeros = ()
    for d in tl.static_range(D):
        zeros = zeros + (tl.zeros_like(edge_map[d]),)
    return zeros


@triton.jit
def add_to_map(gradient, x, dv, D: tl.constexpr):
    """The map's gradient with one edge more, whose gradient of v is [E, H, C]."""
    total = ()
    for d in tl.static_range(D):
        dmap = tl.sum(x[d][:, None, None] * dv, axis=0, keep_dims=True)
        total = total + (gradient[d] + dmap,)
    return total


@triton.jit
def store_features(dedge_x_ptr, edge_map, dv, row, valid, D: tl.constexpr):
    """Stores the gradient of an edge's features."""
    for d in tl.static_range(D):
        dx = tl.sum(tl.sum(dv * edge_map[d], axis=2), axis=1)  # [E]
        tl.store(dedge_x_ptr + row * D + d, dx, mask=valid)


@triton.jit
def store_map(out_ptr, gradient, cell, in_row, width, D: tl.constexpr):
    """Stores a gradient of the map."""
    for d in tl.static_range(D):
        tl.store(out_ptr + d * width + cell[None], gradient[d], mask=in_row[None])


def features_tile(z: Tensor, width: int) -> Tile:
    """The tile where programs project edge features.

    Args:
        z: The sources' features.
        width: How many features an edge has.
    """
    _, heads, channels = z.shape
    padded = power_of_two(width)
    columns = min(128, _HELD_BY_A_WARP // padded)
    tile = choose_tile(heads, channels, 4, columns, 1)
    warps = padded * tile.heads * tile.channels // _HELD_BY_A_WARP
    # Unrolled code of many features takes long to compile.
    unroll = 2 if padded <= 8 else 1
    warps = max(1, min(8, warps))
    return tile._replace(edges=1, unroll=unroll, warps=warps, per_warp=columns)


def map_by_feature(edge_map: Tensor | None) -> Tensor | None:
    """The edges' linear map as kernels read it, [D, H, C]."""
    return None if edge_map is None else edge_map.permute(2, 0, 1).contiguous()
