"""Commands keep freed memory for the next epoch; the library does not."""

import ctypes
import platform
import subprocess
import sys
from typing import Any

import pytest
import torch

from tempergat import training
from tempergat.cli.options import shared
from tempergat.training import train_group
from tests.support.run_settings import config, small_graph

# In its own process, because the amount of memory that an older one holds is unknown.
PROGRAM = """
import resource
from tempergat.training.devices.memory import keep_freed_memory
keep_freed_memory()
import torch

BLOCK = 24 * 2**20

def faults_of_two_blocks():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(BLOCK, dtype=torch.uint8)
    torch.ones(BLOCK, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

# The first call takes the memory; a few page faults have other causes.
print(min([faults_of_two_blocks() for _ in range(10)][1:]) < 100)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_freed_blocks_are_used_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True"], done.stderr


def test_a_command_that_trains_keeps_freed_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[bool] = []
    keep = "keep_freed_memory"
    monkeypatch.setattr(training, keep, lambda: calls.append(True), raising=False)
    shared.parse_device("cpu")
    assert calls == [True]


def test_training_from_python_leaves_the_c_library_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Any] = []
    real = ctypes.CDLL

    def spy(name: Any, *arguments: Any, **options: Any) -> Any:
        opened.append(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(ctypes, "CDLL", spy)
    train_group(small_graph(), config(epochs=2), [0], torch.device("cpu"))
    # None is the process itself, where mallopt is found.
    assert None not in opened
