"""Help pages have examples that a user can type; tries leave results/ as it is."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tempergat.cli.application import app

ROOT: Any = typer.main.get_command(app)


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, part in getattr(command, "commands", {}).items():
        yield from _commands(f"{path} {name}", part)


COMMANDS = dict(_commands("tempergat", ROOT))


def _examples(command: Any, path: str) -> list[str]:
    text = command.get_help(command.context_class(command, info_name=path))
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


@pytest.mark.parametrize("path", COMMANDS)
def test_only_reproduce_works_on_the_published_results_by_default(path: str) -> None:
    folders = [
        parameter.default
        for parameter in COMMANDS[path].params
        if str(parameter.default).startswith("results")
    ]
    is_page = path.startswith("tempergat reproduce ") and not path.endswith(" export")
    assert folders == ([Path("results")] if is_page else [])
