# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""GATv2's forward pass in Triton: one feature row per edge is read."""

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Forward
from tempergat.ops.gpu.common import (
    Tile,
    choose_tile,
    contiguous_or_none,
    factors_of_edges,
    load_ends,
    load_row,
    load_work,
    tile_of_row,
    widen,
)
from tempergat.ops.gpu.gatv2_edge_features import (
    add_projected,
    features_tile,
    load_features,
    load_map,
    map_by_feature,
)
from tempergat.ops.gpu.launching.launch import device_of
from tempergat.ops.gpu.schedule import Work
from tempergat.ops.gpu.scores import Vectors, divide
from tempergat.ops.gpu.softmax import add_edges, attend, store_softmax


@functools.cache
def _cache_size(device: int) -> int:
    return int(torch.cuda.get_device_properties(device).L2_cache_size)


def tile_of(z: Tensor, lanes: int, features: int = 0) -> Tile:
    """The part of a row that one program serves.

    Args:
        z: A table with a row per node.
        lanes: The elements that one step handles side by side.
        features: How many features an edge has that take the place of channels.
    """
    rows, heads, channels = z.shape
    size, width, channels = z.element_size(), lanes, max(channels, features)
    if size == 2:
        # Half precision is bound by instructions: whole rows take the fewest per edge.
        # Registers limit how many such rows can be in flight.
        tile = choose_tile(heads, channels, size, 256, lanes)
        wide = tile.heads * tile.channels >= 256 and not features
        return tile._replace(unroll=2) if wide else tile
    device = device_of(z)
    if device >= 0:
        # A table slightly larger than the cache is read in slices of heads that fit.
        cache = _cache_size(device)
        slice_width = cache // 2 // (rows * size)
        if z.numel() * size > cache and slice_width >= max(channels, 32):
            width = min(lanes, slice_width)
    # A warp that serves all channels of a short row needs too many registers here.
    tile = choose_tile(heads, channels, size, width, lanes)._replace(per_warp=128)
    return tile._replace(unroll=2) if features else tile


@triton.jit(do_not_specialize=[*Work._fields, "threshold", "num_heads"])
def _forward_kernel(
    z_src_ptr, z_dst_ptr, att_ptr, edge_ptr, edge_x_ptr, edge_map_ptr,
    edge_weight_ptr, edge_bias_ptr, items_ptr, other_ptr, position_ptr, edge_id_ptr,
    out_ptr, lse_ptr, logit_ptr, part_ptr, part_statistics_ptr, seed_ptr,
    num_items, own_rows, other_rows, num_edges, edge_step, num_partials,
    threshold, keep_scale, slope, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, EDGE: tl.constexpr,
    D: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr,
    LOGIT: tl.constexpr, DROPOUT: tl.constexpr,
    COPIES: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    att = load_row(att_ptr, 0, 0, cell, in_row, BLOCK_E)  # [E, H, C]
    att_below = att * slope
    if D:
        edge_map = load_map(edge_map_ptr, cell, in_row, H * C, D)
    row, start, end, partial, copy = load_work(
        items_ptr, num_items, own_rows, num_partials, COPIES
    )
    z_cells = (z_src_ptr + copy * other_rows * (H * C) + cell)[None]
    # [E, H, C]
    z_i = load_row(z_dst_ptr, row, H * C, cell, in_row, BLOCK_E).to(tl.float32)
    max_logit = tl.full([BLOCK_E, BLOCK_H], -float("inf"), tl.float32)
    denominator = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    weighted_sum = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    next_sources = load_ends(other_ptr, start, end, BLOCK_E, UNROLL)
    for s in range(start, end, BLOCK_E * UNROLL):
        sources = next_sources
        next_sources = load_ends(other_ptr, s + BLOCK_E * UNROLL, end, BLOCK_E, UNROLL)
        rows_j = ()
        logits = ()
        factors = ()
        new_max = max_logit
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)  # [E]
            valid = slots < end
            in_table = valid[:, None, None] & in_row[None]
            other_row = sources[k].to(tl.int64)[:, None, None] * (H * C)
            # z_j, [E, H, C]
            z = widen(tl.load(z_cells + other_row, mask=in_table, other=0.0))
            rows_j = rows_j + (z,)
            v = z + z_i  # [E, H, C]
            place = slots.to(tl.int64)
            if EDGE or D or WEIGHT or BIAS or LOGIT:
                place = tl.load(position_ptr + slots, mask=valid, other=0).to(tl.int64)
            of_edge = place + copy * edge_step
            if EDGE:
                edge_cell = of_edge[:, None, None] * (H * C) + cell[None]
                edge = tl.load(edge_ptr + edge_cell, mask=in_table, other=0.0)
                v += edge.to(tl.float32)
            if D:
                x = load_features(edge_x_ptr, of_edge, valid, D)
                v = add_projected(v, x, edge_map, D)
            # leaky'(v) att, [E, H, C]
            slope_att = tl.where(v > 0, att, att_below)
            logit = tl.sum(v * slope_att, axis=2)  # e_ij, [E, H]
            valid_head = valid[:, None] & in_heads[None, :]
            if BIAS:
                bias = edge_bias_ptr + of_edge[:, None] * H + heads[None, :]
                logit += tl.load(bias, mask=valid_head, other=0.0)
            if LOGIT:
                target = (place + copy * num_edges)[:, None] * H + heads[None, :]
                tl.store(logit_ptr + target, logit, mask=valid_head)
            logit = tl.where(valid[:, None], logit, -float("inf"))
            logits = logits + (logit,)
            new_max = tl.maximum(new_max, logit)
            if DROPOUT or WEIGHT:
                factor, _keep = factors_of_edges(
                    edge_id_ptr, edge_weight_ptr, slots, valid, of_edge, seed_ptr,
                    heads, in_heads, H, copy, threshold, keep_scale,
                    DROPOUT, WEIGHT,
                )  # fmt: skip
                factors = factors + (factor,)
        max_logit, denominator, weighted_sum = add_edges(
            max_logit, denominator, weighted_sum, new_max, logits, rows_j, factors,
            UNROLL, DROPOUT or WEIGHT,
        )  # fmt: skip
    store_softmax(
        max_logit, denominator, weighted_sum, end > start, row, partial,
        heads, in_heads, cell, in_row,
        out_ptr, lse_ptr, part_ptr, part_statistics_ptr, H, C,
    )  # fmt: skip


def forward(call: Forward) -> tuple[Tensor, ...]:
    """Output [T, H, C], log-sum-exp [T, H, 2], weights [E, H] (or none of them)."""
    z_src, z_dst, att, edge, edge_x, edge_map, theta, *_ = map(
        contiguous_or_none, call.inputs
    )
    assert z_src is not None
    assert att is not None
    if edge_x is None:
        width, tile = 0, tile_of(z_src, lanes=512 // z_src.element_size())
    else:
        width = edge_x.size(1)
        tile = features_tile(z_src, width)
    maps = (edge, edge_x, map_by_feature(edge_map))
    inputs, edges = (
        (z_src, z_dst, divide(Vectors(att, None, theta))[0], *maps),
        (edge, edge_x),
    )
    flags, slope = (edge is not None, width), (float(call.settings[0]),)
    return attend(_forward_kernel, tile, call, inputs, edges, slope, flags)
