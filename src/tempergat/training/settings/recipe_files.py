"""The files of recipes: found by name, read with what they extend, printed in full."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import tempergat
from tempergat.base import UserError, read_yaml, shown, suggest_one_of

# The two forms of a layer's width.
WIDTHS = ("channels_per_head", "hidden_channels")
# A file and its settings, without those of the recipe it extends.
RecipeFile = tuple[Path, dict[str, Any]]
# A line of a recipe: indent, setting, value, comment.
_LINE = re.compile(r"( *)(\w+):[^#]*(?:# *(.*))?")
# The column of comments.
_COLUMN = 32


def recipe_names() -> list[str]:
    """The names of the recipes that come with the package."""
    return sorted(_shipped())


def recipe_files(name: str) -> list[RecipeFile]:
    """The file of a recipe, by name or path, and after it those that it extends.

    Raises:
        UserError: There is no such recipe, or a file does not hold settings by name.
    """
    files: list[RecipeFile] = []
    path = _path_of(name, Path())
    while True:
        values = read_yaml(path, f"recipe {name}")
        if not isinstance(values, dict):
            raise UserError(
                f"recipe {name} holds {type(values).__name__}, not settings by name; "
                "start from what `tempergat recipe default` prints"
            )
        files.append((path, values))
        if "extends" not in values:
            return files
        base = values.pop("extends")
        if not isinstance(base, str):
            raise UserError(
                f"recipe {name}: extends is {shown(base)}; give the name of a recipe "
                "or the path of a .yaml file"
            )
        path = _path_of(base, path.parent, f"recipe {name}: extends: ")
        if path in (file for file, _ in files):
            raise UserError(
                f"recipe {name} extends {base}, which extends it in turn; let one of "
                "them extend no other"
            )
        name = base


def _path_of(name: str, folder: Path, what: str = "") -> Path:
    """The file of a recipe, by name or by its path in a folder."""
    shipped = _shipped()
    file = shipped.get(name) or shipped.get(f"paper/{name}")
    if file is None and Path(name).suffix in (".yaml", ".yml"):
        file = folder / name
    if file is None:
        names = [key.removeprefix("paper/") for key in shipped]
        raise UserError(
            f"{what}no recipe {name!r}; give the path of a .yaml file, or "
            f"{suggest_one_of(name, names)}"
        )
    return Path(os.path.abspath(file))


def settings_in(files: Sequence[RecipeFile]) -> dict[str, Any]:
    """The settings of a recipe with those of the recipes that it extends."""
    values: dict[str, Any] = {}
    for _, of_file in reversed(files):
        values = _merged(values, of_file)
    return values


def recipe_text(name: str) -> str:
    """A recipe in full as YAML, with the comments of the files that it extends.

    Raises:
        UserError: There is no such recipe, or a file does not hold settings by name.
    """
    files = recipe_files(name)
    comments: dict[tuple[str, str], str] = {}
    heads: list[str] = []
    for path, _ in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        heads += ["#", f"# From {path.stem}, which it extends:"] if heads else []
        # What to expect of a base is not what to expect of the recipe.
        skipped = "# Expected" if heads else "\n"
        heads += [n for n in lines if n.startswith("#") and not n.startswith(skipped)]
        comments = _comments(lines) | comments
    return "\n".join([*heads, *_lines(settings_in(files), comments)])


def _comments(lines: Sequence[str]) -> dict[tuple[str, str], str]:
    """The comment behind each setting, by its block and its name."""
    comments, block = {}, ""
    for line in lines:
        if found := _LINE.match(line):
            indent, name, comment = found.groups()
            block = block if indent else name
            comments[block, name] = comment or ""
    return comments


def _lines(
    values: Mapping[str, Any],
    comments: Mapping[tuple[str, str], str],
    block: str = "",
    indent: str = "",
) -> Iterator[str]:
    for name, value in values.items():
        text = yaml.safe_dump(value, default_flow_style=True, width=10**6)
        inner = value if isinstance(value, dict) else {}
        line = f"{indent}{name}:{'' if inner else ' ' + text.splitlines()[0]}"
        comment = comments.get((block or name, name))
        yield f"{line:<{_COLUMN}}# {comment}" if comment else line
        yield from _lines(inner, comments, block or name, f"{indent}  ")


def with_changes(
    block: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """A block with changes; a width replaces the other form of it."""
    if any(width in changes for width in WIDTHS):
        kept = [name for name in block if name not in WIDTHS or name in changes]
        block = {name: block[name] for name in kept}
    return {**block, **changes}


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe with those of one that extends it."""
    merged = {**base, **changes}
    for name, block in changes.items():
        before = base.get(name)
        if isinstance(block, dict) and isinstance(before, dict):
            merge = _merged if name == "methods" else with_changes
            merged[name] = merge(before, block)
    return merged


def _shipped() -> dict[str, Path]:
    folder = Path(tempergat.__file__).parent / "recipes"
    files = folder.rglob("*.yaml")
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}
