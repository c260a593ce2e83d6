# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""GAT's attention in Triton: one read of each edge's feature row per pass."""

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
from tempergat.ops.gpu.schedule import schedule, slots_by_source


def _tile(z: Tensor) -> Tile:
    _, heads, channels = z.shape
    size = z.element_size()
    width = 256 if channels >= 32 else 128
    return choose_tile(heads, channels, size, width, lanes=512 // size)


@triton.jit(do_not_specialize=["threshold"])
def _forward_kernel(
    z_ptr, score_src_ptr, score_dst_ptr, edge_score_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    out_ptr, lse_ptr, logit_ptr, part_ptr, part_statistics_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, SCORE_DST: tl.constexpr,
    EDGE: tl.constexpr, LOGIT: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H
    row, start, end, partial = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    if SCORE_DST:
        score_i = tl.load(score_dst_ptr + row * H + heads, mask=head_within, other=0.0)
    top = tl.full([BLOCK_E, BLOCK_H], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    summed = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    for s in range(start, end, BLOCK_E * UNROLL):
        rows_j = ()
        logits = ()
        factors = ()
        higher = top
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            live = slots < end
            j = tl.load(other_ptr + slots, mask=live, other=0).to(tl.int64)
            z = tl.load(
                z_ptr + j[:, None, None] * (H * C) + cell[None],
                mask=live[:, None, None] & within[None], other=0.0,
            )  # fmt: skip
            rows_j = rows_j + (z,)
            live_head = live[:, None] & head_within[None, :]
            u = tl.load(
                score_src_ptr + j[:, None] * H + heads[None, :],
                mask=live_head, other=-float("inf"),
            )  # fmt: skip
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
            summed += weight[:, :, None] * rows_j[k].to(tl.float32)

    store_softmax(
        top, total, summed, end > start, row, partial, heads, cell, within,
        out_ptr, lse_ptr, part_ptr, part_statistics_ptr, H, C,
    )  # fmt: skip


def forward(call: Forward) -> tuple[Tensor, Tensor, Tensor]:
    """Output [T, H, C], log-sum-exp [T, H] and weights [E, H] (or no rows of them)."""
    z, _, score_dst, edge_score = call.inputs
    flags = (score_dst is not None, edge_score is not None)
    return attend(_forward_kernel, _tile(z), call, flags)


@triton.jit(do_not_specialize=["threshold"])
def _backward_kernel(
    dout_ptr, dweight_ptr, z_ptr, score_src_ptr, statistics_ptr, edge_score_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_ptr, dscore_ptr, du_ptr, part_ptr, part_score_ptr,
    seed_ptr, threshold, keep_scale, slope,
    H: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, SCORE_DST: tl.constexpr,
    EDGE: tl.constexpr, DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, EXACT)
    head_within = heads < H
    COLUMNS: tl.constexpr = 3 if SCORE_DST else 2
    row, start, end, partial = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    z = tl.load(z_ptr + row * (H * C) + cell, mask=within, other=0.0).to(tl.float32)
    score_j = tl.load(score_src_ptr + row * H + heads, mask=head_within, other=0.0)
    dz = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    dscore = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    for s in range(start, end, BLOCK_E * UNROLL):
        targets = ()
        rows_i = ()
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            live = slots < end
            i = tl.load(other_ptr + slots, mask=live, other=0).to(tl.int64)
            dout = tl.load(
                dout_ptr + i[:, None, None] * (H * C) + cell[None],
                mask=live[:, None, None] & within[None], other=0.0,
            )  # fmt: skip
            targets = targets + (i,)
            rows_i = rows_i + (dout,)
        # Stored after the last load, which could not overtake a store.
        places = ()
        gradients = ()
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            live = slots < end
            i = targets[k]
            dout = rows_i[k].to(tl.float32)
            live_head = live[:, None] & head_within[None, :]
            if EDGE or DWEIGHT:
                place = tl.load(position_ptr + slots, mask=live, other=0)
                edge_cell = place.to(tl.int64)[:, None] * H + heads[None, :]
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
            if EDGE:
                places = places + (edge_cell,)
            else:
                places = places + (slots.to(tl.int64)[:, None] * H + heads[None],)
            gradients = gradients + (du,)
            dscore += du
            dz += weight[:, :, None] * dout
        for k in tl.static_range(UNROLL):
            live = s + k * BLOCK_E + tl.arange(0, BLOCK_E) < end
            live_head = live[:, None] & head_within[None, :]
            tl.store(du_ptr + places[k], gradients[k], mask=live_head)

    dz = tl.sum(dz, axis=0)
    dscore = tl.sum(dscore, axis=0)
    if partial >= 0:
        tl.store(part_ptr + partial * (H * C) + cell, dz, mask=within)
        tl.store(part_score_ptr + partial * H + heads, dscore, mask=head_within)
    else:
        result = dz.to(dz_ptr.dtype.element_ty)
        tl.store(dz_ptr + row * (H * C) + cell, result, mask=within)
        tl.store(dscore_ptr + row * H + heads, dscore, mask=head_within)


def backward(call: Backward) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of z, score_src, score_dst and edge_score (no rows: absent)."""
    saved, (negative_slope,) = call.saved, call.settings
    by_target, by_source, out = saved.by_target, saved.by_source, saved.out
    assert by_source is not None
    dout, dweights = call.dout.contiguous(), dense(call.dweights)
    z, score_src, score_dst, edge_score = map(dense, saved.inputs)
    assert z is not None
    assert score_src is not None
    _, heads, channels = z.shape
    dz = torch.empty_like(z)
    dscore_src = torch.empty_like(score_src)
    # The gradient of each edge's u: where edge_score needs it in the graph's order, in
    # that order; otherwise slot by slot, which the device writes much faster.
    if edge_score is None:
        du = score_src.new_empty(by_source.other.size(0), heads)
    else:
        du = torch.zeros_like(edge_score)
    dropped = dropout_of(call.dropout, saved.dropout_seed)
    tile = _tile(z)
    with on_device(z):
        target_plan, plan = schedule(by_target.pointer), schedule(by_source.pointer)
        extra = None
        if dweights is not None:
            _, _, weights = forward(again_with_weights(call))
            extra = segment_sum(
                target_plan, out.size(0), by_target.position, weights, dweights
            )
        table = statistics(dout, out, saved.lse, extra, score_dst)
        part = score_src.new_empty(plan.num_partials, heads * channels)
        part_score = score_src.new_empty(plan.num_partials, heads)
        launch(
            _backward_kernel,
            (plan.items.size(0), divide_up(heads, tile.heads)),
            (
                dout, dweights, z, score_src, table, edge_score,
                plan.items, *by_source[1:],
                dz, dscore_src, du, part, part_score, dropped.seed,
            ),
            (dropped.threshold, dropped.keep_scale, negative_slope),
            (
                *tile.constants(heads, channels), score_dst is not None,
                edge_score is not None, dweights is not None, dropped.on,
            ),
            tile.warps,
        )  # fmt: skip
        merge_sum(plan, part, dz)
        merge_sum(plan, part_score, dscore_src)
        absent = score_src.new_empty(0, heads)
        dscore_dst = absent
        if score_dst is not None:
            if edge_score is None:
                index = slots_by_source(by_target, by_source)
            else:
                index = by_target.position
            dscore_dst = segment_sum(target_plan, out.size(0), index, du)
    return dz, dscore_src, dscore_dst, absent if edge_score is None else du
