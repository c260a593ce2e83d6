"""A hash of the source code that a user's own module is built from."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_PLAIN = (str, bytes, int, float, complex, type(None))
_LIBRARIES = {"tempergat", "torch", "torch_geometric", *sys.stdlib_module_names}


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
    """The name of a function or class, also inside a `functools.partial`."""
    while isinstance(build, functools.partial):
        build = build.func
    return str(getattr(build, "__name__", type(build).__name__))


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
