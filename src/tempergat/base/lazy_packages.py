"""Packages whose names are imported on first use.

A command that only lists something answers before torch or matplotlib are loaded.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any


def lazy_names(
    package: str,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package.

    Which module has which name is read from the imports under ``if TYPE_CHECKING:`` in
    the package's ``__init__``, so that every name stands there once, for people, type
    checkers and this function.

    Args:
        package: The package's ``__name__``.
    """
    source = pkgutil.get_data(package, "__init__.py")
    assert source is not None
    modules: dict[str, str] = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == _CONDITION:
            for line in statement.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    modules |= {alias.name: line.module for alias in line.names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names


_CONDITION = "TYPE_CHECKING"
