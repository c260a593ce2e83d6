# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""Dot-product attention in Triton; the forward pass is in `dot_product_forward.py`.

Backward, a pass by target reads a key and a value row per edge and gives the gradient
of the queries, and for every edge and head its weight and the gradient of its logit. A
pass by source multiplies the queries and the output's gradient by these two.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Backward, Saved
from tempergat.ops.gpu.common import (
    RowTables,
    contiguous_or_none,
    dropout_arguments,
    exp,
    factors_of_edges,
    load_row,
    load_work,
    row_stride,
    row_tables,
    store_row,
    tile_of_row,
    widen,
)
from tempergat.ops.gpu.dot_product_forward import (
    backward_tile,
    feature_cells,
    inverse_temperature,
    temperature_by_head,
)
from tempergat.ops.gpu.dot_product_forward import forward as forward
from tempergat.ops.gpu.edge_maps import add_push, map_gradient, pull_back
from tempergat.ops.gpu.launching.launch import divide_up, launch
from tempergat.ops.gpu.schedule import Work, schedule
from tempergat.ops.gpu.sums import merge_sum, weight_term_of


@triton.jit(
    do_not_specialize=[
        *Work._fields, "total_edges", "threshold", "value_units", "key_units",
        "query_units", "num_heads",
    ]
)  # fmt: skip
def _target_kernel(
    value_ptr, key_ptr, query_ptr, dout_ptr, dweight_ptr, u_ptr, r_ptr, edge_x_ptr,
    temperature_ptr, edge_weight_ptr, edge_bias_ptr, statistics_ptr,
    out_ptr, lse_ptr, weight_term_ptr, items_ptr, other_ptr, position_ptr, edge_id_ptr,
    dquery_ptr, du_ptr, weight_ptr, dlogit_ptr, dedge_x_ptr, dedge_weight_ptr,
    part_ptr, part_du_ptr, seed_ptr,
    num_items, own_rows, other_rows, num_edges, edge_step, num_partials, total_edges,
    threshold, keep_scale, scale, value_units, key_units, query_units, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, STRIDED: tl.constexpr,
    D: tl.constexpr, LEARNT: tl.constexpr,
    DEDGE_X: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr,
    DWEIGHT: tl.constexpr, DROPOUT: tl.constexpr,
    COPIES: tl.constexpr, GIVEN: tl.constexpr, WEIGHT_TERM: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    row, start, end, partial, copy = load_work(
        items_ptr, num_items, own_rows, num_partials, COPIES
    )
    key_stride = row_stride(key_units, H, C, STRIDED)
    value_stride = row_stride(value_units, H, C, STRIDED)
    query_stride = row_stride(query_units, H, C, STRIDED)
    key_cells = (key_ptr + copy * other_rows * key_stride + cell)[None]
    value_cells = (value_ptr + copy * other_rows * value_stride + cell)[None]
    tau = inverse_temperature(temperature_ptr, heads, in_heads, scale, LEARNT)
    # [E, H, C] and [E, H]
    query = load_row(query_ptr, row, query_stride, cell, in_row, BLOCK_E)
    query = query.to(tl.float32) * tau[:, :, None]
    dout = load_row(dout_ptr, row, H * C, cell, in_row, BLOCK_E).to(tl.float32)
    if GIVEN:
        lse = load_row(statistics_ptr, row, 2 * H, heads, in_heads, BLOCK_E)
        delta = load_row(statistics_ptr + H, row, 2 * H, heads, in_heads, BLOCK_E)
    else:
        lse = load_row(lse_ptr, row, 2 * H, 2 * heads, in_heads, BLOCK_E)
        lse += load_row(lse_ptr + 1, row, 2 * H, 2 * heads, in_heads, BLOCK_E)
        out = load_row(out_ptr, row, H * C, cell, in_row, BLOCK_E).to(tl.float32)
        delta = tl.sum(dout * out, axis=2)
        if WEIGHT_TERM:
            delta += load_row(weight_term_ptr, row, H, heads, in_heads, BLOCK_E)
    dquery = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    if D:
        feature, d_cell, in_d = feature_cells(cell, heads, in_heads, C, D)
        u = load_row(u_ptr, row, H * D, d_cell, in_d, BLOCK_E) * tau[:, :, None]
        r = load_row(r_ptr, row, H * D, d_cell, in_d, BLOCK_E)
        du = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    for s in range(start, end, BLOCK_E * UNROLL):
        rows_j = ()
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)  # [E]
            valid = slots < end
            valid_row = valid[:, None, None]
            in_table = valid_row & in_row[None]
            j = tl.load(other_ptr + slots, mask=valid, other=0).to(tl.int64)
            j = j[:, None, None]
            # k_j and v_j, [E, H, C]
            key = tl.load(key_cells + j * key_stride, mask=in_table, other=0.0)
            value = tl.load(value_cells + j * value_stride, mask=in_table, other=0.0)
            place = tl.load(position_ptr + slots, mask=valid, other=0).to(tl.int64)
            x = key
            if D:
                of_edge = (place + copy * edge_step)[:, None, None]
                x = edge_x_ptr + of_edge * D + feature[None]
                x = tl.load(x, mask=valid_row & in_d[None], other=0.0)
            rows_j = rows_j + ((key, value, place, x),)
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)
            valid = slots < end
            key, place, x = widen(rows_j[k][0]), rows_j[k][2], rows_j[k][3]
            # Where the edge's inputs are, and its results.
            of_edge, own = place + copy * edge_step, place + copy * num_edges
            own_head = own[:, None] * H + heads[None, :]
            valid_head = valid[:, None] & in_heads[None, :]
            product = key * query
            dproduct = widen(rows_j[k][1]) * dout
            if D:
                product += u * x
                dproduct += r * x
            logit = tl.sum(product, axis=2)  # [E, H]
            dalpha = tl.sum(dproduct, axis=2)
            if BIAS:
                bias = edge_bias_ptr + of_edge[:, None] * H + heads[None, :]
                logit += tl.load(bias, mask=valid_head, other=0.0)
            alpha = tl.where(valid[:, None], exp(logit - lse), 0.0)
            weight = alpha
            if DWEIGHT:
                dalpha += tl.load(dweight_ptr + own_head, mask=valid_head, other=0.0)
            if DROPOUT or WEIGHT:
                factor, keep = factors_of_edges(
                    edge_id_ptr, edge_weight_ptr, slots, valid, of_edge, seed_ptr,
                    heads, in_heads, H, copy, threshold, keep_scale, DROPOUT, WEIGHT,
                )  # fmt: skip
                if WEIGHT:
                    dweight = alpha * keep * dalpha
                    tl.store(dedge_weight_ptr + own_head, dweight, mask=valid_head)
                weight *= factor
                dalpha *= factor
            dlogit = alpha * (dalpha - delta)  # [E, H]
            tl.store(weight_ptr + own_head, weight, mask=valid_head)
            tl.store(dlogit_ptr + own_head, dlogit, mask=valid_head)
            dquery += dlogit[:, :, None] * key
            if D:
                du += dlogit[:, :, None] * x
                if DEDGE_X:
                    dx = dlogit[:, :, None] * u + weight[:, :, None] * r
                    dx = tl.sum(dx, axis=1)  # [E, C]
                    # The part of this tile of heads.
                    first = tl.program_id(1).to(tl.int64) * total_edges
                    columns = tl.arange(0, BLOCK_C)[None, :]
                    target = (first + own)[:, None] * D + columns
                    mask = valid[:, None] & (columns < D)
                    tl.store(dedge_x_ptr + target, dx, mask=mask)
    dquery = tl.sum(dquery, axis=0, keep_dims=True) * tau[:, :, None]
    store_row(dquery_ptr, part_ptr, dquery, row, partial, H * C, cell, in_row)
    if D:
        du = tl.sum(du, axis=0, keep_dims=True) * tau[:, :, None]
        store_row(du_ptr, part_du_ptr, du, row, partial, H * D, d_cell, in_d)


@triton.jit(do_not_specialize=[*Work._fields, "query_units", "num_heads"])
def _source_kernel(
    query_ptr, dout_ptr, weight_ptr, dlogit_ptr, temperature_ptr,
    items_ptr, other_ptr, position_ptr,
    dkey_ptr, dvalue_ptr, part_key_ptr, part_value_ptr,
    num_items, own_rows, other_rows, num_edges, edge_step, num_partials,
    scale, query_units, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, STRIDED: tl.constexpr,
    LEARNT: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    row, start, end, partial, copy = load_work(
        items_ptr, num_items, own_rows, num_partials, COPIES
    )
    query_stride = row_stride(query_units, H, C, STRIDED)
    query_cells = (query_ptr + copy * other_rows * query_stride + cell)[None]
    dout_cells = (dout_ptr + copy * other_rows * (H * C) + cell)[None]
    first = copy * num_edges
    dkey = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    dvalue = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    for s in range(start, end, BLOCK_E * UNROLL):
        rows_i = ()
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)  # [E]
            valid = slots < end
            in_table = valid[:, None, None] & in_row[None]
            i = tl.load(other_ptr + slots, mask=valid, other=0).to(tl.int64)
            place = tl.load(position_ptr + slots, mask=valid, other=0).to(tl.int64)
            i = i[:, None, None]
            # q_i and dout_i, [E, H, C]
            query = tl.load(query_cells + i * query_stride, mask=in_table, other=0.0)
            dout = tl.load(dout_cells + i * (H * C), mask=in_table, other=0.0)
            edge_head = (first + place)[:, None] * H + heads[None, :]
            valid_head = valid[:, None] & in_heads[None, :]
            weight = tl.load(weight_ptr + edge_head, mask=valid_head, other=0.0)
            dlogit = tl.load(dlogit_ptr + edge_head, mask=valid_head, other=0.0)
            rows_i = rows_i + ((query, dout, weight, dlogit),)
        for k in tl.static_range(UNROLL):
            dkey += rows_i[k][3][:, :, None] * widen(rows_i[k][0])
            dvalue += rows_i[k][2][:, :, None] * widen(rows_i[k][1])
    tau = inverse_temperature(temperature_ptr, heads, in_heads, scale, LEARNT)
    dkey = tl.sum(dkey, axis=0, keep_dims=True) * tau[:, :, None]
    store_row(dkey_ptr, part_key_ptr, dkey, row, partial, H * C, cell, in_row)
    dvalue = tl.sum(dvalue, axis=0, keep_dims=True)
    store_row(dvalue_ptr, part_value_ptr, dvalue, row, partial, H * C, cell, in_row)


def statistics_options(saved: Saved) -> dict[str, Any]:
    """The arguments of `sums.statistics` for this attention."""
    return {"score": None, "split_lse": False}


def backward(call: Backward, table: Tensor | None = None) -> tuple[Tensor, ...]:
    """The gradients of all inputs; without rows where they are absent.

    Args:
        call: The call.
        table: What `statistics` would return, where it is known already.
    """
    saved, copies = call.saved, call.copies
    by_target = saved.by_target
    value, key, query, edge_x, edge_map, temperature, *edges = saved.inputs
    edge_weight, edge_bias = map(contiguous_or_none, edges)
    edge_x = contiguous_or_none(edge_x)
    temperature_H = temperature_by_head(temperature, value)
    call = call._replace(
        dout=call.dout.contiguous(), dweights=contiguous_or_none(call.dweights)
    )
    dout, dweights, scale = call.dout, call.dweights, float(call.settings[0])
    weight_term = weight_term_of(call, forward) if table is None else None
    _, heads, channels = value.shape
    work_like, stored = saved.lse, copies * by_target.other.size(0)
    # A padded edge, which no row has, has weight and gradient 0.
    weights, dlogit = work_like.new_zeros(2, stored, heads).unbind()
    dedge_weight = work_like.new_zeros(stored if edge_weight is not None else 0, heads)
    width, u, r, du, dedge_x = 0, None, None, None, None
    wants_x = edge_x is not None and call.wanted[3]
    if edge_x is not None:
        width = edge_x.size(1)
    plan = schedule(by_target.pointer)
    given = (edge_x, edge_weight, edge_bias)
    work = plan.work(by_target, value.size(0) // copies, copies, given)
    tile = backward_tile(value, width).fit(work.is_short(copies), heads)
    blocks = divide_up(heads, tile.heads)
    if edge_x is not None:
        u, r = (pull_back(x, edge_map) for x in (query, dout))
        du = torch.empty_like(u)
        if wants_x:
            dedge_x = work_like.new_zeros(blocks, stored, width)
    tables = row_tables(value, key, query)
    dropout = dropout_arguments(call.dropout, saved.dropout_seed)
    dquery = query.new_empty(query.shape)
    part = plan.new_partials(work_like, heads * channels, copies=copies)
    part_du = plan.new_partials(work_like, heads * width, copies=copies)
    flags = (edge_weight is not None, edge_bias is not None, dweights is not None)
    learnt = temperature_H is not None
    launch(
        _target_kernel,
        (copies * work.num_items, blocks),
        (
            *tables.tensors, dout, dweights, u, r, edge_x, temperature_H, edge_weight,
            edge_bias, table, saved.attended, saved.lse, weight_term, plan.items,
            *by_target[1:], dquery, du, weights, dlogit, dedge_x, dedge_weight, part,
            part_du, dropout.seed,
        ),
        (
            *work, stored, dropout.threshold, dropout.keep_scale, scale,
            *tables.strides, heads,
        ),
        (
            *tile.constants(heads, channels), tables.strided, width, learnt, wants_x,
            *flags, dropout.on, copies > 1, table is not None, weight_term is not None,
        ),
        tile.warps,
    )  # fmt: skip
    second = None if du is None else (part_du, du)
    merge_sum(plan, part, dquery, second, copies)

    dkey, dvalue = _source_gradients(call, tables, weights, dlogit, temperature_H)
    del weights, part, part_du

    dbias = dlogit if edge_bias is not None else work_like.new_empty(0, heads)
    del dlogit
    dmap, dx = work_like.new_empty(heads, channels, 0), work_like.new_empty(0, width)
    if edge_x is not None and du is not None:
        add_push(dquery, du, edge_map)
        dmap = map_gradient(query, du, dout, saved.state[0])
        dx = torch.zeros_like(edge_x) if dedge_x is None else dedge_x.sum(0)
    dtemperature = work_like.new_empty(0)
    if temperature_H is not None:
        # Of logits <q, ...> / T, whose gradient with respect to q is dquery.
        dtemperature_H = -(query.float() * dquery.float()).sum((0, 2)) / temperature_H
        dtemperature = dtemperature_H if temperature.dim() else dtemperature_H.sum()
    return dvalue, dkey, dquery, dx, dmap, dtemperature, dedge_weight, dbias


def _source_gradients(
    call: Backward,
    tables: RowTables,
    weights_EH: Tensor,
    dlogit_EH: Tensor,
    temperature_H: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The gradients of keys and values, from what the pass by target has left."""
    copies, by_source = call.copies, call.saved.by_source
    assert by_source is not None
    value, key, query = tables.tensors
    _, heads, channels = value.shape
    tile, plan = backward_tile(value), schedule(by_source.pointer)
    work = plan.work(by_source, query.size(0) // copies, copies, ())
    tile = tile.fit(work.is_short(copies), heads)
    dkey, dvalue = key.new_empty(key.shape), value.new_empty(value.shape)
    part_key, part_value = (
        plan.new_partials(weights_EH, heads * channels, copies=copies) for _ in range(2)
    )
    launch(
        _source_kernel,
        (copies * work.num_items, divide_up(heads, tile.heads)),
        (
            query, call.dout, weights_EH, dlogit_EH, temperature_H, plan.items,
            by_source.other, by_source.position, dkey, dvalue, part_key, part_value,
        ),
        (*work, float(call.settings[0]), tables.strides[2], heads),
        (
            *tile.constants(heads, channels), tables.strided, temperature_H is not None,
            copies > 1,
        ),
        tile.warps,
    )  # fmt: skip
    merge_sum(plan, part_key, dkey, (part_value, dvalue), copies)
    return dkey, dvalue
