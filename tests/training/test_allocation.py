"""Memory is kept between epochs, and given back after the last."""

import platform
import subprocess
import sys

import pytest

# In a process of its own: how much an older one holds already is anybody's guess.
PROGRAM = """
import resource
from pathlib import Path
import torch
from tempergat.training.allocation import memory_kept

BLOCK = 24 * 2**20

def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()

def faults_of_two_blocks():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(BLOCK, dtype=torch.uint8)
    torch.ones(BLOCK, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.ones(10)
before = resident()
with memory_kept(torch.device("cpu")):
    # The first call takes the memory; a fault now and then has other causes.
    faults = min([faults_of_two_blocks() for _ in range(10)][1:])
    kept = resident() - before
print(faults < 100, kept > BLOCK / 2, resident() - before < BLOCK / 2)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_blocks_are_used_again_and_then_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True", "True", "True"], done.stderr
