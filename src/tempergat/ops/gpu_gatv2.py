# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""GATv2's attention in Triton.

The forward pass reads one feature row per edge. The backward pass recomputes the
logits twice: by target (one row per edge; gives the gradients of z_dst, att and edge)
and by source (two rows per edge; gives the gradient of z_src).
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu_kernels import (
    cells_of_tile,
    choose_tile,
    dropout_arguments,
    keep_factor,
    merge_softmax,
    merge_sum,
    normalise,
    on_device,
    segment_sum,
    statistics,
)
from tempergat.ops.gpu_schedule import schedule

# Programs of the pass by target, each of which keeps a sum for att's gradient: a few
# times what a large device runs at once, and a bounded buffer on any graph.
_TARGET_PROGRAMS = 16384


@triton.jit
def _forward_kernel(
    z_src_ptr, z_dst_ptr, att_ptr, edge_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    out_ptr, lse_ptr, logit_ptr, part_ptr, part_statistics_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    EXACT: tl.constexpr, EDGE: tl.constexpr, LOGIT: tl.constexpr,
    DROPOUT: tl.constexpr,
):  # fmt: skip
    item = items_ptr + tl.program_id(0).to(tl.int64) * 4
    row = tl.load(item).to(tl.int64)
    start = tl.load(item + 1)
    end = tl.load(item + 2)
    partial = tl.load(item + 3).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H

    att = tl.load(att_ptr + cell, mask=within, other=0.0)
    z_i = tl.load(z_dst_ptr + row * (H * C) + cell, mask=within, other=0.0)
    z_i = z_i.to(tl.float32)
    top = tl.full([BLOCK_H], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    summed = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
    slots = start + tl.arange(0, BLOCK_E)
    following = tl.load(other_ptr + slots, mask=slots < end, other=0)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        live = slots < end
        inside = live[:, None, None] & within[None]
        j = following.to(tl.int64)
        # The next step's indices are on their way while this step's rows arrive.
        following = tl.load(
            other_ptr + slots + BLOCK_E, mask=slots + BLOCK_E < end, other=0
        )
        z = tl.load(
            z_src_ptr + j[:, None, None] * (H * C) + cell[None], mask=inside, other=0.0
        ).to(tl.float32)
        v = z + z_i[None]
        if EDGE or LOGIT:
            place = tl.load(position_ptr + slots, mask=live, other=0).to(tl.int64)
        if EDGE:
            edge_cell = place[:, None, None] * (H * C) + cell[None]
            v += tl.load(edge_ptr + edge_cell, mask=inside, other=0.0).to(tl.float32)
        v = tl.where(v > 0, v, v * slope)
        logit = tl.sum(v * att[None], axis=2)
        if LOGIT:
            target = logit_ptr + place[:, None] * H + heads[None, :]
            tl.store(target, logit, mask=live[:, None] & head_within[None, :])
        logit = tl.where(live[:, None], logit, -float("inf"))
        higher = tl.maximum(top, tl.max(logit, axis=0))
        # A logit of minus infinity weighs nothing, even when it comes first.
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        weight = tl.exp(logit - safe[None, :])
        shrink = tl.exp(top - safe)
        total = total * shrink + tl.sum(weight, axis=0)
        if DROPOUT:
            ids = tl.load(edge_id_ptr + slots, mask=live, other=0)
            weight *= keep_factor(
                seed_ptr, heads, head_within, ids, threshold, keep_scale
            )
        summed = summed * shrink[:, None] + tl.sum(weight[:, :, None] * z, axis=0)
        top = higher

    if partial >= 0:
        tl.store(part_ptr + partial * (H * C) + cell, summed, mask=within)
        target = part_statistics_ptr + partial * (2 * H) + heads
        tl.store(target, top, mask=head_within)
        tl.store(target + H, total, mask=head_within)
    else:
        filled = end > start
        result = tl.where(filled, summed / total[:, None], 0.0)
        lse = tl.where(filled, top + tl.log(total), 0.0)
        result = result.to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + row * (H * C) + cell, result, mask=within)
        tl.store(lse_ptr + row * H + heads, lse, mask=head_within)


def forward(
    z_src: Tensor,
    z_dst: Tensor,
    att: Tensor,
    edge: Tensor | None,
    dropout_seed: Tensor | None,
    by_target: Sequence[Tensor],
    negative_slope: float,
    dropout: float,
    weights: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The output, the log-sum-exp of each row and, if asked for, the weights."""
    pointer, other, position, edge_id = by_target
    z_src, z_dst, att = z_src.contiguous(), z_dst.contiguous(), att.contiguous()
    edge = None if edge is None else edge.contiguous()
    rows, (_, heads, channels) = pointer.size(0) - 1, z_src.shape
    out = z_src.new_empty(rows, heads, channels)
    lse = att.new_empty(rows, heads)
    # Edges that no row reaches weigh nothing.
    logit = att.new_zeros(other.size(0) if weights else 0, heads)
    dropped = dropout_arguments(dropout, dropout_seed)
    tile = choose_tile(heads, channels)
    with on_device(z_src):
        plan = schedule(pointer)
        part = att.new_empty(plan.num_partials, heads, channels)
        part_statistics = att.new_empty(plan.num_partials, 2, heads)
        grid = (plan.items.size(0), triton.cdiv(heads, tile.heads))
        if grid[0]:
            _forward_kernel[grid](
                z_src, z_dst, att, edge,
                plan.items, other, position, edge_id,
                out, lse, logit, part, part_statistics,
                slope=negative_slope, H=heads, C=channels,
                BLOCK_E=tile.edges, BLOCK_H=tile.heads, BLOCK_C=tile.channels,
                EXACT=heads % tile.heads == 0 and channels == tile.channels,
                EDGE=edge is not None, LOGIT=weights,
                num_warps=tile.warps, **dropped,
            )  # fmt: skip
        merge_softmax(plan, part, part_statistics, out, lse)
        if weights:
            normalise(plan, by_target, lse, logit, dropped)
    return out, lse, logit


@triton.jit
def _target_kernel(
    dout_ptr, dweight_ptr, z_src_ptr, z_dst_ptr, att_ptr, edge_ptr, statistics_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr, num_items,
    dz_dst_ptr, datt_ptr, dedge_ptr, part_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    EXACT: tl.constexpr, EDGE: tl.constexpr, DWEIGHT: tl.constexpr,
    DROPOUT: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H
    att = tl.load(att_ptr + cell, mask=within, other=0.0)
    datt = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
    for number in range(program, num_items, tl.num_programs(0)):
        item = items_ptr + number * 4
        row = tl.load(item).to(tl.int64)
        start = tl.load(item + 1)
        end = tl.load(item + 2)
        partial = tl.load(item + 3).to(tl.int64)
        own = row * (H * C) + cell
        z_i = tl.load(z_dst_ptr + own, mask=within, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + own, mask=within, other=0.0).to(tl.float32)
        column = statistics_ptr + row * (2 * H) + heads
        lse = tl.load(column, mask=head_within, other=float("inf"))
        delta = tl.load(column + H, mask=head_within, other=0.0)
        dz = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
        slots = start + tl.arange(0, BLOCK_E)
        following = tl.load(other_ptr + slots, mask=slots < end, other=0)
        for s in range(start, end, BLOCK_E):
            slots = s + tl.arange(0, BLOCK_E)
            live = slots < end
            inside = live[:, None, None] & within[None]
            j = following.to(tl.int64)
            following = tl.load(
                other_ptr + slots + BLOCK_E, mask=slots + BLOCK_E < end, other=0
            )
            z = tl.load(
                z_src_ptr + j[:, None, None] * (H * C) + cell[None],
                mask=inside, other=0.0,
            ).to(tl.float32)  # fmt: skip
            v = z + z_i[None]
            if EDGE or DWEIGHT:
                place = tl.load(position_ptr + slots, mask=live, other=0).to(tl.int64)
            if EDGE:
                edge_cell = place[:, None, None] * (H * C) + cell[None]
                edge = tl.load(edge_ptr + edge_cell, mask=inside, other=0.0)
                v += edge.to(tl.float32)
            slopes = tl.where(v > 0, 1.0, slope)
            activated = v * slopes
            logit = tl.sum(activated * att[None], axis=2)
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
            dlogit = (alpha * (dalpha - delta[None, :]))[:, :, None]
            dv = dlogit * slopes
            if EDGE:
                dedge = (dv * att[None]).to(dedge_ptr.dtype.element_ty)
                tl.store(dedge_ptr + edge_cell, dedge, mask=inside)
            dz += tl.sum(dv, axis=0)
            datt += tl.sum(dlogit * activated, axis=0)
        dz *= att
        if partial >= 0:
            tl.store(part_ptr + partial * (H * C) + cell, dz, mask=within)
        else:
            tl.store(dz_dst_ptr + own, dz.to(dz_dst_ptr.dtype.element_ty), mask=within)
    tl.store(datt_ptr + program * (H * C) + cell, datt, mask=within)


@triton.jit
def _source_kernel(
    dout_ptr, dweight_ptr, z_src_ptr, z_dst_ptr, att_ptr, edge_ptr, statistics_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_src_ptr, part_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    EXACT: tl.constexpr, EDGE: tl.constexpr, DWEIGHT: tl.constexpr,
    DROPOUT: tl.constexpr,
):  # fmt: skip
    item = items_ptr + tl.program_id(0).to(tl.int64) * 4
    row = tl.load(item).to(tl.int64)
    start = tl.load(item + 1)
    end = tl.load(item + 2)
    partial = tl.load(item + 3).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H

    own = row * (H * C) + cell
    att = tl.load(att_ptr + cell, mask=within, other=0.0)
    z_j = tl.load(z_src_ptr + own, mask=within, other=0.0).to(tl.float32)
    dz = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
    slots = start + tl.arange(0, BLOCK_E)
    following = tl.load(other_ptr + slots, mask=slots < end, other=0)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        live = slots < end
        inside = live[:, None, None] & within[None]
        i = following.to(tl.int64)
        following = tl.load(
            other_ptr + slots + BLOCK_E, mask=slots + BLOCK_E < end, other=0
        )
        theirs = i[:, None, None] * (H * C) + cell[None]
        v = tl.load(z_dst_ptr + theirs, mask=inside, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + theirs, mask=inside, other=0.0).to(tl.float32)
        live_head = live[:, None] & head_within[None, :]
        column = statistics_ptr + i[:, None] * (2 * H) + heads[None, :]
        # A weight of an edge that is not there is exp(-inf).
        lse = tl.load(column, mask=live_head, other=float("inf"))
        delta = tl.load(column + H, mask=live_head, other=0.0)
        v += z_j[None]
        if EDGE or DWEIGHT:
            place = tl.load(position_ptr + slots, mask=live, other=0).to(tl.int64)
        if EDGE:
            edge_cell = place[:, None, None] * (H * C) + cell[None]
            v += tl.load(edge_ptr + edge_cell, mask=inside, other=0.0).to(tl.float32)
        gain = tl.where(v > 0, att[None], att[None] * slope)
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
        dz += tl.sum(weight[:, :, None] * dout + dlogit[:, :, None] * gain, axis=0)

    if partial >= 0:
        tl.store(part_ptr + partial * (H * C) + cell, dz, mask=within)
    else:
        tl.store(dz_src_ptr + own, dz.to(dz_src_ptr.dtype.element_ty), mask=within)


def backward(
    dout: Tensor,
    dweights: Tensor | None,
    z_src: Tensor,
    z_dst: Tensor,
    att: Tensor,
    edge: Tensor | None,
    dropout_seed: Tensor | None,
    out: Tensor,
    lse: Tensor,
    by_target: Sequence[Tensor],
    by_source: Sequence[Tensor],
    negative_slope: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of z_src, z_dst, att and edge (no rows: absent)."""
    dout, att = dout.contiguous(), att.contiguous()
    z_src, z_dst = z_src.contiguous(), z_dst.contiguous()
    edge = None if edge is None else edge.contiguous()
    dweights = None if dweights is None else dweights.contiguous()
    _, heads, channels = z_src.shape
    dz_src, dz_dst = torch.empty_like(z_src), torch.empty_like(z_dst)
    dedge = z_dst.new_empty(0, heads, channels)
    if edge is not None:
        dedge = torch.zeros_like(edge)
    tile = choose_tile(heads, channels)
    blocks = triton.cdiv(heads, tile.heads)
    settings = {
        "slope": negative_slope, "H": heads, "C": channels,
        "BLOCK_E": tile.edges, "BLOCK_H": tile.heads, "BLOCK_C": tile.channels,
        "EXACT": heads % tile.heads == 0 and channels == tile.channels,
        "EDGE": edge is not None, "DWEIGHT": dweights is not None,
        "num_warps": tile.warps, **dropout_arguments(dropout, dropout_seed),
    }  # fmt: skip
    with on_device(z_src):
        target_plan = schedule(by_target[0])
        extra = None
        if dweights is not None:
            _, _, weights = forward(
                z_src, z_dst, att, edge, dropout_seed, by_target,
                negative_slope, dropout, True,
            )  # fmt: skip
            extra = segment_sum(target_plan, by_target, weights, dweights)
        table = statistics(dout, out, lse, extra, None)
        tensors = (dout, dweights, z_src, z_dst, att, edge, table)

        items = target_plan.items.size(0)
        programs = min(items, _TARGET_PROGRAMS)
        part = att.new_empty(target_plan.num_partials, heads, channels)
        datt = att.new_empty(programs, heads, channels)
        if programs:
            _target_kernel[(programs, blocks)](
                *tensors, target_plan.items, *by_target[1:], items,
                dz_dst, datt, dedge, part, **settings,
            )  # fmt: skip
        merge_sum(target_plan, part, dz_dst)

        plan = schedule(by_source[0])
        part = att.new_empty(plan.num_partials, heads, channels)
        if plan.items.size(0):
            _source_kernel[(plan.items.size(0), blocks)](
                *tensors, plan.items, *by_source[1:], dz_src, part, **settings
            )
        merge_sum(plan, part, dz_src)
    return dz_src, dz_dst, datt.sum(0), dedge
