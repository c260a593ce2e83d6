"""The tab key completes commands, options, methods and datasets in a real shell."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BASH = shutil.which("bash")


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which `tempergat` is a command and says what it imports."""
    script = tmp_path / "bin" / "tempergat"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "from tempergat.cli import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    assert not {'torch', 'numpy', 'scipy'} & set(sys.modules)\n"
    )
    script.chmod(0o755)
    path = f"{script.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(tmp_path)}


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_names_are_completed_after_the_completion_is_installed(
    shell: dict[str, str], tmp_path: Path
) -> None:
    lines = {
        "tempergat compare cora_": {"cora_full", "cora_ml"},
        "tempergat compare --methods gat,gated_t": {
            "gat,gated_temp",
            "gat,gated_temp_v2",
            "gat,gated_transformer",
        },
        "tempergat data info pok": {"pokec"},
        # No name fits, so bash offers files.
        "tempergat compare ./gra": set(),
    }
    script = "tempergat --install-completion > /dev/null; source ~/.bashrc\n"
    for line in lines:
        last = len(line.split()) - 1
        script += f"COMP_WORDS=({line}); COMP_CWORD={last}; COMPREPLY=()\n"
        script += '_tempergat_completion tempergat; echo "${COMPREPLY[@]}"\n'
    assert BASH is not None
    done = subprocess.run(
        [BASH, "-c", script],
        capture_output=True,
        text=True,
        env=shell,
        cwd=tmp_path,
        check=True,
    )
    assert done.stderr == ""
    offered = [set(line.split()) for line in done.stdout.splitlines()]
    assert dict(zip(lines, offered, strict=True)) == lines
