# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""Dot-product attention's forward pass in Triton: one key and one value row per edge.

No edge is projected: with the map W of edge features, ``<q_i, W e_ij> = <u_i, e_ij>``
and ``sum_j a_ij W e_ij = W c_i``, where ``u_i = W^T q_i`` is computed before the pass,
``c_i = sum_j a_ij e_ij`` in it, and ``W c_i`` after it.
"""

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
    row_stride,
    row_tables,
    tile_of_row,
    widen,
)
from tempergat.ops.gpu.edge_maps import add_push, pull_back
from tempergat.ops.gpu.gatv2_forward import tile_of
from tempergat.ops.gpu.schedule import Work
from tempergat.ops.gpu.softmax import add_edges, attend, store_softmax, store_sum


def backward_tile(z: Tensor, width: int = 0) -> Tile:
    """The part of a row that one program of a backward pass serves.

    Args:
        z: A table with a row per node.
        width: How many features an edge has; they take the place of channels.
    """
    _, heads, channels = z.shape
    size, channels = z.element_size(), max(channels, width)
    if size == 2:
        return choose_tile(heads, channels, size, 256, 256)._replace(unroll=2)
    tile = choose_tile(heads, channels, size, 128, 128)
    return tile._replace(unroll=2, per_warp=128) if width else tile


def temperature_by_head(temperature: Tensor | None, value: Tensor) -> Tensor | None:
    """The temperature of each head, [H]."""
    if temperature is None:
        return None
    return temperature.expand(value.size(1)).contiguous()


@triton.jit
def inverse_temperature(temperature_ptr, heads, in_heads, scale, LEARNT: tl.constexpr):
    """The scale over the temperature of each head, [1, H]."""
    temperature = tl.full([1, heads.shape[0]], 1.0, tl.float32)
    if LEARNT:
        temperature = tl.load(temperature_ptr + heads[None], in_heads[None], other=1.0)
    return scale / temperature


@triton.jit
def feature_cells(cell, heads, in_heads, C: tl.constexpr, D: tl.constexpr):
    """An edge's features in the place of the first channels of every head, [H, C].

    Returns:
        The number of the feature, its offset in a row of H * D numbers, and which there
        are.
    """
    feature = cell - heads[:, None] * C
    in_features = (feature < D) & in_heads[:, None]
    return feature, heads[:, None] * D + feature, in_features


@triton.jit(
    do_not_specialize=[
        *Work._fields, "threshold", "value_units", "key_units", "query_units",
        "num_heads",
    ]
)  # fmt: skip
def _forward_kernel(
    value_ptr, key_ptr, query_ptr, u_ptr, edge_x_ptr, temperature_ptr,
    edge_weight_ptr, edge_bias_ptr, items_ptr, other_ptr, position_ptr, edge_id_ptr,
    out_ptr, lse_ptr, logit_ptr, part_ptr, part_statistics_ptr, c_ptr, part_c_ptr,
    seed_ptr, num_items, own_rows, other_rows, num_edges, edge_step, num_partials,
    threshold, keep_scale, scale, value_units, key_units, query_units, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr,
    UNROLL: tl.constexpr, EXACT: tl.constexpr, STRIDED: tl.constexpr,
    D: tl.constexpr, LEARNT: tl.constexpr,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, LOGIT: tl.constexpr,
    DROPOUT: tl.constexpr, COPIES: tl.constexpr,
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
    # [E, H, C]
    query = load_row(query_ptr, row, query_stride, cell, in_row, BLOCK_E)
    query = query.to(tl.float32) * tau[:, :, None]
    max_logit = tl.full([BLOCK_E, BLOCK_H], -float("inf"), tl.float32)
    denominator = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    weighted_sum = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    if D:
        feature, d_cell, in_d = feature_cells(cell, heads, in_heads, C, D)
        u = load_row(u_ptr, row, H * D, d_cell, in_d, BLOCK_E) * tau[:, :, None]
        feature_sum = tl.zeros([BLOCK_E, BLOCK_H, BLOCK_C], tl.float32)
    next_sources = load_ends(other_ptr, start, end, BLOCK_E, UNROLL)
    for s in range(start, end, BLOCK_E * UNROLL):
        sources = next_sources
        next_sources = load_ends(other_ptr, s + BLOCK_E * UNROLL, end, BLOCK_E, UNROLL)
        values = ()
        features = ()
        logits = ()
        factors = ()
        new_max = max_logit
        for k in tl.static_range(UNROLL):
            slots = s + k * BLOCK_E + tl.arange(0, BLOCK_E)  # [E]
            valid = slots < end
            valid_row = valid[:, None, None]
            in_table = valid_row & in_row[None]
            j = sources[k].to(tl.int64)[:, None, None]
            # k_j and v_j, [E, H, C]
            key = tl.load(key_cells + j * key_stride, mask=in_table, other=0.0)
            value = tl.load(value_cells + j * value_stride, mask=in_table, other=0.0)
            values = values + (widen(value),)
            product = widen(key) * query
            place = slots.to(tl.int64)
            if D or WEIGHT or BIAS or LOGIT:
                place = tl.load(position_ptr + slots, mask=valid, other=0).to(tl.int64)
            of_edge = place + copy * edge_step
            if D:
                x = edge_x_ptr + of_edge[:, None, None] * D + feature[None]
                x = tl.load(x, mask=valid_row & in_d[None], other=0.0)
                product += u * x
                features = features + (x,)
            logit = tl.sum(product, axis=2)  # [E, H]
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
                    heads, in_heads, H, copy, threshold, keep_scale, DROPOUT, WEIGHT,
                )  # fmt: skip
                factors = factors + (factor,)
        if D:
            _max, _sum, feature_sum = add_edges(
                max_logit, denominator, feature_sum, new_max, logits, features,
                factors, UNROLL, DROPOUT or WEIGHT,
            )  # fmt: skip
        max_logit, denominator, weighted_sum = add_edges(
            max_logit, denominator, weighted_sum, new_max, logits, values, factors,
            UNROLL, DROPOUT or WEIGHT,
        )  # fmt: skip
    if D:
        store_sum(
            max_logit, denominator, feature_sum, row, partial, H * D, d_cell, in_d,
            c_ptr, part_c_ptr,
        )  # fmt: skip
    store_softmax(
        max_logit, denominator, weighted_sum, end > start, row, partial,
        heads, in_heads, cell, in_row,
        out_ptr, lse_ptr, part_ptr, part_statistics_ptr, H, C,
    )  # fmt: skip


def forward(call: Forward) -> tuple[Tensor, ...]:
    """Output [T, H, C], log-sum-exp [T, H, 2], weights [E, H], and c [T, H, D]."""
    value, key, query, edge_x, edge_map, temperature, *_ = call.inputs
    width, u = 0, None
    edge_x, temperature = (
        contiguous_or_none(edge_x),
        temperature_by_head(temperature, value),
    )
    if edge_x is not None and edge_map is not None:
        width, u = edge_x.size(1), pull_back(query, edge_map)
    tables = row_tables(value, key, query)
    flags = (tables.strided, width, temperature is not None)
    out, lse, weights, *c = attend(
        _forward_kernel,
        tile_of(value, 512 // value.element_size(), width),
        call,
        (*tables.tensors, u, edge_x, temperature),
        (edge_x,),
        (float(call.settings[0]), *tables.strides),
        flags,
        width,
    )
    if edge_map is not None:
        add_push(out, c[0], edge_map)
        return out, lse, weights, c[0]
    return out, lse, weights, lse.new_empty(out.size(0), out.size(1), 0)
