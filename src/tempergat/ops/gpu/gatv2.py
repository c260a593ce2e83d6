# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""GATv2's attention in Triton; the forward pass is in `gatv2_forward.py`.

Backward, the logits are recomputed twice: by target (one feature row per edge; gives
the gradients of z_dst, att and edge) and by source (two rows per edge; gives the
gradient of z_src).
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Backward, Saved
from tempergat.ops.gpu.common import (
    Tile,
    contiguous_or_none,
    dropout_arguments,
    exp,
    factors_of_edges,
    load_number,
    load_row,
    load_work,
    store_row,
    tile_of_row,
    widen,
)
from tempergat.ops.gpu.gatv2_edge_features import (
    add_projected,
    add_to_map,
    features_tile,
    load_features,
    load_map,
    map_by_feature,
    store_features,
    store_map,
    zero_map,
)
from tempergat.ops.gpu.gatv2_forward import forward as forward
from tempergat.ops.gpu.gatv2_forward import tile_of
from tempergat.ops.gpu.launching.launch import divide_up, launch
from tempergat.ops.gpu.schedule import Work, schedule
from tempergat.ops.gpu.scores import Vectors, divide, divide_backward
from tempergat.ops.gpu.sums import merge_sum, statistics

# The most programs of the pass by target. Each serves every n-th item and keeps its own
# sum for att's gradient: several times what a large device runs at once, and few enough
# that their sums are small compared with the node features.
_TARGET_PROGRAMS = 16384
# The same where each also keeps a sum for the gradient of the edges' linear map.
_FEATURE_PROGRAMS = 2048


def _backward_tile(z: Tensor) -> tuple[Tile, int]:
    """The tile of both backward passes, and how many steps are loaded in advance."""
    if z.element_size() > 2:
        return tile_of(z, lanes=128), 1
    tile = tile_of(z, lanes=256)._replace(unroll=2)
    # Rows loaded in advance lie in shared memory, which is too small for wide ones.
    return tile, 3 if tile.edges * tile.heads * tile.channels <= 1024 else 1


@triton.jit
def _load_end(other_ptr, slots, end):
    """The nodes at the other end of a group of edges; the last is repeated, [E]."""
    return tl.load(other_ptr + tl.minimum(slots, end - 1)).to(tl.int64)


@triton.jit(do_not_specialize=[*Work._fields, "total_items", "threshold", "num_heads"])
def _target_kernel(
    dout_ptr, dweight_ptr, z_src_ptr, z_dst_ptr, att_ptr, edge_ptr,
    edge_x_ptr, edge_map_ptr, edge_weight_ptr, edge_bias_ptr, statistics_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_dst_ptr, datt_ptr, dedge_ptr, dedge_x_ptr, dedge_map_ptr, dedge_weight_ptr,
    dedge_bias_ptr, part_ptr, seed_ptr,
    num_items, own_rows, other_rows, num_edges, edge_step, num_partials,
    total_items, threshold, keep_scale, slope, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, EDGE: tl.constexpr,
    D: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr,
    DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr, STAGES: tl.constexpr,
    DEDGE_X: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    att = load_row(att_ptr, 0, 0, cell, in_row, BLOCK_E)  # [E, H, C]
    # sum of dlogit leaky(v), [E, H, C]
    datt = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    if D:
        edge_map = load_map(edge_map_ptr, cell, in_row, H * C, D)
        dedge_map = zero_map(edge_map, D)  # sum of dv times the features
    z_cells = (z_src_ptr + cell)[None]
    program = tl.program_id(0)
    for number in range(program, total_items, tl.num_programs(0)):
        # Not loaded one item early: Triton 3.6 loses `start` between iterations then.
        row, start, end, partial, copy = load_number(
            items_ptr, number, num_items, own_rows, num_partials, COPIES
        )
        # [E, H, C] and [E, H]
        z_i = load_row(z_dst_ptr, row, H * C, cell, in_row, BLOCK_E).to(tl.float32)
        dout = load_row(dout_ptr, row, H * C, cell, in_row, BLOCK_E).to(tl.float32)
        lse = load_row(statistics_ptr, row, 2 * H, heads, in_heads, BLOCK_E)
        delta = load_row(statistics_ptr + H, row, 2 * H, heads, in_heads, BLOCK_E)
        # sum over j of dlogit leaky'(v), [E, H, C]
        dv = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
        for s in tl.range(start, end, BLOCK_E * UNROLL, num_stages=STAGES):
            rows_j = ()
            for k in tl.static_range(UNROLL):
                slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
                j = _load_end(other_ptr, slots, end)
                if COPIES:
                    j += copy * other_rows
                other_row = j[:, None, None] * (H * C)
                # [E, H, C]
                z = tl.load(z_cells + other_row, mask=in_row[None], other=0.0)
                rows_j = rows_j + (z,)
            for k in tl.static_range(UNROLL):
                slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)  # [E]
                valid = slots < end
                inside = valid[:, None, None] & in_row[None]
                z = widen(rows_j[k])
                v = z + z_i
                place = slots.to(tl.int64)
                if EDGE or D or WEIGHT or BIAS or DWEIGHT:
                    place = tl.load(position_ptr + slots, mask=valid, other=0).to(
                        tl.int64
                    )
                # Where the edge's inputs are, and its results.
                of_edge, own = place + copy * edge_step, place + copy * num_edges
                own_head = own[:, None] * H + heads[None, :]
                valid_head = valid[:, None] & in_heads[None, :]
                if EDGE:
                    edge_cell = of_edge[:, None, None] * (H * C) + cell[None]
                    edge = tl.load(edge_ptr + edge_cell, mask=inside, other=0.0)
                    v += edge.to(tl.float32)
                if D:
                    x = load_features(edge_x_ptr, of_edge, valid, D)
                    v = add_projected(v, x, edge_map, D)
                slope_v = tl.where(v > 0, 1.0, slope)  # leaky'(v), [E, H, C]
                leaky_v = v * slope_v
                logit = tl.sum(leaky_v * att, axis=2)  # [E, H]
                if BIAS:
                    bias = edge_bias_ptr + of_edge[:, None] * H + heads[None, :]
                    logit += tl.load(bias, mask=valid_head, other=0.0)
                alpha = exp(logit - lse)
                alpha = tl.where(valid[:, None], alpha, 0.0)
                dalpha = tl.sum(z * dout, axis=2)
                if DWEIGHT:
                    dalpha += tl.load(dweight_ptr + own_head, valid_head, other=0.0)
                if DROPOUT or WEIGHT:
                    factor, keep = factors_of_edges(
                        edge_id_ptr, edge_weight_ptr, slots, valid, of_edge, seed_ptr,
                        heads, in_heads, H, copy, threshold, keep_scale,
                        DROPOUT, WEIGHT,
                    )  # fmt: skip
                    if WEIGHT:
                        dweight = alpha * keep * dalpha
                        tl.store(dedge_weight_ptr + own_head, dweight, mask=valid_head)
                    dalpha *= factor
                dlogit = alpha * (dalpha - delta)  # [E, H]
                if BIAS:
                    tl.store(dedge_bias_ptr + own_head, dlogit, mask=valid_head)
                dlogit_wide = dlogit[:, :, None]
                if EDGE:
                    dedge = (dlogit_wide * slope_v * att).to(dedge_ptr.dtype.element_ty)
                    edge_cell = own[:, None, None] * (H * C) + cell[None]
                    tl.store(dedge_ptr + edge_cell, dedge, mask=inside)
                if D:
                    dv_ij = dlogit_wide * slope_v * att  # [E, H, C]
                    dedge_map = add_to_map(dedge_map, x, dv_ij, D)
                    if DEDGE_X:
                        # The part of this tile of heads.
                        edges = total_items // num_items * num_edges.to(tl.int64)
                        first = tl.program_id(1).to(tl.int64) * edges
                        store_features(
                            dedge_x_ptr, edge_map, dv_ij, first + own, valid, D
                        )
                dv += dlogit_wide * slope_v
                datt += dlogit_wide * leaky_v
        dz = tl.sum(dv * att, axis=0, keep_dims=True)
        store_row(dz_dst_ptr, part_ptr, dz, row, partial, H * C, cell, in_row)
    target = datt_ptr + program.to(tl.int64) * (H * C) + cell[None]
    tl.store(target, tl.sum(datt, axis=0, keep_dims=True), mask=in_row[None])
    if D:
        target = dedge_map_ptr + program.to(tl.int64) * (D * H * C)
        store_map(target, dedge_map, cell, in_row, H * C, D)


@triton.jit(do_not_specialize=[*Work._fields, "threshold", "num_heads"])
def _source_kernel(
    dout_ptr, dweight_ptr, z_src_ptr, z_dst_ptr, att_ptr, edge_ptr,
    edge_x_ptr, edge_map_ptr, edge_weight_ptr, edge_bias_ptr, statistics_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_src_ptr, part_ptr, seed_ptr,
    num_items, own_rows, other_rows, num_edges, edge_step, num_partials,
    threshold, keep_scale, slope, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, EDGE: tl.constexpr,
    D: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr,
    DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr, STAGES: tl.constexpr,
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
    first = copy * other_rows
    z_cells = (z_dst_ptr + first * (H * C) + cell)[None]
    dout_cells = (dout_ptr + first * (H * C) + cell)[None]
    statistics_cells = (statistics_ptr + first * (2 * H) + heads)[None]
    # [E, H, C]
    z_j = load_row(z_src_ptr, row, H * C, cell, in_row, BLOCK_E).to(tl.float32)
    dz = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)  # [E, H, C]
    for s in tl.range(start, end, BLOCK_E * UNROLL, num_stages=STAGES):
        rows_i = ()
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            i = _load_end(other_ptr, slots, end)
            column = statistics_cells + i[:, None] * (2 * H)
            # [E, H]
            lse = tl.load(column, mask=in_heads[None], other=float("inf"))
            delta = tl.load(column + H, mask=in_heads[None], other=0.0)
            other_row = i[:, None, None] * (H * C)
            # z_i, [E, H, C]
            z = tl.load(z_cells + other_row, mask=in_row[None], other=0.0)
            # dout_i, [E, H, C]
            dout = tl.load(dout_cells + other_row, mask=in_row[None], other=0.0)
            rows_i = rows_i + ((z, dout, lse, delta),)
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            valid = slots < end
            in_table = valid[:, None, None] & in_row[None]
            valid_head = valid[:, None] & in_heads[None, :]
            v = widen(rows_i[k][0]) + z_j
            dout = widen(rows_i[k][1])
            # Past the end of the row the weight is exp(-inf) = 0.
            lse = tl.where(valid[:, None], rows_i[k][2], float("inf"))
            delta = rows_i[k][3]
            place = slots.to(tl.int64)
            if EDGE or D or WEIGHT or BIAS or DWEIGHT:
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
            logit = tl.sum(v * slope_att, axis=2)  # [E, H]
            if BIAS:
                bias = edge_bias_ptr + of_edge[:, None] * H + heads[None, :]
                logit += tl.load(bias, mask=valid_head, other=0.0)
            alpha = exp(logit - lse)
            dalpha = tl.sum(dout * z_j, axis=2)  # [E, H]
            weight = alpha
            if DWEIGHT:
                own = (place + copy * num_edges)[:, None] * H + heads[None, :]
                dalpha += tl.load(dweight_ptr + own, mask=valid_head, other=0.0)
            if DROPOUT or WEIGHT:
                factor, _keep = factors_of_edges(
                    edge_id_ptr, edge_weight_ptr, slots, valid, of_edge, seed_ptr,
                    heads, in_heads, H, copy, threshold, keep_scale,
                    DROPOUT, WEIGHT,
                )  # fmt: skip
                weight *= factor
                dalpha *= factor
            dlogit = alpha * (dalpha - delta)
            dz += weight[:, :, None] * dout
            dz += dlogit[:, :, None] * slope_att
    dz = tl.sum(dz, axis=0, keep_dims=True)
    store_row(dz_src_ptr, part_ptr, dz, row, partial, H * C, cell, in_row)


def statistics_options(saved: Saved) -> dict[str, Any]:
    """The arguments of `sums.statistics` for this attention."""
    return {"score": None, "split_lse": False}


def backward(call: Backward, table: Tensor | None = None) -> tuple[Tensor, ...]:
    """The gradients of all inputs; without rows where they are absent.

    Args:
        call: The call.
        table: What `statistics` would return, where it is known already.
    """
    saved, (negative_slope,), copies = call.saved, call.settings, call.copies
    by_target, by_source = saved.by_target, saved.by_source
    assert by_source is not None
    dout, dweights = call.dout.contiguous(), contiguous_or_none(call.dweights)
    inputs = [contiguous_or_none(x) for x in saved.inputs]
    z_src, z_dst, given, edge, edge_x, edge_map, theta, edge_weight, edge_bias = inputs
    assert z_src is not None
    assert z_dst is not None
    assert given is not None
    att = divide(Vectors(given, None, theta))[0]
    heads, channels = given.shape
    dz_src, dz_dst = torch.empty_like(z_src), torch.empty_like(z_dst)
    edges = copies * by_target.other.size(0)
    dedge = _empty_or_zeros(edge, z_dst, edges, heads, channels)
    dedge_weight = _empty_or_zeros(edge_weight, att, edges, heads)
    dedge_bias = _empty_or_zeros(edge_bias, att, edges, heads)
    width = 0 if edge_x is None else edge_x.size(1)
    most_programs, (usual, stages) = _TARGET_PROGRAMS, _backward_tile(z_src)
    if edge_x is not None:
        usual, stages = features_tile(z_src, width), 1
        most_programs = min(most_programs, _FEATURE_PROGRAMS)
    dropout = dropout_arguments(call.dropout, saved.dropout_seed)
    numbers = (dropout.threshold, dropout.keep_scale, float(negative_slope), heads)
    flags = (edge is not None, width, edge_weight is not None, edge_bias is not None)
    flags += (dweights is not None, dropout.on, stages)
    if table is None:
        call = call._replace(dout=dout, dweights=dweights)
        table = statistics(call, forward, **statistics_options(saved))
    maps = (edge_x, map_by_feature(edge_map), edge_weight, edge_bias)
    tensors = (dout, dweights, z_src, z_dst, att, edge, *maps, table)
    of_edges = (edge, edge_x, edge_weight, edge_bias)

    plan = schedule(by_target.pointer)
    work = plan.work(by_target, z_src.size(0) // copies, copies, of_edges)
    tile = usual.fit(work.is_short(copies), heads)
    blocks, items = divide_up(heads, tile.heads), copies * work.num_items
    programs = min(items, most_programs)
    part = plan.new_partials(att, heads * channels, copies=copies)
    datt = att.new_empty(programs, heads, channels)
    dedge_x, dmap, wants_x = None, None, edge_x is not None and call.wanted[4]
    if edge_x is not None:
        if wants_x:
            # A padded edge, which no row has, has gradient 0.
            dedge_x = att.new_zeros(blocks, edges, width)
        dmap = att.new_empty(programs, width, heads, channels)
    launch(
        _target_kernel,
        (programs, blocks),
        (
            *tensors, plan.items, *by_target[1:], dz_dst, datt, dedge, dedge_x, dmap,
            dedge_weight, dedge_bias, part, dropout.seed,
        ),
        (*work, items, *numbers),
        (*tile.constants(heads, channels), *flags, wants_x, copies > 1),
        tile.warps,
    )  # fmt: skip
    merge_sum(plan, part, dz_dst, copies=copies)

    plan = schedule(by_source.pointer)
    work = plan.work(by_source, z_dst.size(0) // copies, copies, of_edges)
    part = plan.new_partials(att, heads * channels, copies=copies)
    tile = usual.fit(work.is_short(copies), heads)
    launch(
        _source_kernel,
        (copies * work.num_items, divide_up(heads, tile.heads)),
        (*tensors, plan.items, *by_source[1:], dz_src, part, dropout.seed),
        (*work, *numbers),
        (*tile.constants(heads, channels), *flags, copies > 1),
        tile.warps,
    )
    merge_sum(plan, part, dz_src, copies=copies)
    dx, dedge_map = att.new_empty(0, width), att.new_empty(heads, channels, 0)
    if dedge_x is not None:
        dx = dedge_x[0] if blocks == 1 else dedge_x.sum(0)
    elif edge_x is not None:
        dx = torch.zeros_like(edge_x)
    if dmap is not None:
        dedge_map = dmap.sum(0).permute(1, 2, 0).contiguous()
    datt, dtheta = divide_backward(datt.sum(0), given, theta)
    features = (dedge, dx, dedge_map, dtheta)
    return dz_src, dz_dst, datt, *features, dedge_weight, dedge_bias


def _empty_or_zeros(x: Tensor | None, like: Tensor, rows: int, *shape: int) -> Tensor:
    """Memory for the gradient of an input of edges; no rows if it is absent."""
    # A padded edge, which no row has, has gradient 0.
    return like.new_zeros(0 if x is None else rows, *shape)
