"""Runs a program with Triton's interpreter, which needs no GPU.

The interpreter is chosen when Triton is imported, hence a process of its own.
"""

import atexit
import importlib.util
import os
from functools import cache
from pathlib import Path

import pytest

from tests.support.processes import ProcessStarter

ROOT = Path(__file__).resolve().parents[2]
# numpy no longer turns an array of one element into an index. The language is patched
# once for each function, not at each call of it, and stays so: this takes less time.
_PREPARE = """
import functools
import triton.runtime.interpreter as interpreter
patch = interpreter._patch_lang_tensor
def patch_index(tensor, *scope):
    patch(tensor, *scope)
    # Before 3.6 Triton does not take back what it patches.
    set_attr = scope[0].set_attr if scope else setattr
    set_attr(tensor, "__index__", lambda self: self.handle.data.item())
interpreter._patch_lang_tensor = patch_index
patch_lang = interpreter._patch_lang
@functools.cache
def patch_once(function):
    patch_lang(function)
    return getattr(interpreter, "_LangPatchScope", object)()
interpreter._patch_lang = patch_once
import tests.support.gpu_launches, tempergat.ops.reference
"""
# A kernel that is not compiled for GPUs, or not in this form, would be found by users.
_FINISH = """
from tests.support.gpu_launches import assert_all_are_checked
assert_all_are_checked()
"""


def environment_of_programs() -> dict[str, str]:
    """The environment of a program that imports this package and its tests."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    paths = [str(ROOT), str(ROOT / "src"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    return environment


@cache
def _interpreter() -> ProcessStarter:
    environment = environment_of_programs() | {"TRITON_INTERPRET": "1"}
    starter = ProcessStarter(_PREPARE, environment).__enter__()
    atexit.register(starter.__exit__, None, None, None)
    return starter


def run_interpreted(program: str, *arguments: str) -> None:
    """Asserts that the program ends without an error; skips without Triton.

    All that it launches must be compiled by `make check-gpu` too.
    """
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    ended = _interpreter().run(program + _FINISH, *arguments)
    assert ended.returncode == 0, ended.stderr
