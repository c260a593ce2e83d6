"""Options that several commands share."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tempergat.cli.options.shared import require_writable
from tempergat.cli.ui.signals import resume_command


def test_the_command_to_continue_is_the_one_that_was_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "tempergat"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    typed = ["compare", "my graph", "--runs", "3"]
    monkeypatch.setattr(sys, "argv", [str(program), *typed])
    monkeypatch.setenv("PATH", "")
    assert resume_command() == f"{program} compare 'my graph' --runs 3"
    monkeypatch.setenv("PATH", str(program.parent))
    assert resume_command() == "tempergat compare 'my graph' --runs 3"
    more = {"--runs": "40", "--splits": "40"}
    expected = "tempergat compare 'my graph' --runs 40 --splits 40"
    assert resume_command(more) == expected
    monkeypatch.setattr(sys, "argv", [str(program), *typed[:2], "--runs=3"])
    assert resume_command(more) == expected
    monkeypatch.setattr(sys, "argv", [str(program), *typed, "--quiet"])
    assert resume_command({"--runs": "9"}).endswith("--runs 9 --quiet")


def test_a_folder_that_could_be_made_is_writable(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "deeper")
    assert not (tmp_path / "new").exists()


def test_a_read_only_folder_is_refused() -> None:
    # Root may write anywhere, so ask as somebody else, and not below pytest's own
    # folder, which nobody else may enter.
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from tempergat.cli.options.shared import require_writable\n"
        "from tempergat.base.errors import UserError\n"
        "if os.geteuid() == 0:\n    os.setuid(65534)\n"
        "try:\n    require_writable(Path(sys.argv[1]))\n"
        "except UserError as error:\n    print(error)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", code, folder / "out"],
            capture_output=True,
            text=True,
            check=False,
        )
        folder.chmod(0o755)
    assert "is read-only; choose another folder with --out" in done.stdout, done
