"""Packages whose names are imported on first use.

A command that only lists something answers before torch or matplotlib are loaded.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable
from typing import Any


def lazy_names(
    package: str,
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    The names are those that its ``__init__`` imports from its own modules, ``from
    .module import name as name`` under ``if TYPE_CHECKING:``. So a name stands there
    once, for people, type checkers and this function.

    Args:
        package: The package's ``__name__``.
    """
    source = pkgutil.get_data(package, "__init__.py")
    assert source is not None
    modules = {
        alias.name: f"{package}.{statement.module}"
        for statement in ast.walk(ast.parse(source))
        if isinstance(statement, ast.ImportFrom) and statement.level
        for alias in statement.names
    }

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(__import__(modules[name], fromlist=[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return sorted(modules), get, names
