"""Rules about the source that no type checker knows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tempergat"
ALLOWED = SOURCE / "ops" / "torch_internals.py"
# Private attributes of tensors, which no import leads to.
OF_TENSORS = {"_version", "_base", "_is_view", "_typed_storage"}


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
    "line",
    [
        "import torch\ntorch._C.f()",
        "import torch._dynamo",
        "import torch.utils._pytree as pytree",
        "from torch.utils import _pytree as pytree",
        "from torch._dynamo import OptimizedModule",
        "from torch.autograd import forward_ad\nforward_ad._current_level",
        "def f(x):\n    return x._version",
    ],
)
def test_a_private_name_of_torch_is_reported(line: str) -> None:
    assert list(private_torch_names(line))


@pytest.mark.parametrize(
    "line",
    [
        "import torch\ntorch.__version__",
        "import torch\ntorch.nn.functional.linear",
        "class A:\n    def f(self):\n        return self._rows",
    ],
)
def test_a_public_name_of_torch_is_not_reported(line: str) -> None:
    assert not list(private_torch_names(line))


def test_private_names_of_torch_are_used_in_one_file_only() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{name}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path != ALLOWED
        for name in private_torch_names(path.read_text())
    ]
    assert found == []


def test_commands_print_through_one_function_that_escapes_control_characters() -> None:
    output = SOURCE / "cli" / "ui" / "output.py"
    found = [
        str(path.relative_to(SOURCE))
        for path in sorted((SOURCE / "cli").rglob("*.py"))
        if path != output and "typer.echo(" in path.read_text()
    ]
    assert found == []


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
    found = [
        f"{name}:{call}"
        for path in sorted(SOURCE.rglob("*.py"))
        if (name := path.relative_to(SOURCE).as_posix()) not in others
        and name != "base/files.py"
        for call in opened_to_write(path.read_text())
        if "os.devnull" not in path.read_text()
    ]
    assert found == []


def test_links_are_followed_only_where_the_user_gave_the_path() -> None:
    found = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        if {"write_text", "write_bytes"} & {*_imported(path.read_text())}
    ]
    assert [name for name in found if not name.startswith("base/")] == [
        "cli/ui/output.py",
        "comparison/comparison.py",
        "comparison/explorer/node_picture.py",
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
