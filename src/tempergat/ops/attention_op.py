"""Attention by kernels, registered with torch once for all devices.

An attention called ``gat`` has the torch ops ``tempergat::gat_forward`` and
``tempergat::gat_backward``. They have shapes without data (`torch.compile`), gradients,
and a `vmap` rule that folds the batch into the heads: many models on one graph are one
call with more heads. The work is done by the backends' kernels.

Letters of shapes: S source nodes, T target nodes, E edges, H heads, C channels per
head, D features per edge. The gradient of an absent input is a tensor with no rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tempergat.ops.backend import BACKENDS, Backend
from tempergat.ops.calls import (
    EPILOGUE_INPUTS,
    Attention,
    Backward,
    Epilogue,
    Forward,
    Input,
    changes_output,
    sum_copies,
    working_dtype,
)
from tempergat.ops.graphs.graph import Graph
from tempergat.ops.graphs.rows import Rows
from tempergat.ops.registration import call, fold, register, runner
from tempergat.ops.second_derivative import (
    save_for_second_derivative,
    second_derivative,
)
from tempergat.ops.torch_internals import any_requires_grad

_NO_ROWS = (None,) * len(Rows._fields)


def arguments(
    attention: Attention,
    graph: Graph,
    inputs: tuple[Tensor | None, ...],
    epilogue: Epilogue,
    settings: tuple[float, ...],
    dropout: float,
    dropout_seed: Tensor | None,
    return_weights: bool,
    mode: str,
) -> tuple[Any, ...]:
    """The arguments of the op that computes the same as the attention's reference.

    Args:
        attention: The attention.
        graph: The graph.
        inputs: The attention's inputs, in types that kernels take.
        epilogue: What is done with the output, in the type of the features.
        settings: The attention's numbers.
        dropout: Rate of dropout on the weights.
        dropout_seed: One seed per head, needed when ``dropout`` > 0.
        return_weights: Whether the weights are wanted.
        mode: The `execution_mode`.
    """
    logit, skip, bias, gate_sum = epilogue
    tensors = (*inputs, logit, skip, bias)
    # Only a backward pass needs the edges by source. A tracer and a transform hide
    # which tensors have gradients.
    may_differ = torch.is_grad_enabled() and (
        mode in ("traced", "transformed") or any_requires_grad(*tensors)
    )
    by_source = graph.by_source if may_differ else _NO_ROWS
    return (
        *tensors,
        dropout_seed if dropout > 0.0 else None,
        *graph.by_target,
        *by_source,
        graph.copies,
        *settings,
        dropout,
        return_weights,
        gate_sum,
    )


def converted(
    attention: Attention, inputs: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """The inputs in the types that kernels take.

    Everything is float64 as soon as one input is.
    """
    first = inputs[0]
    if first is not None and first.dtype in (torch.float32, torch.float64):
        for x in inputs:
            if x is not None and x.dtype != first.dtype:
                break
        else:
            return inputs
    stored, work = None, torch.float32
    for x, spec in zip(inputs, attention.inputs, strict=True):
        if x is None:
            continue
        if x.dtype == torch.float64:
            stored = work = torch.float64
            break
        if not spec.working and x.dtype != stored:
            stored = x.dtype if stored is None else torch.promote_types(stored, x.dtype)
    types = [work if spec.working else stored for spec in attention.inputs]
    return tuple(
        x if x is None or x.dtype == dtype else x.to(dtype)
        for x, dtype in zip(inputs, types, strict=True)
    )


def register_ops(attention: Attention) -> None:
    """Registers the forward and the backward op of an attention."""
    forward, backward = _schemas(attention)
    # -1 for an input that has no heads and serves all of them. A seed is one number per
    # head; what has rows of nodes or edges has heads second.
    heads_at = [spec.shape.find("H") for spec in attention.inputs]
    state_at = [shape.find("H") for shape in attention.state]
    served = [b for b in BACKENDS if b.NAME in attention.backends]
    forwards = {b.DISPATCH_KEY: _forward(b, attention) for b in served}
    backwards = {b.DISPATCH_KEY: _backward(b, attention) for b in served}
    given_at, saved_at = [*heads_at, 1, 1, 0, 0], [*heads_at, 1, 0, 0, 1, 1, *state_at]
    register(
        forward,
        {key: _full_forward(run) for key, run in forwards.items()},
        shapes=_forward_shapes(attention),
        save=_save(attention),
        gradient=_gradient(attention),
        fold=_fold(attention.forward_name, given_at, [1, 1, 1, 1, 1, *state_at]),
        direct=forwards,
    )
    register(
        backward,
        {key: _full_backward(run, attention) for key, run in backwards.items()},
        shapes=_backward_shapes(attention),
        save=save_for_second_derivative(attention),
        gradient=second_derivative(attention),
        fold=_fold(attention.backward_name, [1, 1, 1, *saved_at], [*heads_at, 1, 0]),
        direct=backwards,
    )


def _schemas(attention: Attention) -> tuple[str, str]:
    inputs = ", ".join(_declared(spec) for spec in attention.inputs)
    edges = ", ".join(
        f"Tensor{mark} {side}_{part}"
        for side, mark in (("target", ""), ("source", "?"))
        for part in Rows._fields
    )
    numbers = ", ".join(f"float {n}" for n in (*attention.settings, "dropout"))
    gradients = ", ".join(["Tensor"] * (len(attention.inputs) + 2))
    results = ", ".join(["Tensor"] * (5 + len(attention.state)))
    state = "".join(f", Tensor state_{k}" for k in range(len(attention.state)))
    return (
        f"{attention.forward_name}({inputs}, Tensor? gate_logit, Tensor? skip, "
        f"Tensor? bias, Tensor? dropout_seed, {edges}, SymInt copies, {numbers}, "
        f"bool weights, bool gate_sum) -> ({results})",
        f"{attention.backward_name}(Tensor dout, Tensor? dweights, Tensor? dgate_sum, "
        f"{inputs}, Tensor? gate_logit, Tensor? bias, Tensor? dropout_seed, "
        f"Tensor attended, Tensor lse{state}, {edges}, SymInt copies, {numbers}, "
        f"int wanted) -> ({gradients})",
    )


def _declared(spec: Input) -> str:
    return f"Tensor{'?' if spec.optional else ''} {spec.name}"


def _forward(backend: Backend, attention: Attention) -> Callable[..., Any]:
    def run_forward(*arguments: Any) -> Any:
        forward = Forward.of(attention, arguments)
        return backend.attend(attention.name, forward)

    return run_forward


def _full_forward(run_forward: Callable[..., Any]) -> Callable[..., Any]:
    """The same with empty tensors for what is absent, for torch's dispatcher."""

    def run(*arguments: Any) -> Any:
        out, attended, lse, weights, gate_sum, *state = run_forward(*arguments)
        heads, absent = out.size(1), (*out.shape[:2], 0)
        return (
            out,
            out.new_empty(0, *out.shape[1:]) if attended is None else attended,
            lse,
            lse.new_empty(0, heads) if weights is None else weights,
            lse.new_empty(0, heads) if gate_sum is None else gate_sum,
            *[lse.new_empty(absent) if x is None else x for x in state],
        )

    return run


def _backward(backend: Backend, attention: Attention) -> Callable[..., Any]:
    def run_backward(*arguments: Any) -> Any:
        backward = Backward.of(attention, arguments)
        found = backend.gradients(attention.name, backward)
        if backward.copies == 1:
            return found
        given = backward.saved.given
        return tuple(sum_copies(dx, x) for dx, x in zip(found, given, strict=True))

    return run_backward


def _full_backward(
    run_backward: Callable[..., Any], attention: Attention
) -> Callable[..., Any]:
    """The same with empty tensors for what is absent."""
    specs = (*attention.inputs, *EPILOGUE_INPUTS)

    def run(*arguments: Any) -> Any:
        given = Backward.of(attention, arguments).saved.given
        found = run_backward(*arguments)
        return tuple(
            empty_gradient(x, spec, given[0]) if gradient is None else gradient
            for gradient, x, spec in zip(found, given, specs, strict=True)
        )

    return run


def _forward_shapes(attention: Attention) -> Callable[..., Any]:
    def shapes(*arguments: Any) -> tuple[Tensor, ...]:
        forward = Forward.of(attention, arguments)
        z_SHC, (pointer, other, *_) = forward.inputs[0], forward.by_target
        heads, channels = z_SHC.shape[1:]
        targets = (pointer.size(0) - 1) * forward.copies
        edges = other.size(0) * forward.copies if forward.weights else 0
        work = working_dtype(z_SHC.dtype)
        # Maximum and logarithm of the sum are apart on CUDA devices.
        lse = (targets, heads, 2) if z_SHC.is_cuda else (targets, heads)
        sizes = {"S": z_SHC.size(0), "T": targets, "H": heads, "C": channels, "D": 0}
        for k, axis in attention.width_at:
            if forward.inputs[k] is not None:
                sizes["D"] = forward.inputs[k].size(axis)
        state = [[sizes[letter] for letter in shape] for shape in attention.state]
        attended = targets if changes_output(forward.epilogue) else 0
        return (
            z_SHC.new_empty(targets, heads, channels),
            z_SHC.new_empty(attended, heads, channels),
            z_SHC.new_empty(lse, dtype=work),
            z_SHC.new_empty(edges, heads, dtype=work),
            z_SHC.new_empty(int(forward.epilogue.gate_sum), heads, dtype=work),
            *[z_SHC.new_empty(shape, dtype=work) for shape in state],
        )

    return shapes


def _backward_shapes(attention: Attention) -> Callable[..., Any]:
    specs = (*attention.inputs, *EPILOGUE_INPUTS)

    def shapes(*arguments: Any) -> tuple[Tensor, ...]:
        given = Backward.of(attention, arguments).saved.given
        return tuple(
            empty_gradient(x, spec, given[0])
            for x, spec in zip(given, specs, strict=True)
        )

    return shapes


def empty_gradient(x: Tensor | None, spec: Input, z_SHC: Tensor) -> Tensor:
    """An uninitialised gradient of an input; without rows if the input is absent."""
    if x is not None:
        return x.new_empty(x.shape)
    sizes = {"H": z_SHC.size(1), "C": z_SHC.size(2)}
    dtype = working_dtype(z_SHC.dtype) if spec.working else z_SHC.dtype
    return z_SHC.new_empty([sizes.get(letter, 0) for letter in spec.shape], dtype=dtype)


def _save(attention: Attention) -> Callable[..., None]:
    def save(ctx: Any, arguments: Any, output: Any) -> None:
        inputs, (logit, skip, bias), seed, by_target, by_source, copies, *numbers = (
            attention.forward_arguments.split(arguments)
        )
        settings, dropout, *_ = numbers
        out, attended, lse, _, _, *state = output
        helpers = [x for x in (attended, lse, *state) if x is not None]
        ctx.mark_non_differentiable(*helpers)
        ctx.set_materialize_grads(False)
        ctx.numbers = (copies, *settings, dropout)
        kept = out if logit is None and skip is None and bias is None else attended
        # In the order of attention.saved_tensors.
        given, rows = (*inputs, logit, bias, seed), (*by_target, *by_source)
        ctx.save_for_backward(*given, kept, lse, *state, *rows)

    return save


def _gradient(attention: Attention) -> Callable[..., Any]:
    count, length = len(attention.inputs), attention.forward_arguments.length
    # The seed, the edges and the numbers have no gradient.
    rest = [None] * (length - count - 3)

    def gradient(ctx: Any, dout: Any, *others: Any) -> Any:
        _, _, dweights, dgate_sum, *_ = others
        saved = ctx.saved_tensors
        inputs, logit, bias, _, attended, *_ = attention.saved_tensors.split(saved)
        if dout is None:
            dout = torch.zeros_like(attended)
        # In eager code a set of keys comes before the op's own arguments.
        needed = ctx.needs_input_grad[-length:]
        # A bit for each input and for the bias: vmap does not pass lists on.
        *wanted, _, wants_skip, wants_bias = needed[: count + 3]
        bits = sum(need << k for k, need in enumerate((*wanted, wants_bias)))
        given = (dout, dweights, dgate_sum, *saved, *ctx.numbers, bits)
        found = runner(attention.backward_name, given)(*given)
        *gradients, dlogit, dbias = found
        results = [
            gradient if x is not None else None
            for gradient, x in zip(gradients, inputs, strict=True)
        ]
        return (
            *results,
            None if logit is None else dlogit,
            dout if wants_skip else None,
            None if bias is None else dbias,
            *rest,
        )

    return gradient


def _fold(name: str, heads_at: list[int], results_at: list[int]) -> Callable[..., Any]:
    """The vmap rule: a batch of calls is one call with that many times the heads.

    A tensor without heads serves all of them, so it must be the same in every call.
    If it is not, or if its gradient is asked for, which differs between the calls,
    they run one after the other.

    Args:
        name: The op.
        heads_at: Which dimension of each leading tensor argument is the heads; -1 for
            none.
        results_at: The same for the results.
    """
    gives_gradients = -1 in results_at

    def rule(info: Any, in_dims: Any, *arguments: Any) -> Any:
        size, count = info.batch_size, len(heads_at)
        leading = list(zip(arguments[:count], in_dims[:count], heads_at, strict=True))
        if any(
            x is not None and axis < 0 and (dim is not None or gives_gradients)
            for x, dim, axis in leading
        ):
            return _run_each(name, size, in_dims, arguments)
        folded = [
            x if x is None or axis < 0 else fold(x, dim, axis, size)
            for x, dim, axis in leading
        ]
        results = call(name, *folded, *arguments[count:])
        # The gradient of an absent tensor without heads is the same for all calls.
        unfolded = tuple(
            result if axis < 0 else result.unflatten(axis, (size, -1))
            for result, axis in zip(results, results_at, strict=True)
        )
        return unfolded, tuple(None if axis < 0 else axis for axis in results_at)

    return rule


def _run_each(name: str, size: int, in_dims: Any, arguments: Any) -> Any:
    """The vmap rule of calls that cannot be one call."""
    each = [
        call(
            name,
            *(
                x if dim is None else x.select(dim, number)
                for x, dim in zip(arguments, in_dims, strict=True)
            ),
        )
        for number in range(size)
    ]
    results = tuple(torch.stack(parts) for parts in zip(*each, strict=True))
    return results, (0,) * len(results)
