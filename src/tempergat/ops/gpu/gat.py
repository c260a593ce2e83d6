# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""GAT's attention in Triton: one read of each edge's feature row per pass."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Backward, Forward, Saved
from tempergat.ops.gpu import scores
from tempergat.ops.gpu.common import (
    Tile,
    choose_tile,
    contiguous_or_none,
    dropout_arguments,
    keep_factor,
    load_item,
    logit_gradient,
    tile_of_row,
)
from tempergat.ops.gpu.launch import divide_up, launch
from tempergat.ops.gpu.schedule import schedule, slots_by_source
from tempergat.ops.gpu.scores import Vectors
from tempergat.ops.gpu.softmax import add_edges, attend, store_softmax
from tempergat.ops.gpu.sums import merge_sum, segment_sum, statistics


def _tile(z: Tensor) -> Tile:
    _, heads, channels = z.shape
    size = z.element_size()
    width = 256 if channels >= 32 else 128
    return choose_tile(heads, channels, size, width, lanes=512 // size)


@triton.jit(do_not_specialize=["threshold", "num_heads"])
def _forward_kernel(
    z_ptr, score_src_ptr, score_dst_ptr, edge_score_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    out_ptr, lse_ptr, logit_ptr, part_ptr, part_statistics_ptr,
    seed_ptr, threshold, keep_scale, slope, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, SCORE_DST: tl.constexpr,
    EDGE: tl.constexpr, LOGIT: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    row, start, end, partial = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    if SCORE_DST:
        # [H]
        score_i = tl.load(score_dst_ptr + row * H + heads, mask=in_heads, other=0.0)
    max_logit = tl.full([BLOCK_E, BLOCK_H], -float("inf"), tl.float32)
    denominator = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    weighted_sum = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    for s in range(start, end, BLOCK_E * UNROLL):
        rows_j = ()
        logits = ()
        factors = ()
        new_max = max_logit
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)  # [E]
            valid = slots < end
            j = tl.load(other_ptr + slots, mask=valid, other=0).to(tl.int64)
            z = tl.load(  # [E, H, C]
                z_ptr + j[:, None, None] * (H * C) + cell[None],
                mask=valid[:, None, None] & in_row[None], other=0.0,
            )  # fmt: skip
            rows_j = rows_j + (z,)
            valid_head = valid[:, None] & in_heads[None, :]
            u = tl.load(  # [E, H]
                score_src_ptr + j[:, None] * H + heads[None, :],
                mask=valid_head, other=-float("inf"),
            )  # fmt: skip
            if SCORE_DST:
                u += score_i[None, :]
            if EDGE or LOGIT:
                position = tl.load(position_ptr + slots, mask=valid, other=0).to(
                    tl.int64
                )
                edge_cell = position[:, None] * H + heads[None, :]
            if EDGE:
                u += tl.load(edge_score_ptr + edge_cell, mask=valid_head, other=0.0)
            logit = tl.where(u > 0, u, u * slope)  # e_ij, [E, H]
            if LOGIT:
                tl.store(logit_ptr + edge_cell, logit, mask=valid_head)
            logit = tl.where(valid[:, None], logit, -float("inf"))
            logits = logits + (logit,)
            new_max = tl.maximum(new_max, logit)
            if DROPOUT:
                edge_ids = tl.load(edge_id_ptr + slots, mask=valid, other=0)
                factors = factors + (
                    keep_factor(
                        seed_ptr, heads, in_heads, edge_ids, threshold, keep_scale
                    ),
                )
        max_logit, denominator, weighted_sum = add_edges(
            max_logit, denominator, weighted_sum, new_max, logits, rows_j, factors,
            UNROLL, DROPOUT,
        )  # fmt: skip

    store_softmax(
        max_logit, denominator, weighted_sum, end > start, row, partial,
        heads, in_heads, cell, in_row,
        out_ptr, lse_ptr, part_ptr, part_statistics_ptr, H, C,
    )  # fmt: skip


def forward(call: Forward) -> tuple[Tensor, ...]:
    """Output [T, H, C], log-sum-exp [T, H, 2], weights [E, H] and the nodes' scores."""
    z, att_src, att_dst, z_dst, edge_score, theta = map(contiguous_or_none, call.inputs)
    assert z is not None
    assert att_src is not None
    targets, score_dst = call.by_target.pointer.size(0) - 1, None
    if att_dst is not None and z_dst is None:
        vectors = Vectors(att_src, att_dst, theta)
        score_src, score_dst = scores.forward(z, vectors)
        score_dst = score_dst[:targets]
    else:
        (score_src,) = scores.forward(z, Vectors(att_src, None, theta))
        if att_dst is not None and z_dst is not None:
            (score_dst,) = scores.forward(z_dst, Vectors(att_dst, None, theta))
    flags = (score_dst is not None, edge_score is not None)
    inner = call._replace(inputs=(z, score_src, score_dst, edge_score))
    results = attend(_forward_kernel, _tile(z), inner, flags)
    if score_dst is None:
        score_dst = score_src.new_empty(targets, z.size(1))
    return *results, score_src, score_dst


def statistics_options(saved: Saved) -> dict[str, Any]:
    """The arguments of `sums.statistics` for this attention."""
    score_dst = None if saved.inputs[2] is None else saved.state[1]
    return {"score": score_dst, "split_lse": True}


@triton.jit(do_not_specialize=["threshold", "num_heads"])
def _backward_kernel(
    dout_ptr, dweight_ptr, z_ptr, score_src_ptr, statistics_ptr, edge_score_ptr,
    items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_ptr, dscore_ptr, du_ptr, part_ptr, part_score_ptr,
    seed_ptr, threshold, keep_scale, slope, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, SCORE_DST: tl.constexpr,
    EDGE: tl.constexpr, DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    COLUMNS: tl.constexpr = 4 if SCORE_DST else 3
    row, start, end, partial = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    # z_j, [H, C]
    z = tl.load(z_ptr + row * (H * C) + cell, mask=in_row, other=0.0).to(tl.float32)
    score_j = tl.load(score_src_ptr + row * H + heads, mask=in_heads, other=0.0)  # [H]
    # sum over i of beta_ij dout_i, [E, H, C]
    dz = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    dscore = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)  # sum over i of du_ij, [E, H]
    for s in range(start, end, BLOCK_E * UNROLL):
        targets = ()
        rows_i = ()
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            valid = slots < end
            i = tl.load(other_ptr + slots, mask=valid, other=0).to(tl.int64)
            dout = tl.load(  # dout_i, [E, H, C]
                dout_ptr + i[:, None, None] * (H * C) + cell[None],
                mask=valid[:, None, None] & in_row[None], other=0.0,
            )  # fmt: skip
            targets = targets + (i,)
            rows_i = rows_i + (dout,)
        # Stored after the last load: a load cannot be moved before a store.
        du_cells = ()
        dus = ()
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            valid = slots < end
            i = targets[k]
            dout = rows_i[k].to(tl.float32)
            valid_head = valid[:, None] & in_heads[None, :]
            if EDGE or DWEIGHT:
                position = tl.load(position_ptr + slots, mask=valid, other=0)
                edge_cell = position.to(tl.int64)[:, None] * H + heads[None, :]
            column = statistics_ptr + i[:, None] * (COLUMNS * H) + heads[None, :]
            # Past the end of the row the weight is exp(-inf) = 0.
            max_logit = tl.load(column, mask=valid_head, other=float("inf"))
            log_sum = tl.load(column + H, mask=valid_head, other=0.0)
            delta = tl.load(column + 2 * H, mask=valid_head, other=0.0)
            u = tl.zeros([BLOCK_E, BLOCK_H], tl.float32) + score_j[None, :]
            if SCORE_DST:
                u += tl.load(column + 3 * H, mask=valid_head, other=0.0)
            if EDGE:
                u += tl.load(edge_score_ptr + edge_cell, mask=valid_head, other=0.0)
            logit = tl.where(u > 0, u, u * slope)
            alpha = tl.exp(logit - max_logit - log_sum)  # [E, H]
            weight = alpha
            dalpha = tl.sum(dout * z[None], axis=2)  # [E, H]
            if DWEIGHT:
                dalpha += tl.load(dweight_ptr + edge_cell, mask=valid_head, other=0.0)
            if DROPOUT:
                edge_ids = tl.load(edge_id_ptr + slots, mask=valid, other=0)
                factor = keep_factor(
                    seed_ptr, heads, in_heads, edge_ids, threshold, keep_scale
                )
                weight *= factor
                dalpha *= factor
            dlogit = logit_gradient(alpha, dalpha, delta, log_sum)  # [E, H]
            du = tl.where(u > 0, dlogit, dlogit * slope)
            if EDGE:
                du_cells = du_cells + (edge_cell,)
            else:
                du_cells = du_cells + (slots.to(tl.int64)[:, None] * H + heads[None],)
            dus = dus + (du,)
            dscore += du
            dz += weight[:, :, None] * dout
        for k in tl.static_range(UNROLL):
            valid = s + k * BLOCK_E + tl.arange(0, BLOCK_E) < end
            valid_head = valid[:, None] & in_heads[None, :]
            tl.store(du_ptr + du_cells[k], dus[k], mask=valid_head)

    dz = tl.sum(dz, axis=0)
    dscore = tl.sum(dscore, axis=0)
    if partial >= 0:
        tl.store(part_ptr + partial * (H * C) + cell, dz, mask=in_row)
        tl.store(part_score_ptr + partial * H + heads, dscore, mask=in_heads)
    else:
        result = dz.to(dz_ptr.dtype.element_ty)
        tl.store(dz_ptr + row * (H * C) + cell, result, mask=in_row)
        tl.store(dscore_ptr + row * H + heads, dscore, mask=in_heads)


def backward(call: Backward, table: Tensor | None = None) -> tuple[Tensor, ...]:
    """The gradients of all inputs; without rows where they are absent.

    Args:
        call: The call.
        table: What `statistics` would return, where it is known already.
    """
    saved = call.saved
    z, att_src, att_dst, z_dst, _, theta = map(contiguous_or_none, saved.inputs)
    assert z is not None
    assert att_src is not None
    heads, channels = att_src.shape
    dz, dscore_src, dscore_dst, dedge_score = _edge_gradients(call, z, table)
    datt_dst = att_src.new_empty(0, channels)
    dz_dst = z.new_empty(0, heads, channels)
    second = att_dst if z_dst is None else None
    vectors = Vectors(att_src, second, theta)
    dscores = (dscore_src,) if second is None else (dscore_src, dscore_dst)
    datt_src, dsecond, dtheta = scores.backward(z, vectors, dscores, dz, add=True)
    if dsecond is not None:
        datt_dst = dsecond
    if att_dst is not None and z_dst is not None:
        dz_dst, vectors = torch.empty_like(z_dst), Vectors(att_dst, None, theta)
        datt_dst, _, more = scores.backward(
            z_dst, vectors, (dscore_dst,), dz_dst, add=False
        )
        if dtheta is not None and more is not None:
            dtheta += more
    if dtheta is None:
        dtheta = att_src.new_empty(0)
    return dz, datt_src, datt_dst, dz_dst, dedge_score, dtheta


def _edge_gradients(
    call: Backward, z: Tensor, table: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of z, of both scores and of edge_score (no rows: absent)."""
    saved, (negative_slope,) = call.saved, call.settings
    by_target, by_source, out = saved.by_target, saved.by_source, saved.out
    assert by_source is not None
    dout, dweights = call.dout.contiguous(), contiguous_or_none(call.dweights)
    edge_score, score_src = contiguous_or_none(saved.inputs[4]), saved.state[0]
    has_dst = saved.inputs[2] is not None
    _, heads, channels = z.shape
    dz = torch.empty_like(z)
    dscore_src = torch.empty_like(score_src)
    # du_ij of each edge, [E, H]: in the graph's order where edge_score needs it;
    # otherwise slot by slot, which the device writes much faster.
    if edge_score is None:
        du = score_src.new_empty(by_source.other.size(0), heads)
    else:
        du = torch.zeros_like(edge_score)
    dropout = dropout_arguments(call.dropout, saved.dropout_seed)
    tile = _tile(z)
    target_plan, plan = schedule(by_target.pointer), schedule(by_source.pointer)
    if table is None:
        call = call._replace(dout=dout, dweights=dweights)
        table = statistics(call, forward, **statistics_options(saved))
    part = plan.new_partials(dscore_src, heads * channels)
    part_score = plan.new_partials(dscore_src, heads)
    launch(
        _backward_kernel,
        (plan.items.size(0), divide_up(heads, tile.heads)),
        (
            dout, dweights, z, score_src, table, edge_score,
            plan.items, *by_source[1:],
            dz, dscore_src, du, part, part_score, dropout.seed,
        ),
        (dropout.threshold, dropout.keep_scale, float(negative_slope), heads),
        (
            *tile.constants(heads, channels), has_dst,
            edge_score is not None, dweights is not None, dropout.on,
        ),
        tile.warps,
    )  # fmt: skip
    merge_sum(plan, part, dz, (part_score, dscore_src))
    absent = score_src.new_empty(0, heads)
    dscore_dst = absent
    if has_dst:
        index, via = by_target.position, None
        if edge_score is None:
            index, via = slots_by_source(by_target, by_source)
        dscore_dst = segment_sum(target_plan, out.size(0), index, du, via=via)
    return dz, dscore_src, dscore_dst, absent if edge_score is None else du
