"""The functions that docs/architecture.md names exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"([\w/]+\.py):([A-Za-z_][\w.]*\w)", PAGE)))


def defined_names(path: Path) -> set[str]:
    """Functions, classes and methods of a module; methods as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef)
            }
    return found


def test_the_page_names_functions() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_a_function_on_the_page_exists(module: str, name: str) -> None:
    path = ROOT / "src" / "tempergat" / module
    assert path.exists(), module
    assert name in defined_names(path)
