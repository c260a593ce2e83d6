"""The command as a whole: help, version, and how it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

import tempergat
from tempergat.cli import main
from tests.cli.conftest import Command
from tests.support.processes import ProcessStarter


def test_version_is_the_packages(command: Command) -> None:
    assert command("--version").out == f"tempergat {tempergat.__version__}\n"


def test_an_unknown_command_is_a_usage_error(command: Command) -> None:
    command.refuses("comparre", "comparre")


def test_on_windows_the_command_says_where_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match=r"run on Linux and macOS, .*WSL"):
        main()


def test_closed_streams_are_not_an_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tempergat methods 1>&- 2>&-"
    assert subprocess.run(command, shell=True, cwd=tmp_path).returncode == 0


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tempergat", "methods"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_home_folder_that_cannot_be_written_causes_no_warning(
    graph: Path, recipe: Path, tmp_path: Path, python: ProcessStarter
) -> None:
    code = "import os; os.environ['HOME'] = '/dev/null'\n"
    code += "from tempergat.cli import main; main()"
    arguments = ("compare", str(graph), "--recipe", str(recipe), "--methods", "gat")
    ended = python.run(code, *arguments, "--quiet", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
