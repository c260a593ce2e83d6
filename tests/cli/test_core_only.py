"""Where the packages of the commands are not installed, `doctor` works alone."""

import sys

import pytest

import tempergat
from tests.cli.conftest import Command

INSTALL = "pip install 'tempergat[compare]'"


@pytest.fixture(autouse=True)
def without_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)


@pytest.mark.parametrize("words", ["compare cora", "methods", "doctor --jsno"])
def test_a_command_ends_in_one_line_with_the_remedy(
    command: Command, words: str
) -> None:
    ended = command(*words.split())
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert f"tempergat {words.split()[0]} needs packages" in line
    assert "(typer)" in line
    assert INSTALL in line


def test_doctor_says_what_the_other_commands_need(command: Command) -> None:
    ended = command("doctor")
    assert ended.status == 0
    assert "attention is computed by" in ended.out
    assert "Every other command needs packages" in ended.out
    assert command.facts("doctor")["data_root"] is None


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("--version", f"tempergat {tempergat.__version__}"),
        ("--help", INSTALL),
        ("compare --help", INSTALL),
        ("", "tempergat doctor [--json]"),
    ],
)
def test_version_and_help_are_answered(
    command: Command, words: str, answer: str
) -> None:
    ended = command(*words.split())
    assert ended.status == 0
    assert answer in ended.out
