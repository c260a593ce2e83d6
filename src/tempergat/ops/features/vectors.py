"""GAT's attention straight from its attention vectors, by few kernels each way.

The plain way takes some thirty operations for what is done here by a handful: scores of
nodes, their division by the temperature, attention, and all their gradients. It is for
eager code on a CUDA device; compilers fuse the plain formula by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter

from tempergat.ops.attention import gat
from tempergat.ops.attention_checks import check_dropout
from tempergat.ops.backend import find
from tempergat.ops.calls import Backward, Call, Forward, Saved, Vectors
from tempergat.ops.graph import Graph
from tempergat.ops.torch_internals import (
    in_dispatch_mode,
    in_forward_mode,
    in_transform,
    is_tracing,
)

_PLAIN_TYPES = (Tensor, Parameter, type(None))


class _Options(NamedTuple):
    """What a call has beside its tensors."""

    graph: Graph
    number: float
    negative_slope: float
    dropout: float
    return_weights: bool
    # Whether source and target nodes are the same rows of features.
    is_shared: bool
    # Whether a backward pass may follow.
    with_gradient: bool
    kernels: Any


def gat_from_vectors(
    graph: Graph,
    z: tuple[Tensor, Tensor | None],
    att: tuple[Tensor, Tensor],
    theta: Tensor | None,
    number: float,
    edge_score: Tensor | None,
    *,
    negative_slope: float,
    dropout: float,
    dropout_seed: Tensor | None,
    return_weights: bool,
) -> tuple[Tensor, Tensor | None] | None:
    """`gat` of the scores ``<z, att> / T``.

    Args:
        graph: The graph. If its targets are the first of its sources, they are so here.
        z: The projected features of sources and targets, [num_nodes, heads, channels];
            twice the same tensor where they are, None without targets' features.
        att: The attention vectors of sources and targets, float32.
        theta: None for a fixed temperature; else T is ``softplus(theta) + number``.
        number: The fixed temperature, or what is added.
        edge_score: The edges' part of the logits over T, in the graph's order.
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout), [edges, heads].

    Returns:
        The output and the weights; None if no kernel serves the call.
    """
    tensors = (*z, *att, theta, edge_score)
    kernels = _find_kernels(graph, tensors, dropout_seed)
    if kernels is None:
        return None
    if dropout != 0.0:
        check_dropout(dropout, dropout_seed, z[0].size(1))
    options = _Options(
        graph,
        number,
        negative_slope,
        dropout,
        return_weights,
        z[0] is z[1],
        torch.is_grad_enabled(),
        kernels,
    )
    z_dst = None if options.is_shared else z[1]
    seed = dropout_seed if dropout > 0.0 else None
    result: tuple[Tensor, Tensor] = _GatFromVectors.apply(  # type: ignore[no-untyped-call]
        z[0], z_dst, *att, theta, edge_score, seed, options
    )
    out, weights = result
    return out, weights if return_weights else None


def _find_kernels(
    graph: Graph | None, tensors: tuple[Tensor | None, ...], seed: Tensor | None
) -> Callable[[str], Any] | None:
    """Gives the modules with the kernels; None if they do not serve the call.

    Args:
        graph: The graph; None if only the vectors are divided.
        tensors: The features of both sides, then what must be float32.
        seed: The seeds of dropout.
    """
    if any(type(t) not in _PLAIN_TYPES for t in tensors):
        return None
    if is_tracing() or in_transform() or in_dispatch_mode() or in_forward_mode():
        return None
    if any(t is not None and t.dtype != torch.float32 for t in tensors[2:]):
        return None
    z_src, z_dst = tensors[:2]
    if z_src is None or (z_dst is not None and z_dst.dtype != z_src.dtype):
        return None
    op = "scores" if graph is None else "gat"
    backend = find(Call(op, ("gpu",), (*tensors, seed), graph))
    return None if backend is None else backend.kernels


def divide_by_temperature(att: Tensor, theta: Tensor, number: float) -> Tensor | None:
    """``att / (softplus(theta) + number)`` by one kernel each way.

    Args:
        att: One attention vector of each head, float32, [heads, channels] or
            [1, heads, channels].
        theta: A number for all heads, or one for each.
        number: What is added.

    Returns:
        The quotient; None if no kernel serves the call.
    """
    if att.dtype != torch.float32 or not att.is_contiguous():
        return None
    if att.numel() != att.size(-2) * att.size(-1):
        return None
    kernels = _find_kernels(None, (att, None, theta), None)
    if kernels is None:
        return None
    quotient: Tensor = _DivideByTemperature.apply(  # type: ignore[no-untyped-call]
        att, theta, number, kernels("scores")
    )
    return quotient


class _DivideByTemperature(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, att: Tensor, theta: Tensor, number: float, kernels: Any
    ) -> Tensor:
        ctx.save_for_backward(att, theta)
        ctx.number, ctx.kernels = number, kernels
        out: Tensor = kernels.divide(att, theta, number)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        (dout,), (att, theta) = gradients, ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative will be taken.
            temperature = (F.softplus(theta) + ctx.number).view(-1, 1)
            product = (dout * att / temperature.square()).sum(-1)
            slope = torch.sigmoid(theta)
            if theta.dim() == 0:
                return dout / temperature, -product.sum() * slope, None, None
            dtheta = -product.view(-1, theta.size(0)).sum(0) * slope
            return dout / temperature, dtheta, None, None
        datt, dtheta, _ = ctx.kernels.divide_backward(dout, att, theta, ctx.number)
        return datt, dtheta, None, None


class _GatFromVectors(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        z_src, z_dst, att_src, att_dst, theta, edge_score, seed, options = arguments
        graph, number = options.graph, options.number
        scores = options.kernels("scores")
        z, score_dst = z_src.contiguous(), None
        if options.is_shared:
            both = Vectors(att_src, att_dst, theta, number)
            score_src, score_dst = scores.forward(z, both)
            if graph.num_dst < z.size(0):
                score_dst = score_dst[: graph.num_dst]
        else:
            (score_src,) = scores.forward(z, Vectors(att_src, None, theta, number))
            if z_dst is not None:
                vector = Vectors(att_dst, None, theta, number)
                (score_dst,) = scores.forward(z_dst.contiguous(), vector)
        call = Forward(
            (z, score_src, score_dst, edge_score),
            seed,
            graph.by_target,
            graph.by_source if options.with_gradient else None,
            (options.negative_slope,),
            options.dropout,
            options.return_weights,
        )
        out, lse, weights = options.kernels("gat").forward(call)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*arguments[:7], score_src, score_dst, out, lse)
        ctx.options = options
        return out, weights

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        dout, dweights = gradients
        z_src, z_dst, att_src, att_dst, theta, edge_score, seed, *results = (
            ctx.saved_tensors
        )
        score_src, score_dst, out, lse = results
        options: _Options = ctx.options
        if dout is None:
            dout = torch.zeros_like(out)
        if torch.is_grad_enabled():
            return (*_plain_gradients(ctx, dout, dweights), None, None)
        graph, number = options.graph, options.number
        z = z_src.contiguous()
        inputs = (z, score_src, score_dst, edge_score)
        saved = Saved(inputs, seed, out, lse, graph.by_target, graph.by_source)
        slope = (options.negative_slope,)
        dz, dscore_src, dscore_dst, dedge = options.kernels("gat").backward(
            Backward(dout, dweights, saved, slope, options.dropout)
        )
        scores = options.kernels("scores")
        dz_dst = datt_dst = None
        second = att_dst if options.is_shared else None
        vectors = Vectors(att_src, second, theta, number)
        dscores = (dscore_src, dscore_dst)[: 1 if second is None else 2]
        (datt_src, datt_dst, dtheta, _), _ = scores.backward(
            z, vectors, dscores, dz, add=True
        )
        if z_dst is not None:
            z = z_dst.contiguous()
            dz_dst, vectors = torch.empty_like(z), Vectors(att_dst, None, theta, number)
            (datt_dst, _, more, _), _ = scores.backward(
                z, vectors, (dscore_dst,), dz_dst, add=False
            )
            dtheta = None if more is None else dtheta + more
        dedge = None if edge_score is None else dedge
        return dz, dz_dst, datt_src, datt_dst, dtheta, dedge, None, None


def _plain_gradients(ctx: Any, dout: Tensor, dweights: Tensor | None) -> list[Any]:
    """The gradients by differentiable operations, for a second derivative."""
    inputs = z_src, z_dst, att_src, att_dst, theta, edge_score = ctx.saved_tensors[:6]
    options: _Options = ctx.options
    temperature: Any = options.number
    if theta is not None:
        temperature = (F.softplus(theta) + options.number).view(-1, 1)
    targets = z_src if options.is_shared else z_dst
    score_src = (z_src * (att_src / temperature)).sum(-1)
    score_dst = None
    if targets is not None:
        score_dst = (targets * (att_dst / temperature)).sum(-1)
        score_dst = score_dst[: options.graph.num_dst]
    outputs = gat(
        options.graph,
        z_src,
        score_src,
        score_dst,
        edge_score,
        negative_slope=options.negative_slope,
        dropout=options.dropout,
        dropout_seed=ctx.saved_tensors[6],
        return_weights=dweights is not None,
    )
    pairs = [
        (out, gradient)
        for out, gradient in zip(outputs, (dout, dweights), strict=True)
        if out is not None and gradient is not None
    ]
    needed = [n for n, needs in enumerate(ctx.needs_input_grad[:6]) if needs]
    found = torch.autograd.grad(
        [out for out, _ in pairs],
        [inputs[n] for n in needed],
        [gradient for _, gradient in pairs],
        create_graph=True,
        allow_unused=True,
    )
    by_number = dict(zip(needed, found, strict=True))
    return [by_number.get(n) for n in range(6)]
