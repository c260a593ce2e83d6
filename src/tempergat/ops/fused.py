"""Attention with temperature, gate and bias: what a layer does after its linear maps.

In eager code all of it is one function of autograd, by the kernels of the attention and
of the gate: on a small graph, one node for every operation would take longer than the
work. Everything else (compilers, exporters, `torch.func`, modes that watch operations,
tensors of other types) takes `_in_steps`, which is also what a second
derivative differentiates.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from tempergat.ops import gpu
from tempergat.ops.attention import attend_with, by_head, choose
from tempergat.ops.attention_op import converted
from tempergat.ops.calls import Attention, Backward, Call, Forward, Saved, sum_copies
from tempergat.ops.checks import check_dropout, check_inputs, fit_edges
from tempergat.ops.features.elementwise import sigmoid_gate
from tempergat.ops.graph import Graph
from tempergat.ops.kinds import registered
from tempergat.ops.registration import refuse_tangents
from tempergat.ops.second_derivative import gradients_of
from tempergat.ops.torch_internals import (
    SingleLevelFunction,
    any_requires_grad,
    in_forward_mode,
)

_PLAIN_TYPES = frozenset((Tensor, Parameter, type(None)))
_sigmoid_backward: Any = torch.ops.aten.sigmoid_backward.grad_input


class Gated(NamedTuple):
    """What `attend_and_gate` returns.

    Attributes:
        out: The output, [T, H * C].
        weights: The attention weights, [E, H], if they are wanted.
        total: A tensor whose elements add up to the sum of the gate, if there is one.
    """

    out: Tensor
    weights: Tensor | None
    total: Tensor | None


class _Options(NamedTuple):
    """What a call has beside the tensors that may have gradients."""

    attention: Attention
    graph: Graph
    settings: tuple[float, ...]
    dropout: float
    seed: Tensor | None
    return_weights: bool
    # A mean gate counts where gradients are on.
    with_total: bool
    kernels: Any
    on_gpu: bool


def attend_and_gate(
    attention: str,
    graph: Graph,
    inputs: tuple[Tensor | None, ...],
    gate_logit: Tensor | None,
    bias: Tensor | None,
    *,
    eager: bool,
    edge_weight: Tensor | None = None,
    edge_bias: Tensor | None = None,
    dropout: float,
    dropout_seed: Tensor | None,
    return_weights: bool,
    **settings: float,
) -> Gated:
    """``attention(graph, *inputs) * sigmoid(gate_logit) + bias``.

    Args:
        attention: The name of a registered attention.
        graph: The graph.
        inputs: The attention's own inputs, in order; None for those that are absent.
        gate_logit: The gate before its sigmoid, [T, H * C]; None for no gate.
        bias: What is added to every row, [H * C], or to each its own, [T, H * C].
        eager: Whether the calls run at once, without anything that records, transforms
            or watches them.
        edge_weight: A factor of each attention weight, [E] or [E, H].
        edge_bias: What is added to each logit, [E] or [E, H].
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Whether the weights (after dropout) are wanted.
        settings: The attention's numbers by name, such as ``negative_slope``.
    """
    kind = registered(attention)
    numbers = tuple({**kind.settings, **settings}.values())
    gradients = torch.is_grad_enabled()
    rest = (dropout, dropout_seed, return_weights, gradients)
    inputs = by_head((*inputs, edge_weight, edge_bias))
    given = (*inputs, gate_logit, bias)
    if eager and _PLAIN_TYPES.issuperset(map(type, given)):
        z = inputs[0]
        check_inputs(kind, graph, inputs, traced=False)
        inputs = fit_edges(kind, graph, inputs)
        given = (*inputs, gate_logit, bias)
        assert z is not None
        if dropout != 0.0:
            check_dropout(dropout, dropout_seed, z.size(1))
        call = Call(kind.name, kind.backends, (*given, dropout_seed), graph)
        call, chosen = choose(kind, call, eager)
        if chosen is not None and _fit(z, graph, gate_logit, bias):
            inputs = converted(kind, call.tensors[: len(inputs)])
            if inputs[0] is not None and inputs[0].dtype == z.dtype:
                kernels, on_gpu = chosen.kernels, chosen.NAME == gpu.NAME
                options = _Options(kind, graph, numbers, *rest, kernels, on_gpu)
                if gradients and any_requires_grad(*inputs, gate_logit, bias):
                    return Gated(*_Fused.apply(options, gate_logit, bias, *inputs))
                return _forward(options, None, gate_logit, bias, *inputs)[0]
    options = _Options(kind, graph, numbers, *rest, None, False)
    return _in_steps(options, gate_logit, bias, *inputs)


def _fit(
    z: Tensor, graph: Graph, gate_logit: Tensor | None, bias: Tensor | None
) -> bool:
    """Whether gate and bias have the type and the shape of attention's output."""
    width = z.size(1) * z.size(2)
    if gate_logit is not None and (
        gate_logit.dtype != z.dtype or gate_logit.shape != (graph.num_dst, width)
    ):
        return False
    return bias is None or (
        bias.dtype == z.dtype and bias.shape in ((width,), (graph.num_dst, width))
    )


def _one_row(bias: Tensor | None) -> Tensor | None:
    """A bias that is one for all rows; None if there is none, or one for each row."""
    return None if bias is None or bias.dim() == 2 else bias


def _in_steps(
    options: _Options,
    gate_logit: Tensor | None,
    bias: Tensor | None,
    *inputs: Tensor | None,
) -> Gated:
    """The same by torch's operations and the registered op."""
    out, weights = attend_with(
        options.attention,
        options.graph,
        inputs,
        options.settings,
        options.dropout,
        options.seed,
        options.return_weights,
    )
    out, total = out.flatten(1), None
    if gate_logit is not None:
        out, total = sigmoid_gate(gate_logit, out)
    return Gated(out if bias is None else out + bias, weights, total)


def _forward(
    options: _Options,
    by_source: Any,
    gate_logit: Tensor | None,
    bias: Tensor | None,
    *inputs: Any,
) -> tuple[Gated, Tensor | None, list[Tensor]]:
    """The results, the gate as backward needs it, and what attention computed."""
    kernels, graph, dropout = options.kernels, options.graph, options.dropout
    attended, lse, weights, *state = kernels(options.attention.name).forward(
        Forward(
            inputs,
            options.seed if dropout > 0.0 else None,
            graph.by_target,
            by_source,
            graph.copies,
            options.settings,
            dropout,
            options.return_weights,
        )
    )
    out, gate, total = attended.flatten(1), None, None
    if gate_logit is None:
        out = out if bias is None else out + bias
    elif options.on_gpu:
        gate, row = gate_logit, _one_row(bias)
        out, total = kernels("gate").forward(gate_logit, out, row)
        out = out if bias is row else out.add_(bias)
    else:
        gate = torch.sigmoid(gate_logit)
        out = out * gate
        out = out if bias is None else out.add_(bias)
        if options.with_total:
            total = gate.sum(dtype=torch.promote_types(gate.dtype, torch.float32))
    if not options.return_weights:
        weights = None
    return Gated(out, weights, total), gate, [attended, lse, *state]


class _Fused(SingleLevelFunction):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any, options: _Options, gate_logit: Any, bias: Any, *inputs: Any
    ) -> Gated:
        by_source = options.graph.by_source
        results, gate, computed = _forward(
            options, by_source, gate_logit, bias, *inputs
        )
        ctx.set_materialize_grads(False)
        # The gate itself, or its logit, which is an input.
        own = None if gate is gate_logit else gate
        ctx.save_for_backward(gate_logit, _one_row(bias), *inputs, own, *computed)
        ctx.options = options
        if gate_logit is None and bias is None:
            # Backward needs what attention computed, and the caller may change the
            # output in place.
            return results._replace(out=results.out.clone())
        return results

    @staticmethod
    def backward(
        ctx: Any, dout: Any, dweights: Any = None, dtotal: Any = None
    ) -> tuple[Any, ...]:
        if in_forward_mode():
            refuse_tangents((dout, dweights, dtotal))
        options: _Options = ctx.options
        count = len(options.attention.inputs)
        gate_logit, bias, *saved = ctx.saved_tensors
        inputs, (gate, attended, lse, *state) = saved[:count], saved[count:]
        if dout is None:
            dout = attended.new_zeros(attended.flatten(1).shape)
        if torch.is_grad_enabled():
            # A second derivative will be taken.
            if bias is None and ctx.needs_input_grad[2]:
                # It was not kept, and its value has no part in gradients.
                bias = dout.detach().requires_grad_()
            given, wanted = (gate_logit, bias, *inputs), ctx.needs_input_grad[1:]
            again = functools.partial(_in_steps, options)
            upstream = (dout, dweights, dtotal)
            return None, *gradients_of(again, upstream, given, wanted)
        graph, dropout = options.graph, options.dropout
        seed = options.seed if dropout > 0.0 else None
        rows = graph.by_target, graph.by_source
        kept = Saved(tuple(inputs), seed, attended, lse, tuple(state), *rows)
        kernels = options.kernels(options.attention.name)
        gates: Any = options.kernels("gate") if options.on_gpu else None
        dattended, dlogit, dbias, table = dout, None, None, {}
        if gate_logit is not None and gates is None:
            dgate = dout * attended.flatten(1)
            if dtotal is not None:
                dgate += dtotal
            # In place: on a large graph, new memory takes longer than the sum.
            dlogit = _sigmoid_backward(dgate, gate, grad_input=dgate)
            dattended = dout * gate
        elif gate_logit is not None and dweights is None:
            more = kernels.statistics_options(kept)
            dlogit, dattended, statistics, partial = gates.backward_of_rows(
                dout, dtotal, gate_logit, attended, lse, **more
            )
            table = {"table": statistics}
            if bias is not None:
                dbias = partial.sum(0).flatten().to(dout.dtype)
        elif gate_logit is not None:
            flat = attended.flatten(1)
            dlogit, dattended = gates.backward(dout, dtotal, gate_logit, flat)
        if ctx.needs_input_grad[2] and dbias is None:
            dbias = dout if bias is None else dout.sum(0)
        wanted = ctx.needs_input_grad[3:]
        call = Backward(
            dattended.view_as(attended),
            dweights,
            kept,
            graph.copies,
            options.settings,
            dropout,
            wanted,
        )
        gradients = kernels.backward(call, **table)
        if graph.copies > 1:
            gradients = list(gradients)
            for k in options.attention.edges_at:
                gradients[k] = sum_copies(gradients[k], inputs[k])
        asked = [g if need else None for g, need in zip(gradients, wanted, strict=True)]
        return None, dlogit, dbias if ctx.needs_input_grad[2] else None, *asked
