"""A user's own module: a hash of its source, and how it is built and called.

It is any `nn.Module` that is called as ``module(x, edge_index)`` with dense features
and a plain ``edge_index`` tensor, and returns one row of class scores for each node.
Edge features and weights that are used are passed as ``edge_attr`` and ``edge_weight``
where its ``forward`` has an argument of that name.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch_geometric.nn as pyg
from torch import Tensor, nn

from tempergat.base import UserError, is_out_of_memory
from tempergat.training.runs.models import seeded_weights

BuildModule = Callable[[int, int], nn.Module]

_PLAIN = (str, bytes, int, float, complex, type(None))
_LIBRARIES = {"tempergat", "torch", "torch_geometric", *sys.stdlib_module_names}


def build_user_module(
    build: BuildModule, method: str, in_channels: int, num_classes: int, seed: int
) -> nn.Module:
    """A user's module with its initial weights, on the CPU.

    Raises:
        UserError: The callable fails, or returns no module or one without numbers.
    """
    remedy = f"; it is called as {method}(in_channels, out_channels)"
    with seeded_weights(seed), explain_errors(method, remedy):
        module: Any = build(in_channels, num_classes)
    if not isinstance(module, nn.Module):
        raise UserError(
            f"{method}({in_channels}, {num_classes}) returned {_describe(module)}; "
            "return a torch.nn.Module"
        )
    if any(tensor.is_meta for tensor in (*module.parameters(), *module.buffers())):
        raise UserError(
            f"{method}({in_channels}, {num_classes}) returned a module on the device "
            "meta, which has no numbers; build it on the CPU"
        )
    return module


def taken_edge_inputs(
    module: nn.Module, edge_inputs: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The edge features and weights that a module's ``forward`` has arguments for."""
    if not edge_inputs:
        return {}
    taken = inspect.signature(module.forward).parameters
    return {name: value for name, value in edge_inputs.items() if name in taken}


def call_user_module(
    method: str,
    module: Any,
    x: Tensor,
    edge_index: Tensor | None,
    edge_inputs: Mapping[str, Tensor],
    num_classes: int,
) -> Tensor:
    """The class scores of a module.

    Raises:
        UserError: They are not one row per node with a number for each class.
    """
    logits = module(x, edge_index, **taken_edge_inputs(module, edge_inputs))
    right = isinstance(logits, Tensor) and logits.is_floating_point()
    expected = [x.size(0), num_classes]
    if right and list(logits.shape) == expected:
        return logits  # type: ignore[no-any-return]
    raise UserError(
        f"the module of {method} returned {_describe(logits)}; return a "
        f"floating-point tensor {expected}: one row per node, one score per class"
    )


@contextmanager
def explain_errors(method: str, remedy: str = "") -> Iterator[None]:
    """Turns an error in a user's code into one line; the traceback stays chained.

    Args:
        method: The method's name.
        remedy: What to do about it; ends the line.

    Raises:
        UserError: The code raised an exception, except for lack of memory.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())
        raise UserError(
            f"the module of {method} failed with {type(error).__name__}: {reason}"
            f"{remedy}"
        ) from error


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor {list(value.shape)}"
    return f"an object of type {type(value).__name__}"


def source_hash(build: Callable[..., Any]) -> str:
    """Hash of a callable's source and of the user's code that it refers to.

    Covers the classes, functions and plain values that the source names, however
    deep, but not the code of installed packages. Editing any of it changes the hash.
    """
    digest = hashlib.sha256()
    for text in _texts(build, set()):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:16]


def callable_name(build: Callable[..., Any]) -> str:
    """The name of a function or class, also inside a `functools.partial`.

    That of a layer of this package which PyG has under the same name is a full one.
    """
    while isinstance(build, functools.partial):
        build = build.func
    name = str(getattr(build, "__name__", type(build).__name__))
    is_ours = str(getattr(build, "__module__", "")).startswith("tempergat.nn.")
    return f"tempergat.nn.{name}" if is_ours and hasattr(pyg, name) else name


def _texts(value: Any, seen: set[int]) -> Iterator[str]:
    """The source of a value and of everything in it or named by it."""
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, functools.partial):
        value = {"call": value.func, "args": value.args, **value.keywords}
    if isinstance(value, list | tuple | set | frozenset):
        for part in (
            value if isinstance(value, list | tuple) else sorted(map(repr, value))
        ):
            yield from _texts(part, seen)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield repr(key)
            yield from _texts(part, seen)
    elif _is_library_code(value):
        yield callable_name(value)
    elif isinstance(value, FunctionType):
        yield _source(value)
        yield from _texts(value.__defaults__, seen)
        yield from _texts(value.__kwdefaults__, seen)
        yield from _code_texts(value.__code__, _visible_names(value), seen)
    elif isinstance(value, type):
        yield _source(value)
        for base in value.__bases__:
            yield from _texts(base, seen)
        for member in vars(value).values():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(function, FunctionType):
                yield from _texts(function, seen)
    elif callable(value):
        yield from _texts(type(value), seen)
        yield from _texts(getattr(value, "__dict__", {}), seen)


def _code_texts(code: CodeType, names: dict[str, Any], seen: set[int]) -> Iterator[str]:
    """The constants of compiled code, and the sources of what it names."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_texts(constant, names, seen)
        else:
            # Two lambdas on one line have the same source.
            yield repr(constant)
    for name in (*code.co_names, *code.co_freevars):
        yield name
        named = names.get(name)
        if not isinstance(named, ModuleType):
            yield from _texts(named, seen)
        elif not _is_library_code(named):
            for attribute in code.co_names:
                yield from _texts(getattr(named, attribute, None), seen)


def _visible_names(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closure = {}
    for name, cell in cells:
        try:
            closure[name] = cell.cell_contents
        except ValueError:
            # Not assigned yet.
            closure[name] = None
    return {**function.__globals__, **closure}


def _source(value: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        # Code without a file, as in `python -c`: its constants and names are hashed.
        return str(value.__qualname__)


def _is_library_code(value: Any) -> bool:
    is_module = isinstance(value, ModuleType)
    name = value.__name__ if is_module else getattr(value, "__module__", None)
    if name is None or name.partition(".")[0] in _LIBRARIES:
        return True
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file
