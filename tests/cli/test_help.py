"""Help pages can be read in 80 columns and have examples that a user can type."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from tempergat.cli.application import app

ROOT: Any = typer.main.get_command(app)


def _parts(command: Any) -> dict[str, Any]:
    return getattr(command, "commands", {})


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, part in _parts(command).items():
        yield from _commands(f"{path} {name}", part)


COMMANDS = dict(_commands("tempergat", ROOT))


def _help(command: Any, path: str) -> str:
    text: str = command.get_help(command.context_class(command, info_name=path))
    return text


def _examples(command: Any, path: str) -> list[str]:
    text = _help(command, path)
    _, found, shown = text.partition("\n  Examples:\n")
    assert found, f"{path} --help has no examples"
    return [line.strip() for line in shown.splitlines()]


@pytest.mark.parametrize("path", COMMANDS)
def test_a_help_page_has_two_examples_that_can_be_typed(path: str) -> None:
    examples = _examples(COMMANDS[path], path)
    assert len(examples) >= 2
    for example in examples:
        assert example.startswith(path)
        # Parses the words as the command would, and runs nothing.
        words = shlex.split(example)[1:]
        command = ROOT
        while hasattr(command, "commands") and words[:1] != ["--help"]:
            command = command.commands[words.pop(0)]
        if words != ["--help"]:
            command.make_context("example", words)


@pytest.mark.parametrize("path", [p for p, c in COMMANDS.items() if _parts(c)])
def test_a_list_of_commands_has_every_command_with_its_whole_summary(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = _help(COMMANDS[path], path)
    for name, command in _parts(COMMANDS[path]).items():
        summary = " ".join(command.help.split("\n\n")[0].split())
        assert re.search(rf"\n  {name} +{re.escape(summary)}\n", text), name


@pytest.mark.parametrize("path", COMMANDS)
def test_usage_lines_name_arguments_without_braces_or_python_types(path: str) -> None:
    text = _help(COMMANDS[path], path)
    usage = text.partition("\n\n")[0]
    assert not re.search(r"[{}]|\.\.\.\]\.\.\.|\[\[", usage)
    assert "<list" not in text
