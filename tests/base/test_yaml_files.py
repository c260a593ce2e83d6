"""YAML files cannot take time or memory beyond their size."""

import time
from pathlib import Path

import pytest

from tempergat.base import UserError, read_yaml


def nest(depth: int, merge: bool) -> str:
    """Each level stands for ten times the one below it."""
    lines = ["a0: &a0 {x: 1}" if merge else "a0: &a0 [lol]"]
    for level in range(1, depth):
        inner = ", ".join([f"*a{level - 1}"] * 10)
        value = f"{{<<: [{inner}]}}" if merge else f"[{inner}]"
        lines.append(f"a{level}: &a{level} {value}")
    return "\n".join(lines)


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("depth", [6, 9, 25])
def test_aliases_that_stand_for_too_many_values_are_refused_at_once(
    tmp_path: Path, depth: int, merge: bool
) -> None:
    file = tmp_path / "bomb.yaml"
    file.write_text(nest(depth, merge))
    started = time.monotonic()
    with pytest.raises(
        UserError, match="aliases stand for over 10,000 values"
    ) as raised:
        read_yaml(file, "the recipe")
    assert time.monotonic() - started < 5.0
    assert len(str(raised.value)) < 400


def test_an_alias_to_itself_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "loop.yaml"
    file.write_text("a: &a [*a]")
    with pytest.raises(UserError, match="part of"):
        read_yaml(file, "the recipe")


def test_a_few_aliases_and_merge_keys_are_read(tmp_path: Path) -> None:
    file = tmp_path / "shared.yaml"
    file.write_text("base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nlist: [*b, *b]")
    assert read_yaml(file, "the recipe") == {
        "base": {"x": 1, "y": 2},
        "other": {"x": 1, "y": 3},
        "list": [{"x": 1, "y": 2}] * 2,
    }
