"""Packages import one another through the names that their `__init__` lists."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tempergat"
# Each sub-package of study is a package of its own in this respect.
SPLIT_PACKAGES = {"study"}
# Loaded by their own names, because they load matplotlib or scikit-learn.
SEPARATE_MODULES = {"figures", "estimator"}


def package_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The package whose `__init__` speaks for a module, both in parts after tempergat.

    `("ops", "cpu", "library")` belongs to `("ops",)`, and
    `("study", "engine", "store")` to `("study", "engine")`.
    """
    depth = 2 if parts and parts[0] in SPLIT_PACKAGES else 1
    package = parts[:depth]
    while package and not (SOURCE.joinpath(*package) / "__init__.py").exists():
        package = package[:-1]
    return package


def listed_names(package: tuple[str, ...]) -> set[str]:
    """What the `__init__` of a package lists in `__all__`."""
    file = SOURCE.joinpath(*package) / "__init__.py"
    if package != package_of(package) or not file.exists():
        return set()
    tree = ast.parse(file.read_text())
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if [ast.unparse(target) for target in targets] == ["__all__"]:
            return set(ast.literal_eval(node.value))
    return set()


def imports(tree: ast.Module) -> Iterator[tuple[int, tuple[str, ...], str | None]]:
    """Line, module in parts after tempergat, and name of every import from tempergat.

    The name is None for `import tempergat.x`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root, *parts = alias.name.split(".")
                if root == "tempergat":
                    yield node.lineno, tuple(parts), None
        elif isinstance(node, ast.ImportFrom) and node.module:
            root, *parts = node.module.split(".")
            if root == "tempergat":
                for alias in node.names:
                    yield node.lineno, tuple(parts), alias.name


def is_module(parts: tuple[str, ...]) -> bool:
    path = SOURCE.joinpath(*parts)
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def is_inside(package: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    return package[: len(outer)] == outer


def violations() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE)
        own = package_of(where.with_suffix("").parts)
        for line, module, name in imports(ast.parse(path.read_text())):
            if name in listed_names(module):
                continue
            if name is not None and is_module((*module, name)):
                module, name = (*module, name), None
            other = package_of(module)
            # A module may use its own package, and a package those inside it.
            if own and other and (is_inside(own, other) or is_inside(other, own)):
                continue
            if module[-1:] and module[-1] in SEPARATE_MODULES:
                continue
            if module == other and name is None:
                continue
            # mypy takes `upgrade` from `tempergat.nn` for the module of that name.
            if module == (*other, name) and name in listed_names(other):
                continue
            wanted = ".".join(("tempergat", *module, *([name] if name else [])))
            yield f"{where}:{line}: {wanted}"


def test_packages_import_only_what_others_list() -> None:
    assert list(violations()) == []


if __name__ == "__main__":
    print(*violations(), sep="\n")
