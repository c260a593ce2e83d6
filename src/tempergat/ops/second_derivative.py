"""The derivative of an attention's gradient, in plain PyTorch.

The kernels compute outputs and gradients. Where a gradient is differentiated again
(forces from energies, gradient penalties, meta-learning), the reference takes the place
of the kernels, with the same dropout seed. Its operations are torch's own, so third and
higher derivatives exist too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tempergat.ops import gpu
from tempergat.ops.calls import Attention, Saved
from tempergat.ops.graphs.graph import Graph
from tempergat.ops.graphs.rows import Rows


def save_for_second_derivative(attention: Attention) -> Callable[..., None]:
    """What the backward op saves; autograd asks only if its results have gradients."""

    def save(ctx: Any, arguments: Any, output: Any) -> None:
        dout, dweights, dgate_sum, saved, copies, settings, dropout, _ = (
            attention.backward_arguments.split(arguments)
        )
        kept = Saved.of(attention, saved)
        ctx.set_materialize_grads(False)
        ctx.copies, ctx.settings, ctx.dropout = copies, settings, dropout
        upstream = (dout, dweights, dgate_sum)
        ctx.save_for_backward(
            *upstream, kept.dropout_seed, *kept.by_target, *kept.given
        )

    return save


def second_derivative(attention: Attention) -> Callable[..., Any]:
    """The gradient formula of the backward op."""
    count = attention.backward_arguments.length

    def gradient(ctx: Any, *cotangents: Any) -> Any:
        *upstream, seed = ctx.saved_tensors[:4]
        rest = ctx.saved_tensors[4:]
        rows, inputs = rest[: len(Rows._fields)], rest[len(Rows._fields) :]
        num_src = inputs[0].size(0) // ctx.copies
        graph = Graph.of_rows(Rows(*rows), num_src).repeat(ctx.copies)
        places = [k for k, x in enumerate(inputs) if x is not None]
        given = [inputs[k] for k in places]
        asked = [k for k, x in enumerate(upstream) if x is not None]

        def outputs(*given: Tensor) -> tuple[Tensor, ...]:
            every: list[Tensor | None] = [None] * len(inputs)
            for k, x in zip(places, given, strict=True):
                every[k] = x
            *own, logit, bias = every
            out, weights = attention.by_reference(
                graph, own, ctx.settings, ctx.dropout, seed
            )
            results: list[Any] = [out, weights, None]
            if logit is not None:
                gate = logit.sigmoid()
                results[0] = out * gate
                if upstream[2] is not None:
                    results[2] = _parts_of_sum(gate, upstream[2])
            if bias is not None:
                results[0] = results[0] + bias
            return tuple(results[k] for k in asked)

        def first_derivative(upstream: tuple[Tensor, ...], *given: Tensor) -> Any:
            pull_back: Any = torch.func.vjp(outputs, *given)[1]
            return pull_back(upstream)

        found = tuple(upstream[k] for k in asked)
        pull_back: Any = torch.func.vjp(first_derivative, found, *given)[1]
        wanted = tuple(
            torch.zeros_like(inputs[k]) if cotangents[k] is None else cotangents[k]
            for k in places
        )
        dupstream, *dgiven = pull_back(wanted)
        results: list[Tensor | None] = [None] * count
        for k, dx in zip(asked, dupstream, strict=True):
            results[k] = dx
        for k, dx in zip(places, dgiven, strict=True):
            # After three gradients come the inputs.
            results[3 + k] = dx
        return tuple(results)

    return gradient


def _parts_of_sum(gate_THC: Tensor, like: Tensor) -> Tensor:
    """The sum of the gate in parts: of heads, or on a GPU of equal runs of elements."""
    if like.size(1) == gate_THC.size(1):
        return gate_THC.sum((0, 2), dtype=like.dtype).unsqueeze(0)
    block = gpu.kernels("gate").BLOCK
    flat = gate_THC.flatten()
    padded = torch.nn.functional.pad(flat, (0, like.size(0) * block - flat.size(0)))
    return padded.view(-1, block).sum(1, keepdim=True, dtype=like.dtype)


def gradients_of(
    function: Callable[..., Sequence[Tensor | None]],
    upstream: Sequence[Tensor | None],
    inputs: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """Gradients that can be differentiated again; None for inputs without one.

    Args:
        function: Gives the outputs by differentiable operations.
        upstream: The gradients of the outputs; None for those that have none.
        inputs: What the function takes.
        wanted: Which inputs need a gradient.
    """
    # As views, because one input may have been computed from another.
    given = [None if x is None else x.view_as(x) for x in inputs]
    outputs = function(*given)
    pairs = [
        (out, gradient)
        for out, gradient in zip(outputs, upstream, strict=True)
        # An output may depend on none of the inputs that have gradients.
        if out is not None and out.requires_grad and gradient is not None
    ]
    places = [k for k, needed in enumerate(wanted) if needed]
    leaves: Any = [given[k] for k in places]
    found = torch.autograd.grad(
        [out for out, _ in pairs],
        leaves,
        [gradient for _, gradient in pairs],
        create_graph=True,
        allow_unused=True,
    )
    results: list[Tensor | None] = [None] * len(inputs)
    for k, gradient in zip(places, found, strict=True):
        results[k] = gradient
    return results
