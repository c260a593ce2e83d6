"""Rules about the source that no type checker knows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tempergat"
ALLOWED = "ops/torch_internals.py"
# Private attributes of tensors, which no import leads to.
OF_TENSORS = {"_version", "_base", "_is_view", "_typed_storage"}


def modules() -> Iterator[tuple[str, str]]:
    """Name and text of every module."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), path.read_text()


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _dotted(node: ast.expr) -> list[str]:
    """``a.b.c`` as its parts; nothing for any other expression."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        start = _dotted(node.value)
        return [*start, node.attr] if start else []
    return []


def private_torch_names(source: str) -> Iterator[str]:
    """The private names of torch that a module uses, with their lines."""
    tree = ast.parse(source)
    from_torch = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    from_torch.add(alias.asname or "torch")
                    if any(map(_is_private, alias.name.split("."))):
                        yield f"{node.lineno}: import {alias.name}"
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] != "torch":
                continue
            for alias in node.names:
                from_torch.add(alias.asname or alias.name)
                if any(map(_is_private, [*node.module.split("."), alias.name])):
                    yield f"{node.lineno}: from {node.module} import {alias.name}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        parts = _dotted(node)
        if parts and parts[0] in from_torch and _is_private(node.attr):
            yield f"{node.lineno}: {'.'.join(parts)}"
        elif node.attr in OF_TENSORS:
            yield f"{node.lineno}: .{node.attr}"


@pytest.mark.parametrize(
    ("line", "is_private"),
    [
        ("import torch\ntorch._C.f()", True),
        ("import torch._dynamo", True),
        ("import torch.utils._pytree as pytree", True),
        ("from torch.utils import _pytree as pytree", True),
        ("from torch._dynamo import OptimizedModule", True),
        ("from torch.autograd import forward_ad\nforward_ad._current_level", True),
        ("def f(x):\n    return x._version", True),
        ("import torch\ntorch.__version__", False),
        ("import torch\ntorch.nn.functional.linear", False),
        ("class A:\n    def f(self):\n        return self._rows", False),
    ],
)
def test_only_a_private_name_of_torch_is_reported(line: str, is_private: bool) -> None:
    assert bool(list(private_torch_names(line))) == is_private


def test_private_names_of_torch_are_used_in_one_file_only() -> None:
    used = {name: list(private_torch_names(text)) for name, text in modules()}
    assert used.pop(ALLOWED)
    assert [f"{name}:{line}" for name in used for line in used[name]] == []


def test_commands_print_through_one_function_that_escapes_control_characters() -> None:
    ways = re.compile(r"typer\.echo\(|(?<![.\w])(?<!def )print\(")
    printing = [n for n, text in modules() if n[:4] == "cli/" and ways.search(text)]
    # Where a signal came, there is one constant line.
    assert printing == ["cli/ui/output.py", "cli/ui/signals.py"]


def opened_to_write(source: str) -> Iterator[str]:
    """Calls that write a file by its path without `tempergat.base`."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = (_dotted(node.func) or [getattr(node.func, "attr", "")])[-1]
        is_method = isinstance(node.func, ast.Attribute)
        modes = [
            part.value
            for part in (*node.args, *(word.value for word in node.keywords))
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        writes = name == "open" and any(
            set(mode) <= set("rwxabt+") and set(mode) & set("wxa+") for mode in modes
        )
        if writes or (is_method and name in ("write_text", "write_bytes", "touch")):
            yield f"{node.lineno}: {ast.unparse(node.func)}"


def test_files_are_written_by_one_function() -> None:
    # Parts of downloads, which are continued, and what a compiler works with.
    others = {"data/fetch/archives.py", "data/fetch/download.py", "ops/cpu/build.py"}
    writing = [
        f"{name}:{call}"
        for name, text in modules()
        if name not in (*others, "base/files.py") and "os.devnull" not in text
        for call in opened_to_write(text)
    ]
    assert writing == []


def test_links_are_followed_only_where_the_user_gave_the_path() -> None:
    following = [
        name
        for name, text in modules()
        if {"write_text", "write_bytes"} & {*_imported(text)}
    ]
    assert [name for name in following if not name.startswith("base/")] == [
        "cli/predict.py",
        "cli/ui/output.py",
        "comparison/explorer/node_picture.py",
        "comparison/results/comparison.py",
        "training/single/model.py",
    ]


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def test_every_picture_of_the_docs_is_shown_on_a_page():
    root = SOURCE.parents[1]
    docs = root / "docs"
    pages = [root / "README.md", *docs.glob("*.md")]
    shown = " ".join(page.read_text() for page in pages)
    pictures = [*(docs / "figures").rglob("*.png")]
    assert [p.name for p in pictures if p.name not in shown] == []
