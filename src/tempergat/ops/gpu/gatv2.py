# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""GATv2's attention in Triton.

The forward pass reads one feature row per edge. The backward pass recomputes the
logits twice: by target (one row per edge; gives the gradients of z_dst, att and edge)
and by source (two rows per edge; gives the gradient of z_src).
"""

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.gpu.kernels import (
    Tile,
    again_with_weights,
    attend,
    cells_of_tile,
    choose_tile,
    dense,
    dropout_of,
    keep_factor,
    load_item,
    merge_sum,
    on_device,
    segment_sum,
    statistics,
    store_softmax,
)
from tempergat.ops.gpu.launch import divide_up, launch
from tempergat.ops.gpu.schedule import schedule

# Programs of the pass by target, each of which serves every n-th item and keeps a sum
# for att's gradient: several times what a large device runs at once, and few enough
# that their sums are small beside the node features.
_TARGET_PROGRAMS = 16384


@functools.cache
def _cache_size(device: int) -> int:
    return int(torch.cuda.get_device_properties(device).L2_cache_size)


def _tile(z: Tensor, lanes: int) -> Tile:
    rows, heads, channels = z.shape
    size, width = z.element_size(), lanes
    if size == 2:
        # Instructions bound half precision: whole rows take the fewest per edge, and
        # registers the number of such rows in flight.
        tile = choose_tile(heads, channels, size, 256, lanes)
        wide = tile.heads * tile.channels >= 256
        return tile._replace(unroll=2) if wide else tile
    if z.is_cuda:
        # A table that just fails to fit the cache is read slice by slice.
        cache = _cache_size(z.get_device())
        slice_width = cache // 2 // (rows * size)
        if z.numel() * size > cache and slice_width >= max(channels, 32):
            width = min(lanes, slice_width)
    return choose_tile(heads, channels, size, width, lanes)


def _backward_tile(z: Tensor) -> tuple[Tile, int]:
    """The tile of both backward passes, and the steps whose rows are on their way."""
    if z.element_size() > 2:
        return _tile(z, lanes=128), 1
    tile = _tile(z, lanes=256)._replace(unroll=2)
    # Rows on their way lie in shared memory, which has no room for many wide ones.
    return tile, 3 if tile.edges * tile.heads * tile.channels <= 1024 else 1


@triton.jit
def _fetch_ends(other_ptr, first, end, BLOCK_E: tl.constexpr, UNROLL: tl.constexpr):
    """The nodes at the other end of a step's edges."""
    nodes = ()
    for k in tl.static_range(UNROLL):
        slots = first + k * BLOCK_E + tl.arange(0, BLOCK_E)
        nodes = nodes + (tl.load(other_ptr + slots, mask=slots < end, other=0),)
    return nodes


@triton.jit
def _fetch_end(other_ptr, first, end, BLOCK_E: tl.constexpr):
    """The nodes at the other end of these edges; past the end, of the last again."""
    slots = tl.minimum(first + tl.arange(0, BLOCK_E), end - 1)
    return tl.load(other_ptr + slots).to(tl.int64)


@triton.jit
def _widen(x):
    """Half precision as float32; two of bfloat16 at a time."""
    if x.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;",
            "=r,=r,r", [x], dtype=tl.float32, is_pure=True, pack=2,
        )  # fmt: skip
    return x.to(tl.float32)


@triton.jit(do_not_specialize=["threshold"])
def _forward_kernel(
    z_src_ptr, z_dst_ptr, att_ptr, edge_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    out_ptr, lse_ptr, logit_ptr, part_ptr, part_statistics_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, EDGE: tl.constexpr, LOGIT: tl.constexpr,
    DROPOUT: tl.constexpr,
):  # fmt: skip
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H

    att = tl.load(att_ptr + cell, mask=within, other=0.0)
    att_below = att * slope
    row, start, end, partial = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    z_i = tl.load(z_dst_ptr + row * (H * C) + cell, mask=within, other=0.0)
    z_i = z_i.to(tl.float32)
    top = tl.full([BLOCK_E, BLOCK_H], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    summed = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    z_cells = (z_src_ptr + cell)[None]
    ahead = _fetch_ends(other_ptr, start, end, BLOCK_E, UNROLL)
    for s in range(start, end, BLOCK_E * UNROLL):
        sources = ahead
        ahead = _fetch_ends(other_ptr, s + BLOCK_E * UNROLL, end, BLOCK_E, UNROLL)
        rows_j = ()
        logits = ()
        factors = ()
        higher = top
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            live = slots < end
            inside = live[:, None, None] & within[None]
            j = sources[k].to(tl.int64)
            z = tl.load(z_cells + j[:, None, None] * (H * C), mask=inside, other=0.0)
            z = _widen(z)
            rows_j = rows_j + (z,)
            v = z + z_i[None]
            if EDGE or LOGIT:
                place = tl.load(position_ptr + slots, mask=live, other=0).to(tl.int64)
            if EDGE:
                edge_cell = place[:, None, None] * (H * C) + cell[None]
                edge = tl.load(edge_ptr + edge_cell, mask=inside, other=0.0)
                v += edge.to(tl.float32)
            gain = tl.where(v > 0, att[None], att_below[None])
            logit = tl.sum(v * gain, axis=2)
            if LOGIT:
                target = logit_ptr + place[:, None] * H + heads[None, :]
                tl.store(target, logit, mask=live[:, None] & head_within[None, :])
            logit = tl.where(live[:, None], logit, -float("inf"))
            logits = logits + (logit,)
            higher = tl.maximum(higher, logit)
            if DROPOUT:
                ids = tl.load(edge_id_ptr + slots, mask=live, other=0)
                factors = factors + (
                    keep_factor(
                        seed_ptr, heads, head_within, ids, threshold, keep_scale
                    ),
                )
        # A logit of minus infinity weighs nothing, even when it comes first.
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        shrink = tl.exp(top - safe)
        top = higher
        total *= shrink
        summed *= shrink[:, :, None]
        for k in tl.static_range(UNROLL):
            weight = tl.exp(logits[k] - safe)
            total += weight
            if DROPOUT:
                weight *= factors[k]
            summed += weight[:, :, None] * rows_j[k]

    store_softmax(
        top, total, summed, end > start, row, partial, heads, cell, within,
        out_ptr, lse_ptr, part_ptr, part_statistics_ptr, H, C,
    )  # fmt: skip


def forward(call: Forward) -> tuple[Tensor, Tensor, Tensor]:
    """Output [T, H, C], log-sum-exp [T, H] and weights [E, H] (or no rows of them)."""
    z_src, _, _, edge = call.inputs
    tile = _tile(z_src, lanes=512 // z_src.element_size())
    return attend(_forward_kernel, tile, call, (edge is not None,))


@triton.jit(do_not_specialize=["num_items", "threshold"])
def _target_kernel(
    dout_ptr, dweight_ptr, z_src_ptr, z_dst_ptr, att_ptr, edge_ptr, statistics_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_dst_ptr, datt_ptr, dedge_ptr, part_ptr,
    seed_ptr, num_items, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, EDGE: tl.constexpr,
    DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H
    att = tl.load(att_ptr + cell, mask=within, other=0.0)
    datt = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    z_cells = (z_src_ptr + cell)[None]
    program = tl.program_id(0).to(tl.int64)
    for number in range(program, num_items, tl.num_programs(0)):
        # Not fetched an item ahead: Triton 3.6 dropped `start` from the carried values.
        row, start, end, partial = load_item(items_ptr, number)
        own = row * (H * C) + cell
        z_i = tl.load(z_dst_ptr + own, mask=within, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + own, mask=within, other=0.0).to(tl.float32)
        column = statistics_ptr + row * (2 * H) + heads
        lse = tl.load(column, mask=head_within, other=float("inf"))
        delta = tl.load(column + H, mask=head_within, other=0.0)
        dv = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
        for s in tl.range(start, end, BLOCK_E * UNROLL, num_stages=STAGES):
            rows_j = ()
            for k in tl.static_range(UNROLL):
                j = _fetch_end(other_ptr, s + k * BLOCK_E, end, BLOCK_E)
                theirs = j[:, None, None] * (H * C)
                z = tl.load(z_cells + theirs, mask=within[None], other=0.0)
                rows_j = rows_j + (z,)
            for k in tl.static_range(UNROLL):
                slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
                live = slots < end
                inside = live[:, None, None] & within[None]
                z = _widen(rows_j[k])
                v = z + z_i[None]
                if EDGE or DWEIGHT:
                    place = tl.load(position_ptr + slots, mask=live, other=0)
                    place = place.to(tl.int64)
                if EDGE:
                    edge_cell = place[:, None, None] * (H * C) + cell[None]
                    edge = tl.load(edge_ptr + edge_cell, mask=inside, other=0.0)
                    v += edge.to(tl.float32)
                steep = tl.where(v > 0, 1.0, slope)
                active = v * steep
                logit = tl.sum(active * att[None], axis=2)
                alpha = tl.where(live[:, None], tl.exp(logit - lse[None, :]), 0.0)
                dalpha = tl.sum(z * dout[None], axis=2)
                if DWEIGHT:
                    dalpha += tl.load(
                        dweight_ptr + place[:, None] * H + heads[None, :],
                        mask=live[:, None] & head_within[None, :], other=0.0,
                    )  # fmt: skip
                if DROPOUT:
                    ids = tl.load(edge_id_ptr + slots, mask=live, other=0)
                    dalpha *= keep_factor(
                        seed_ptr, heads, head_within, ids, threshold, keep_scale
                    )
                dlogit = alpha * (dalpha - delta[None, :])
                dwide = dlogit[:, :, None]
                if EDGE:
                    dedge = (dwide * steep * att[None]).to(dedge_ptr.dtype.element_ty)
                    tl.store(dedge_ptr + edge_cell, dedge, mask=inside)
                dv += dwide * steep
                datt += dwide * active
        dz = tl.sum(dv, axis=0) * att
        if partial >= 0:
            tl.store(part_ptr + partial * (H * C) + cell, dz, mask=within)
        else:
            tl.store(dz_dst_ptr + own, dz.to(dz_dst_ptr.dtype.element_ty), mask=within)
    target = datt_ptr + program * (H * C) + cell
    tl.store(target, tl.sum(datt, axis=0), mask=within)


@triton.jit(do_not_specialize=["threshold"])
def _source_kernel(
    dout_ptr, dweight_ptr, z_src_ptr, z_dst_ptr, att_ptr, edge_ptr, statistics_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_src_ptr, part_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, EDGE: tl.constexpr,
    DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H

    att = tl.load(att_ptr + cell, mask=within, other=0.0)
    att_below = att * slope
    row, start, end, partial = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    own = row * (H * C) + cell
    z_j = tl.load(z_src_ptr + own, mask=within, other=0.0).to(tl.float32)
    dz = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    z_cells, dout_cells = (z_dst_ptr + cell)[None], (dout_ptr + cell)[None]
    lse_cells = (statistics_ptr + heads)[None]
    for s in tl.range(start, end, BLOCK_E * UNROLL, num_stages=STAGES):
        rows_i = ()
        for k in tl.static_range(UNROLL):
            i = _fetch_end(other_ptr, s + k * BLOCK_E, end, BLOCK_E)
            column = lse_cells + i[:, None] * (2 * H)
            lse = tl.load(column, mask=head_within[None], other=float("inf"))
            delta = tl.load(column + H, mask=head_within[None], other=0.0)
            theirs = i[:, None, None] * (H * C)
            z = tl.load(z_cells + theirs, mask=within[None], other=0.0)
            dout = tl.load(dout_cells + theirs, mask=within[None], other=0.0)
            rows_i = rows_i + ((z, dout, lse, delta),)
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            live = slots < end
            inside = live[:, None, None] & within[None]
            live_head = live[:, None] & head_within[None, :]
            v = _widen(rows_i[k][0]) + z_j[None]
            dout = _widen(rows_i[k][1])
            # A weight of an edge that is not there is exp(-inf).
            lse = tl.where(live[:, None], rows_i[k][2], float("inf"))
            delta = rows_i[k][3]
            if EDGE or DWEIGHT:
                place = tl.load(position_ptr + slots, mask=live, other=0).to(tl.int64)
            if EDGE:
                edge_cell = place[:, None, None] * (H * C) + cell[None]
                edge = tl.load(edge_ptr + edge_cell, mask=inside, other=0.0)
                v += edge.to(tl.float32)
            gain = tl.where(v > 0, att[None], att_below[None])
            alpha = tl.exp(tl.sum(v * gain, axis=2) - lse)
            dalpha = tl.sum(dout * z_j[None], axis=2)
            weight = alpha
            if DWEIGHT:
                edge_head = place[:, None] * H + heads[None, :]
                dalpha += tl.load(dweight_ptr + edge_head, mask=live_head, other=0.0)
            if DROPOUT:
                ids = tl.load(edge_id_ptr + slots, mask=live, other=0)
                factor = keep_factor(
                    seed_ptr, heads, head_within, ids, threshold, keep_scale
                )
                weight *= factor
                dalpha *= factor
            dlogit = alpha * (dalpha - delta)
            dz += weight[:, :, None] * dout
            dz += dlogit[:, :, None] * gain

    dz = tl.sum(dz, axis=0)
    if partial >= 0:
        tl.store(part_ptr + partial * (H * C) + cell, dz, mask=within)
    else:
        tl.store(dz_src_ptr + own, dz.to(dz_src_ptr.dtype.element_ty), mask=within)


def backward(call: Backward) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of z_src, z_dst, att and edge (no rows: absent)."""
    saved, (negative_slope,) = call.saved, call.settings
    by_target, by_source, out = saved.by_target, saved.by_source, saved.out
    assert by_source is not None
    dout, dweights = call.dout.contiguous(), dense(call.dweights)
    z_src, z_dst, att, edge = map(dense, saved.inputs)
    assert z_src is not None
    assert z_dst is not None
    assert att is not None
    _, heads, channels = z_src.shape
    dz_src, dz_dst = torch.empty_like(z_src), torch.empty_like(z_dst)
    dedge = z_dst.new_empty(0, heads, channels)
    if edge is not None:
        dedge = torch.zeros_like(edge)
    tile, stages = _backward_tile(z_src)
    blocks = divide_up(heads, tile.heads)
    dropped = dropout_of(call.dropout, saved.dropout_seed)
    numbers = (dropped.threshold, dropped.keep_scale, negative_slope)
    constants = (
        *tile.constants(heads, channels), edge is not None, dweights is not None,
        dropped.on, stages,
    )  # fmt: skip
    with on_device(z_src):
        target_plan = schedule(by_target.pointer)
        extra = None
        if dweights is not None:
            _, _, weights = forward(again_with_weights(call))
            extra = segment_sum(
                target_plan, out.size(0), by_target.position, weights, dweights
            )
        table = statistics(dout, out, saved.lse, extra, None)
        tensors = (dout, dweights, z_src, z_dst, att, edge, table)

        items = target_plan.items.size(0)
        programs = min(items, _TARGET_PROGRAMS)
        part = att.new_empty(target_plan.num_partials, heads * channels)
        datt = att.new_empty(programs, heads, channels)
        launch(
            _target_kernel,
            (programs, blocks),
            (
                *tensors, target_plan.items, *by_target[1:],
                dz_dst, datt, dedge, part, dropped.seed,
            ),
            (items, *numbers),
            constants,
            tile.warps,
        )  # fmt: skip
        merge_sum(target_plan, part, dz_dst)

        plan = schedule(by_source.pointer)
        part = att.new_empty(plan.num_partials, heads * channels)
        launch(
            _source_kernel,
            (plan.items.size(0), blocks),
            (*tensors, plan.items, *by_source[1:], dz_src, part, dropped.seed),
            numbers,
            constants,
            tile.warps,
        )
        merge_sum(plan, part, dz_src)
    return dz_src, dz_dst, datt.sum(0), dedge
