"""What is declared of an argument of `compare` reaches Python and the command."""

import inspect

import tempergat
from tempergat.comparison.options import ARGUMENTS, FLAGS
from tests.support.processes import ProcessStarter


def test_help_shows_every_argument_with_its_default_and_what_it_does() -> None:
    shown = inspect.signature(tempergat.compare).parameters
    text = inspect.getdoc(tempergat.compare) or ""
    for name, argument in ARGUMENTS.items():
        assert shown[name].default == argument.default
        assert f"\n    {name}: " in text
    assert [*shown][:4] == ["graph", "methods", "runs", "recipe"]


def test_a_flag_of_the_command_is_an_argument_of_the_same_name(
    python: ProcessStarter,
) -> None:
    ended = python.run(
        "import sys, tempergat.cli.application as application\n"
        "sys.argv = ['tempergat', 'compare', '--help']\n"
        "application.run()"
    )
    for name in FLAGS:
        assert f"--{name.replace('_', '-')} " in ended.stdout
        assert name in ARGUMENTS
