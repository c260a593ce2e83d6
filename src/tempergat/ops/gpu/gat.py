# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""GAT's attention in Triton: one read of each edge's feature row per pass."""

import functools
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
    exp,
    factors_of_edges,
    load_ends,
    load_number,
    load_row,
    load_work,
    logit_gradient,
    store_row,
    tile_of_row,
    widen,
)
from tempergat.ops.gpu.launching.launch import divide_up, launch
from tempergat.ops.gpu.schedule import (
    Work,
    schedule,
    slots_by_source,
)
from tempergat.ops.gpu.scores import Vectors, divide
from tempergat.ops.gpu.softmax import add_edges, attend, store_softmax
from tempergat.ops.gpu.sums import merge_sum, segment_sum, statistics


def _tile(z: Tensor) -> Tile:
    _, heads, channels = z.shape
    lanes = 512 // z.element_size()
    width = lanes if channels >= 32 else 128
    return choose_tile(heads, channels, z.element_size(), width, lanes)


@triton.jit(do_not_specialize=[*Work._fields, "threshold", "num_heads"])
def _forward_kernel(
    z_ptr, z_dst_ptr, att_src_ptr, att_dst_ptr, score_dst_ptr, edge_score_ptr,
    edge_weight_ptr, edge_bias_ptr, items_ptr, other_ptr, position_ptr, edge_id_ptr,
    out_ptr, lse_ptr, logit_ptr, part_ptr, part_statistics_ptr, seed_ptr,
    num_items, own_rows, other_rows, num_edges, edge_step, num_partials,
    threshold, keep_scale, slope, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, SCORE_DST: tl.constexpr,
    EDGE: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr, LOGIT: tl.constexpr,
    DROPOUT: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    row, start, end, partial, copy = load_work(
        items_ptr, num_items, own_rows, num_partials, COPIES
    )
    next_sources = load_ends(other_ptr, start, end, BLOCK_E, UNROLL)
    # [E, H, C]
    att = load_row(att_src_ptr, 0, 0, cell, in_row, BLOCK_E)
    if SCORE_DST:
        z_i = load_row(z_dst_ptr, row, H * C, cell, in_row, BLOCK_E).to(tl.float32)
        att_i = load_row(att_dst_ptr, 0, 0, cell, in_row, BLOCK_E)
        score_i = tl.sum(z_i * att_i, axis=2)  # [E, H]
    z_cells = (z_ptr + copy * other_rows * (H * C) + cell)[None]
    max_logit = tl.full([BLOCK_E, BLOCK_H], -float("inf"), tl.float32)
    denominator = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    weighted_sum = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
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
            u = tl.sum(z * att, axis=2)  # [E, H]
            if SCORE_DST:
                u += score_i
            place = slots.to(tl.int64)
            if EDGE or WEIGHT or BIAS or LOGIT:
                place = tl.load(position_ptr + slots, mask=valid, other=0).to(tl.int64)
            valid_head = valid[:, None] & in_heads[None, :]
            edge_cell = (place + copy * edge_step)[:, None] * H + heads[None, :]
            if EDGE:
                u += tl.load(edge_score_ptr + edge_cell, mask=valid_head, other=0.0)
            logit = tl.where(u > 0, u, u * slope)  # e_ij, [E, H]
            if BIAS:
                bias = tl.load(edge_bias_ptr + edge_cell, mask=valid_head, other=0.0)
                logit += bias
            if LOGIT:
                target = (place + copy * num_edges)[:, None] * H + heads[None, :]
                tl.store(logit_ptr + target, logit, mask=valid_head)
            logit = tl.where(valid[:, None], logit, -float("inf"))
            logits = logits + (logit,)
            new_max = tl.maximum(new_max, logit)
            if DROPOUT or WEIGHT:
                factor, _keep = factors_of_edges(
                    edge_id_ptr, edge_weight_ptr, slots, valid,
                    place + copy * edge_step, seed_ptr, heads, in_heads, H, copy,
                    threshold, keep_scale, DROPOUT, WEIGHT,
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
    if SCORE_DST:
        # All edges side by side have the same. Stored last: a load cannot be moved
        # before a store.
        score = tl.max(score_i, axis=0, keep_dims=True)
        tl.store(score_dst_ptr + row * H + heads[None, :], score, in_heads[None, :])


def forward(call: Forward) -> tuple[Tensor, ...]:
    """Output [T, H, C], log-sum-exp [T, H, 2], weights [E, H] and the nodes' scores."""
    inputs = [contiguous_or_none(x) for x in call.inputs]
    z, att_src, att_dst, z_dst, edge_score, theta, *_ = inputs
    assert z is not None
    assert att_src is not None
    sources, heads, _ = z.shape
    targets = call.copies * (call.by_target.pointer.size(0) - 1)
    # Those of sources are summed again backward, which costs nothing; other kernels
    # keep them.
    score_src, score_dst = (att_src.new_empty(n, heads) for n in (sources, targets))
    att = divide(Vectors(att_src, att_dst, theta))
    pointers = (z, z if z_dst is None else z_dst, *att, score_dst, edge_score)
    flags = (att_dst is not None, edge_score is not None)
    slope, edges = (float(call.settings[0]),), (edge_score,)
    results = attend(_forward_kernel, _tile(z), call, pointers, edges, slope, flags)
    return *results, score_src, score_dst


def statistics_options(saved: Saved) -> dict[str, Any]:
    """The arguments of `sums.statistics` for this attention."""
    score_dst = None if saved.inputs[2] is None else saved.state[1]
    return {"score": score_dst, "split_lse": True}


@triton.jit(do_not_specialize=[*Work._fields, "total_items", "threshold", "num_heads"])
def _backward_kernel(
    dout_ptr, dweight_ptr, z_ptr, att_ptr, statistics_ptr, edge_score_ptr,
    edge_weight_ptr, edge_bias_ptr, items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dz_ptr, dscore_ptr, datt_ptr, du_ptr, dedge_weight_ptr, dedge_bias_ptr,
    part_ptr, part_score_ptr, seed_ptr,
    num_items, own_rows, other_rows, num_edges, edge_step, num_partials,
    total_items, threshold, keep_scale, slope, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, SCORE_DST: tl.constexpr,
    EDGE: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr,
    DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr, COPIES: tl.constexpr,
    SUM_ATT: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    COLUMNS: tl.constexpr = 4 if SCORE_DST else 3
    if SUM_ATT:
        datt = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)  # sum of dscore z
    for number in range(tl.program_id(0), total_items, tl.num_programs(0)):
        row, start, end, partial, copy = load_number(
            items_ptr, number, num_items, own_rows, num_partials, COPIES
        )
        # z_j, [E, H, C], and its score, [E, H]
        z = tl.load(z_ptr + row * (H * C) + cell, mask=in_row, other=0.0)[None]
        z = z.to(tl.float32)
        att = tl.load(att_ptr + cell, mask=in_row, other=0.0)[None]
        score_j = tl.sum(z * att, axis=2)
        # sum over i of beta_ij dout_i, [E, H, C]
        dz = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
        # sum over i of du_ij, [E, H]
        dscore = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
        for s in range(start, end, BLOCK_E * UNROLL):
            targets = ()
            rows_i = ()
            for k in tl.static_range(UNROLL):
                slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
                valid = slots < end
                i = tl.load(other_ptr + slots, mask=valid, other=0).to(tl.int64)
                if COPIES:
                    i += copy * other_rows
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
                place = slots.to(tl.int64)
                if EDGE or WEIGHT or BIAS or DWEIGHT:
                    place = tl.load(position_ptr + slots, mask=valid, other=0).to(
                        tl.int64
                    )
                # Where the edge's inputs are, and its results.
                edge_cell = (place + copy * edge_step)[:, None] * H + heads[None, :]
                own_cell = (place + copy * num_edges)[:, None] * H + heads[None, :]
                column = statistics_ptr + i[:, None] * (COLUMNS * H) + heads[None, :]
                # Past the end of the row the weight is exp(-inf) = 0.
                max_logit = tl.load(column, mask=valid_head, other=float("inf"))
                log_sum = tl.load(column + H, mask=valid_head, other=0.0)
                delta = tl.load(column + 2 * H, mask=valid_head, other=0.0)
                u = tl.zeros([BLOCK_E, BLOCK_H], tl.float32) + score_j
                if SCORE_DST:
                    u += tl.load(column + 3 * H, mask=valid_head, other=0.0)
                if EDGE:
                    u += tl.load(edge_score_ptr + edge_cell, mask=valid_head, other=0.0)
                logit = tl.where(u > 0, u, u * slope)
                if BIAS:
                    bias = tl.load(
                        edge_bias_ptr + edge_cell, mask=valid_head, other=0.0
                    )
                    logit += bias
                alpha = exp(logit - max_logit - log_sum)  # [E, H]
                weight = alpha
                dalpha = tl.sum(dout * z, axis=2)  # [E, H]
                if DWEIGHT:
                    dalpha += tl.load(
                        dweight_ptr + own_cell, mask=valid_head, other=0.0
                    )
                if DROPOUT or WEIGHT:
                    factor, keep = factors_of_edges(
                        edge_id_ptr, edge_weight_ptr, slots, valid,
                        place + copy * edge_step, seed_ptr, heads, in_heads, H, copy,
                        threshold, keep_scale, DROPOUT, WEIGHT,
                    )  # fmt: skip
                    if WEIGHT:
                        dweight = alpha * keep * dalpha
                        tl.store(dedge_weight_ptr + own_cell, dweight, mask=valid_head)
                    weight *= factor
                    dalpha *= factor
                dlogit = logit_gradient(alpha, dalpha, delta, log_sum)  # [E, H]
                if BIAS:
                    tl.store(dedge_bias_ptr + own_cell, dlogit, mask=valid_head)
                du = tl.where(u > 0, dlogit, dlogit * slope)
                if EDGE:
                    du_cells = du_cells + (own_cell,)
                else:
                    du_row = slots.to(tl.int64) + copy * num_edges
                    du_cells = du_cells + (du_row[:, None] * H + heads[None],)
                dus = dus + (du,)
                dscore += du
                dz += weight[:, :, None] * dout
            for k in tl.static_range(UNROLL):
                valid = s + k * BLOCK_E + tl.arange(0, BLOCK_E) < end
                valid_head = valid[:, None] & in_heads[None, :]
                tl.store(du_ptr + du_cells[k], dus[k], mask=valid_head)
        # Loaded again: it would take registers meanwhile.
        att = load_row(att_ptr, 0, 0, cell, in_row, BLOCK_E)
        dz = tl.sum(dz + dscore[:, :, None] * att, axis=0, keep_dims=True)
        store_row(dz_ptr, part_ptr, dz, row, partial, H * C, cell, in_row)
        if SUM_ATT:
            datt += dscore[:, :, None] * z
        else:
            dscore = tl.sum(dscore, axis=0, keep_dims=True)
            store_row(
                dscore_ptr, part_score_ptr, dscore, row, partial, H, heads, in_heads
            )
    if SUM_ATT:
        target = datt_ptr + tl.program_id(0).to(tl.int64) * (H * C) + cell[None]
        tl.store(target, tl.sum(datt, axis=0, keep_dims=True), mask=in_row[None])


def backward(call: Backward, table: Tensor | None = None) -> tuple[Tensor, ...]:
    """The gradients of all inputs; without rows where they are absent.

    Args:
        call: The call.
        table: What `statistics` would return, where it is known already.
    """
    inputs = [contiguous_or_none(x) for x in call.saved.inputs]
    z, att_src, att_dst, z_dst, _, theta, *_ = inputs
    assert z is not None
    assert att_src is not None
    vectors = Vectors(att_src, att_dst, theta)
    scaled_src, scaled_dst = divide(vectors)
    dz, parts, dscore_dst, *dedges = _edge_gradients(call, z, scaled_src, table)
    part_dst, dz_dst = None, z.new_empty(0, *att_src.shape)
    datt, dscore_src = parts
    if scaled_dst is not None and z_dst is None:
        part_dst, part_src = scores.backward(
            z, scaled_dst, dscore_dst, dz, dscore_src, add=True
        )
        datt = part_src if datt is None else datt
    elif scaled_dst is not None and z_dst is not None:
        dz_dst = torch.empty_like(z_dst)
        part_dst, _ = scores.backward(z_dst, scaled_dst, dscore_dst, dz_dst, add=False)
    datt_src, datt_dst, dtheta = scores.finish(vectors, datt, part_dst)
    dedge_score, *dedges = dedges
    return dz, datt_src, datt_dst, dz_dst, dedge_score, dtheta, *dedges


def _edge_gradients(
    call: Backward, z: Tensor, att: Tensor, table: Tensor | None
) -> tuple[Any, ...]:
    """The gradients of z as source, of the nodes' scores, and of edges' inputs.

    The second result is a pair: partial sums for the gradient of ``att``, or else the
    gradient of the sources' scores, of which they can be made; the other is None. The
    others have no rows where an input is absent: att_dst, edge_score, edge_weight and
    edge_bias.
    """
    saved, (negative_slope,), copies = call.saved, call.settings, call.copies
    by_target, by_source, out = saved.by_target, saved.by_source, saved.attended
    assert by_source is not None
    dout, dweights = call.dout.contiguous(), contiguous_or_none(call.dweights)
    has_dst = saved.inputs[2] is not None
    edge_score, *_, edge_weight, edge_bias = map(contiguous_or_none, saved.inputs[4:])
    _, heads, channels = z.shape
    dz, edges = torch.empty_like(z), copies * by_source.other.size(0)
    absent = att.new_empty(0, heads)
    # A padded edge, which no row has, has gradient 0.
    dedge_weight, dedge_bias = (
        absent if x is None else att.new_zeros(edges, heads)
        for x in (edge_weight, edge_bias)
    )
    # du_ij of each edge, [E, H]: in the graph's order where edge_score needs it;
    # otherwise slot by slot, which the device writes much faster.
    new = att.new_empty if edge_score is None else att.new_zeros
    du = new(edges, heads)
    dropout = dropout_arguments(call.dropout, saved.dropout_seed)
    # With more edges at once, registers would limit how many programs run.
    tile, plan = _tile(z)._replace(unroll=2), schedule(by_source.pointer)
    given = (edge_score, edge_weight, edge_bias)
    work = plan.work(by_source, out.size(0) // copies, copies, given)
    if table is None:
        call = call._replace(dout=dout, dweights=dweights)
        table = statistics(call, forward, **statistics_options(saved))
    tile = tile.fit(work.is_short(copies), heads, unroll=1)
    items = copies * work.num_items
    # The pass over targets reads z of all sources, if these are the same nodes, and
    # sums up the gradient of att on the way. Otherwise it is summed here.
    of_same_nodes = has_dst and saved.inputs[3] is None
    sum_att = not of_same_nodes or out.size(0) != z.size(0)
    programs = min(items, scores.MOST_PARTS) if sum_att else items
    datt = att.new_empty(programs, heads, channels) if sum_att else None
    dscore_src = None if sum_att else att.new_empty(z.size(0), heads)
    new_partials = functools.partial(plan.new_partials, att, copies=copies)
    part, part_score = new_partials(heads * channels), new_partials(heads)
    launch(
        _backward_kernel,
        (programs, divide_up(heads, tile.heads)),
        (
            dout, dweights, z, att, table, *given, plan.items, *by_source[1:],
            dz, dscore_src, datt, du, dedge_weight, dedge_bias, part, part_score,
            dropout.seed,
        ),
        (
            *work, items, dropout.threshold, dropout.keep_scale, float(negative_slope),
            heads,
        ),
        (
            *tile.constants(heads, channels), has_dst, *[x is not None for x in given],
            dweights is not None, dropout.on, copies > 1, sum_att,
        ),
        tile.warps,
    )  # fmt: skip
    second = None if dscore_src is None else (part_score, dscore_src)
    merge_sum(plan, part, dz, second, copies)
    dscore_dst = absent
    if has_dst:
        index, via = by_target.position, None
        if edge_score is None:
            index, via = slots_by_source(by_target, by_source)
        target_plan = schedule(by_target.pointer)
        target_work = target_plan.work(by_target, 0, copies, ())
        dscore_dst = segment_sum(
            target_plan, target_work, index, du, via=via, copies=copies
        )
    dedge_score = absent if edge_score is None else du
    dedges = (dedge_score, dedge_weight, dedge_bias)
    return dz, (datt, dscore_src), dscore_dst, *dedges
