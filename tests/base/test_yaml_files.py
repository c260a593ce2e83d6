"""YAML files cannot take time or memory beyond their size, and errors show the line."""

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]", "part of"),
        ("a: 1\nb: 2\na: 3", r"a occurs twice .* line 3, column 1: a: 3 \^"),
        ("a: [1, 2\nb: 3", r"line 2, column 1: b: 3 \^|line 2, column 2: b: 3 \^"),
        ("[" * 200_000, "too deeply nested"),
        ("a: !!python/name:os.system x", "could not determine a constructor"),
        ("1\ta: 1", "cannot start any token"),
    ],
)
def test_what_is_no_yaml_of_settings_is_refused_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        read_yaml(file, "the recipe")


def test_a_few_aliases_and_merge_keys_are_read(tmp_path: Path) -> None:
    file = tmp_path / "shared.yaml"
    file.write_text("base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nlist: [*b, *b]")
    assert read_yaml(file, "the recipe") == {
        "base": {"x": 1, "y": 2},
        "other": {"x": 1, "y": 3},
        "list": [{"x": 1, "y": 2}] * 2,
    }
