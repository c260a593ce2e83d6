# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""GAT's attention in Triton: one read of each edge's feature row per pass."""

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


@triton.jit
def _forward_kernel(
    z_ptr, score_src_ptr, score_dst_ptr, edge_score_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    out_ptr, lse_ptr, logit_ptr, part_ptr, part_statistics_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    EXACT: tl.constexpr, SCORE_DST: tl.constexpr, EDGE: tl.constexpr,
    LOGIT: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    item = items_ptr + tl.program_id(0).to(tl.int64) * 4
    row = tl.load(item).to(tl.int64)
    start = tl.load(item + 1)
    end = tl.load(item + 2)
    partial = tl.load(item + 3).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H

    if SCORE_DST:
        score_i = tl.load(score_dst_ptr + row * H + heads, mask=head_within, other=0.0)
    top = tl.full([BLOCK_H], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    summed = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
    slots = start + tl.arange(0, BLOCK_E)
    following = tl.load(other_ptr + slots, mask=slots < end, other=0)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        live = slots < end
        j = following.to(tl.int64)
        # The next step's indices are on their way while this step's rows arrive.
        following = tl.load(
            other_ptr + slots + BLOCK_E, mask=slots + BLOCK_E < end, other=0
        )
        z = tl.load(
            z_ptr + j[:, None, None] * (H * C) + cell[None],
            mask=live[:, None, None] & within[None], other=0.0,
        ).to(tl.float32)  # fmt: skip
        live_head = live[:, None] & head_within[None, :]
        u = tl.load(
            score_src_ptr + j[:, None] * H + heads[None, :], mask=live_head, other=0.0
        )
        if SCORE_DST:
            u += score_i[None, :]
        if EDGE or LOGIT:
            place = tl.load(position_ptr + slots, mask=live, other=0).to(tl.int64)
            edge_cell = place[:, None] * H + heads[None, :]
        if EDGE:
            u += tl.load(edge_score_ptr + edge_cell, mask=live_head, other=0.0)
        logit = tl.where(u > 0, u, u * slope)
        if LOGIT:
            tl.store(logit_ptr + edge_cell, logit, mask=live_head)
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
    z: Tensor,
    score_src: Tensor,
    score_dst: Tensor | None,
    edge_score: Tensor | None,
    dropout_seed: Tensor | None,
    by_target: Sequence[Tensor],
    negative_slope: float,
    dropout: float,
    weights: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The output, the log-sum-exp of each row and, if asked for, the weights."""
    pointer, other, position, edge_id = by_target
    z, score_src = z.contiguous(), score_src.contiguous()
    score_dst = None if score_dst is None else score_dst.contiguous()
    edge_score = None if edge_score is None else edge_score.contiguous()
    rows, (_, heads, channels) = pointer.size(0) - 1, z.shape
    out = z.new_empty(rows, heads, channels)
    lse = score_src.new_empty(rows, heads)
    # Edges that no row reaches weigh nothing.
    logit = score_src.new_zeros(other.size(0) if weights else 0, heads)
    dropped = dropout_arguments(dropout, dropout_seed)
    tile = choose_tile(heads, channels)
    with on_device(z):
        plan = schedule(pointer)
        part = score_src.new_empty(plan.num_partials, heads, channels)
        part_statistics = score_src.new_empty(plan.num_partials, 2, heads)
        grid = (plan.items.size(0), triton.cdiv(heads, tile.heads))
        if grid[0]:
            _forward_kernel[grid](
                z, score_src, score_dst, edge_score,
                plan.items, other, position, edge_id,
                out, lse, logit, part, part_statistics,
                slope=negative_slope, H=heads, C=channels,
                BLOCK_E=tile.edges, BLOCK_H=tile.heads, BLOCK_C=tile.channels,
                EXACT=heads % tile.heads == 0 and channels == tile.channels,
                SCORE_DST=score_dst is not None, EDGE=edge_score is not None,
                LOGIT=weights, num_warps=tile.warps, **dropped,
            )  # fmt: skip
        merge_softmax(plan, part, part_statistics, out, lse)
        if weights:
            normalise(plan, by_target, lse, logit, dropped)
    return out, lse, logit


@triton.jit
def _backward_kernel(
    dout_ptr, dweight_ptr, z_ptr, score_src_ptr, statistics_ptr, edge_score_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_ptr, dscore_ptr, du_ptr, part_ptr, part_score_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    EXACT: tl.constexpr, SCORE_DST: tl.constexpr, EDGE: tl.constexpr,
    DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    item = items_ptr + tl.program_id(0).to(tl.int64) * 4
    row = tl.load(item).to(tl.int64)
    start = tl.load(item + 1)
    end = tl.load(item + 2)
    partial = tl.load(item + 3).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H
    COLUMNS: tl.constexpr = 3 if SCORE_DST else 2

    z = tl.load(z_ptr + row * (H * C) + cell, mask=within, other=0.0).to(tl.float32)
    score_j = tl.load(score_src_ptr + row * H + heads, mask=head_within, other=0.0)
    dz = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
    dscore = tl.zeros([BLOCK_H], tl.float32)
    slots = start + tl.arange(0, BLOCK_E)
    following = tl.load(other_ptr + slots, mask=slots < end, other=0)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        live = slots < end
        i = following.to(tl.int64)
        following = tl.load(
            other_ptr + slots + BLOCK_E, mask=slots + BLOCK_E < end, other=0
        )
        place = tl.load(position_ptr + slots, mask=live, other=0).to(tl.int64)
        dout = tl.load(
            dout_ptr + i[:, None, None] * (H * C) + cell[None],
            mask=live[:, None, None] & within[None], other=0.0,
        ).to(tl.float32)  # fmt: skip
        live_head = live[:, None] & head_within[None, :]
        edge_cell = place[:, None] * H + heads[None, :]
        column = statistics_ptr + i[:, None] * (COLUMNS * H) + heads[None, :]
        # A weight of an edge that is not there is exp(-inf).
        lse = tl.load(column, mask=live_head, other=float("inf"))
        delta = tl.load(column + H, mask=live_head, other=0.0)
        u = tl.zeros([BLOCK_E, BLOCK_H], tl.float32) + score_j[None, :]
        if SCORE_DST:
            u += tl.load(column + 2 * H, mask=live_head, other=0.0)
        if EDGE:
            u += tl.load(edge_score_ptr + edge_cell, mask=live_head, other=0.0)
        logit = tl.where(u > 0, u, u * slope)
        alpha = tl.exp(logit - lse)
        weight = alpha
        dalpha = tl.sum(dout * z[None], axis=2)
        if DWEIGHT:
            dalpha += tl.load(dweight_ptr + edge_cell, mask=live_head, other=0.0)
        if DROPOUT:
            ids = tl.load(edge_id_ptr + slots, mask=live, other=0)
            factor = keep_factor(
                seed_ptr, heads, head_within, ids, threshold, keep_scale
            )
            weight *= factor
            dalpha *= factor
        dlogit = alpha * (dalpha - delta)
        du = tl.where(u > 0, dlogit, dlogit * slope)
        tl.store(du_ptr + edge_cell, du, mask=live_head)
        dscore += tl.sum(du, axis=0)
        dz += tl.sum(weight[:, :, None] * dout, axis=0)

    if partial >= 0:
        tl.store(part_ptr + partial * (H * C) + cell, dz, mask=within)
        tl.store(part_score_ptr + partial * H + heads, dscore, mask=head_within)
    else:
        result = dz.to(dz_ptr.dtype.element_ty)
        tl.store(dz_ptr + row * (H * C) + cell, result, mask=within)
        tl.store(dscore_ptr + row * H + heads, dscore, mask=head_within)


def backward(
    dout: Tensor,
    dweights: Tensor | None,
    z: Tensor,
    score_src: Tensor,
    score_dst: Tensor | None,
    edge_score: Tensor | None,
    dropout_seed: Tensor | None,
    out: Tensor,
    lse: Tensor,
    by_target: Sequence[Tensor],
    by_source: Sequence[Tensor],
    negative_slope: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of z, score_src, score_dst and edge_score (no rows: absent)."""
    pointer, other, position, edge_id = by_source
    dout, z, score_src = dout.contiguous(), z.contiguous(), score_src.contiguous()
    score_dst = None if score_dst is None else score_dst.contiguous()
    edge_score = None if edge_score is None else edge_score.contiguous()
    dweights = None if dweights is None else dweights.contiguous()
    rows, heads, channels = z.shape
    dz = torch.empty_like(z)
    dscore_src = torch.empty_like(score_src)
    if edge_score is None:
        du = score_src.new_empty(other.size(0), heads)
    else:
        du = torch.zeros_like(edge_score)
    tile = choose_tile(heads, channels)
    with on_device(z):
        target_plan, plan = schedule(by_target[0]), schedule(pointer)
        extra = None
        if dweights is not None:
            _, _, weights = forward(
                z, score_src, score_dst, edge_score, dropout_seed, by_target,
                negative_slope, dropout, True,
            )  # fmt: skip
            extra = segment_sum(target_plan, by_target, weights, dweights)
        table = statistics(dout, out, lse, extra, score_dst)
        part = score_src.new_empty(plan.num_partials, heads, channels)
        part_score = score_src.new_empty(plan.num_partials, heads)
        grid = (plan.items.size(0), triton.cdiv(heads, tile.heads))
        if grid[0]:
            _backward_kernel[grid](
                dout, dweights, z, score_src, table, edge_score,
                plan.items, other, position, edge_id,
                dz, dscore_src, du, part, part_score,
                slope=negative_slope, H=heads, C=channels,
                BLOCK_E=tile.edges, BLOCK_H=tile.heads, BLOCK_C=tile.channels,
                EXACT=heads % tile.heads == 0 and channels == tile.channels,
                SCORE_DST=score_dst is not None, EDGE=edge_score is not None,
                DWEIGHT=dweights is not None, num_warps=tile.warps,
                **dropout_arguments(dropout, dropout_seed),
            )  # fmt: skip
        merge_sum(plan, part, dz)
        merge_sum(plan, part_score, dscore_src)
        absent = score_src.new_empty(0, heads)
        dscore_dst = absent
        if score_dst is not None:
            dscore_dst = segment_sum(target_plan, by_target, du)
    return dz, dscore_src, dscore_dst, absent if edge_score is None else du
