"""Top packages import one another through the names that their `__init__` lists."""

import ast
import importlib
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tempergat"
# Loaded by their own names, because they load matplotlib.
SEPARATE_MODULES = {"figures"}
# Loaded by their names as the kernels of an op and of sampling.
KERNELS = {"ops/gpu/sampling"}


@cache
def listed(package: str) -> set[str]:
    return {*importlib.import_module(f"tempergat.{package}").__all__}


def imports(tree: ast.Module) -> Iterator[tuple[int, list[str], str | None]]:
    """Line, module in parts after tempergat, and name of every import from tempergat.

    The name is None for `import tempergat.x`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root, *parts = alias.name.split(".")
                if root == "tempergat":
                    yield node.lineno, parts, None
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            root, *parts = node.module.split(".")
            if root == "tempergat":
                for alias in node.names:
                    yield node.lineno, parts, alias.name


def violations() -> Iterator[str]:
    for path in sorted(SOURCE.glob("*/**/*.py")):
        where = path.relative_to(SOURCE)
        own = where.parts[0]
        for line, module, name in imports(ast.parse(path.read_text())):
            wanted = ".".join(("tempergat", *module, *([name] if name else [])))
            if module[:1] == [own]:
                is_from_own_surface = module == [own] and name in listed(own)
                if is_from_own_surface and path.name != "__init__.py":
                    yield f"{where}:{line}: {wanted}, not from the module that has it"
            elif len(module) > 1:
                if not SEPARATE_MODULES & {module[-1], name}:
                    yield f"{where}:{line}: {wanted}"
            elif module and name not in {None, *SEPARATE_MODULES, *listed(module[0])}:
                yield f"{where}:{line}: {wanted}"


def test_packages_import_only_what_others_list() -> None:
    assert list(violations()) == []


def test_the_contract_on_the_core_covers_what_it_uses_of_base() -> None:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (core,) = [one for one in contracts if one["name"].startswith("Layers, ops and")]
    home = {
        alias.name: f"tempergat.base.{statement.module}"
        for statement in ast.walk(ast.parse((SOURCE / "base/__init__.py").read_text()))
        if isinstance(statement, ast.ImportFrom) and statement.level
        for alias in statement.names
    }
    used = {
        home[name]
        for package in ("nn", "ops", "sampling")
        for path in (SOURCE / package).rglob("*.py")
        for _, module, name in imports(ast.parse(path.read_text()))
        if module == ["base"] and name is not None
    }
    assert used <= {*core["source_modules"]}


def test_only_top_packages_list_names() -> None:
    found = []
    for path in sorted(SOURCE.glob("*/*/**/__init__.py")):
        folder = path.parent.relative_to(SOURCE).as_posix()
        tree = ast.parse(path.read_text())
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and folder not in KERNELS:
                names = {alias.asname or alias.name for alias in node.names}
                found += [f"{folder}: {n}" for n in names - used - {"annotations"}]
    assert found == []


if __name__ == "__main__":
    print(*violations(), sep="\n")
