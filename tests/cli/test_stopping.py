"""Ctrl-C and SIGTERM end a command with one line at any moment."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import restore_signals

# Stops itself when a module is imported: typer before the command has started, torch
# inside a command that has nothing to keep yet.
PROGRAM = """
import builtins, os, signal, sys

imported = builtins.__import__

def stopping_import(name, *arguments, **options):
    if name == {module!r}:
        os.kill(os.getpid(), {number})
    return imported(name, *arguments, **options)

builtins.__import__ = stopping_import
sys.argv = ["tempergat", "compare", "--quiet"]
from tempergat.cli import main
main()
"""


def assert_stopped(program: str, folder: Path, number: signal.Signals) -> None:
    """Run a program that a signal stops; it says so in one line."""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=restore_signals,
    )
    assert ended.stderr == "tempergat: stopped\n"
    assert ended.returncode == 128 + number
    assert ended.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["typer", "torch"])
def test_a_stop_during_imports_is_one_line(
    tmp_path: Path, module: str, number: signal.Signals
) -> None:
    program = PROGRAM.format(module=module, number=int(number))
    assert_stopped(program, tmp_path, number)


@pytest.mark.parametrize(
    "conversion", ["ImportError('initialization failed')", "SystemExit(130)"]
)
def test_sigterm_is_reported_where_a_module_hides_it(
    tmp_path: Path, conversion: str
) -> None:
    # As some compiled modules do with an exception while they are initialised.
    hiding = f"""        try:
            os.kill(os.getpid(), {int(signal.SIGTERM)})
        except KeyboardInterrupt:
            raise {conversion}"""
    program = PROGRAM.replace("        os.kill(os.getpid(), {number})", hiding)
    program = program.replace("{module!r}", "'torch'")
    assert_stopped(program, tmp_path, signal.SIGTERM)
