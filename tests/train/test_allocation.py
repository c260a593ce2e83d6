"""Memory is kept between epochs, and given back after the last."""

import platform
import resource
from pathlib import Path

import pytest
import torch

from tempergat.train.allocation import memory_kept

BLOCK = 24 * 2**20


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def faults_of_two_blocks() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(BLOCK, dtype=torch.uint8)
    torch.ones(BLOCK, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_blocks_are_used_again_and_then_given_back() -> None:
    before = resident_bytes()
    with memory_kept(torch.device("cpu")):
        faults_of_two_blocks()
        assert faults_of_two_blocks() < 100
        assert resident_bytes() - before > BLOCK / 2
    assert resident_bytes() - before < BLOCK / 2
