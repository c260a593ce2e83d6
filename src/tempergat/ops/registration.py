"""Registers ops with torch: their shapes, gradients and batching in one place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from tempergat.ops.torch_internals import (
    KEYS_BELOW_AUTOGRAD,
    SingleLevelFunction,
    any_requires_grad,
    below_autograd,
    by_vmap_rule,
    in_dispatch_mode,
    in_forward_mode,
    in_torch_export,
    in_transform,
    single_level_functions,
)

library = torch.library.Library(  # type: ignore[no-untyped-call]
    "tempergat", "FRAGMENT"
)
# The dispatch key of all devices for which an op has no other implementation.
ELSEWHERE = "CompositeExplicitAutograd"
_functions: dict[str, Any] = {}
# The same ops without torch's dispatcher, which costs more than a small graph.
_Ways = tuple[dict[str, Callable[..., Any]], Callable[..., Any]]
_full: dict[str, _Ways] = {}
_direct: dict[str, _Ways] = {}
_PLAIN_TYPES = frozenset((Tensor, Parameter, type(None), bool, int, float))
_DISPATCH_KEYS = {"cpu": "CPU", "cuda": "CUDA"}


def register(
    schema: str,
    run: dict[str, Callable[..., Any]],
    *,
    shapes: Callable[..., Any],
    save: Callable[..., None],
    gradient: Callable[..., Any],
    fold: Callable[..., Any],
    direct: dict[str, Callable[..., Any]] | None = None,
) -> None:
    """Defines ``tempergat::<name>``.

    Args:
        schema: Name, arguments and results, in torch's notation.
        run: The implementations, by dispatch key.
        shapes: Returns empty results of the right shapes, for tensors without data.
        save: Saves what backward needs, as `torch.autograd.Function.setup_context`.
        gradient: As `torch.autograd.Function.backward`.
        fold: As `torch.autograd.Function.vmap`.
        direct: The implementations that `runner` takes past torch's dispatcher, where
            they differ: they may return None in place of an empty tensor.
    """
    name = schema[: schema.index("(")]
    full = f"tempergat::{name}"
    library.define(schema)  # type: ignore[no-untyped-call]
    for key, function in run.items():
        library.impl(name, function, key)  # type: ignore[no-untyped-call]
    torch.library.register_fake(full, shapes, lib=library)
    differentiable = _differentiable(name, run, save, gradient, direct or run)
    library.impl(  # type: ignore[no-untyped-call]
        name, differentiable, "Autograd", with_keyset=True
    )
    torch.library.register_vmap(full, fold, lib=library)
    rules = {
        "forward": getattr(torch.ops.tempergat, name),
        "setup_context": save,
        "backward": gradient,
        "vmap": fold,
        "jvp": _refuse_forward_mode,
    }
    members = {key: staticmethod(rule) for key, rule in rules.items()}
    _functions[name] = type(name, (torch.autograd.Function,), members)


def _differentiable(
    name: str,
    run_on: dict[str, Callable[..., Any]],
    save: Callable[..., None],
    gradient: Callable[..., Any],
    direct: dict[str, Callable[..., Any]],
) -> Callable[..., Any]:
    """The op as autograd sees it.

    As `torch.library.register_autograd` would make it, but without inspecting the
    schema in every call, which takes longer than a small graph's attention.
    """
    op = getattr(torch.ops.tempergat, name).default

    def below(keyset: Any, arguments: Any) -> Any:
        with below_autograd():
            return op.redispatch(keyset & KEYS_BELOW_AUTOGRAD, *arguments)

    def forward(ctx: Any, keyset: Any, *arguments: Any) -> Any:
        if isinstance(keyset, dict):
            result = _implementation(keyset, arguments)(*arguments)
        else:
            result = below(keyset, arguments)
        save(ctx, arguments, result)
        return result

    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *gradient(ctx, *gradients))

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type(f"{name}_eager", (torch.autograd.Function,), members)
    # Inside a transform torch has already peeled off the outer levels.
    function_of_one: Any = type(f"{name}_traced", (SingleLevelFunction,), members)

    # Without a transform there is one level, and its function is quicker.
    for table, ways in ((_full, run_on), (_direct, direct)):
        table[name] = ways, functools.partial(function_of_one.apply, ways)

    def run(keyset: Any, *arguments: Any) -> Any:
        if not (torch.is_grad_enabled() and any_requires_grad(*arguments)):
            return below(keyset, arguments)
        if not in_transform():
            return function.apply(keyset, *arguments)
        with single_level_functions():
            return function_of_one.apply(keyset, *arguments)

    return run


def _implementation(
    run_on: dict[str, Callable[..., Any]], arguments: tuple[Any, ...]
) -> Callable[..., Any]:
    """The implementation for the device of the first argument."""
    key = _DISPATCH_KEYS.get(arguments[0].device.type, ELSEWHERE)
    return run_on.get(key) or run_on[ELSEWHERE]


def runner(
    name: str, arguments: tuple[Any, ...], full: bool = False
) -> Callable[..., Any]:
    """The function that runs one of our ops on these arguments.

    Without ``full`` it may return None in the place of an empty tensor.
    """
    # Modes and other kinds of tensors see an operation through the dispatcher only.
    if (
        torch.compiler.is_compiling()
        or in_transform()
        or in_forward_mode()
        or in_dispatch_mode()
        or not _PLAIN_TYPES.issuperset(map(type, arguments))
    ):
        return functools.partial(_run, name)
    run_on, differentiable = (_full if full else _direct)[name]
    if torch.is_grad_enabled() and any_requires_grad(*arguments):
        return differentiable
    return _implementation(run_on, arguments)


def call(name: str, *arguments: Any) -> Any:
    """Runs one of our ops."""
    return runner(name, arguments, full=True)(*arguments)


def _run(name: str, *arguments: Any) -> Any:
    """Runs one of our ops where something watches or transforms it."""
    # The function transforms (vmap of grad) do not know formulas registered with
    # torch.library; they know an autograd.Function of the same parts.
    op = getattr(torch.ops.tempergat, name)
    if torch.compiler.is_compiling():
        return op(*arguments)
    if in_transform():
        results = by_vmap_rule(_functions[name].vmap, arguments)
        if results is not NotImplemented:
            return results
        return _functions[name].apply(*arguments)
    if in_forward_mode():
        refuse_tangents(arguments)
    if torch.is_grad_enabled():
        return op(*arguments)
    with below_autograd():
        return op(*arguments)


def needs_plain() -> bool:
    """Whether only torch's own ops can be used: in forward mode and in an export."""
    return in_forward_mode() or in_torch_export()


def refuse_tangents(arguments: Any) -> None:
    """Raises RuntimeError if a tensor among the arguments carries a tangent."""
    for x in arguments:
        if not isinstance(x, Tensor):
            continue
        _, tangent = forward_ad.unpack_dual(x)  # type: ignore[no-untyped-call]
        if tangent is not None:
            _refuse_forward_mode()


def _refuse_forward_mode(*_: Any) -> Any:
    raise RuntimeError(
        "the fused kernels have no forward-mode derivative; run the layer's forward "
        "pass inside the forward-mode transform too, where it takes plain PyTorch"
    )


def fold(x: Tensor, dim: int | None, axis: int, size: int) -> Tensor:
    """Merges a batch dimension into the axis; a view where the layout allows it.

    Args:
        x: The tensor, batched or not.
        dim: Where its batch dimension is; None if it has none, and is repeated.
        axis: The axis to merge into, counted without the batch dimension.
        size: The size of the batch.
    """
    if dim is None:
        x = x.unsqueeze(axis)
        batched = x.expand(*x.shape[:axis], size, *x.shape[axis + 1 :])
    else:
        batched = x.movedim(dim, axis)
    return batched.flatten(axis, axis + 1)
