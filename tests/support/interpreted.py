"""Runs a program with Triton's interpreter, which needs no GPU.

The interpreter is chosen when Triton is imported, hence a process of its own.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# numpy no longer turns an array of one element into an index.
_PREPARE = """
import triton.runtime.interpreter as interpreter
patch = interpreter._patch_lang_tensor
def patch_index(tensor, scope):
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())
interpreter._patch_lang_tensor = patch_index
"""


def environment_of_programs() -> dict[str, str]:
    """The environment of a program that imports this package and its tests."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    paths = [str(ROOT), str(ROOT / "src"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    return environment


def run_interpreted(program: str, *arguments: str) -> None:
    """Asserts that the program ends without an error; skips without Triton."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    environment = environment_of_programs() | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", _PREPARE + program, *arguments]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
