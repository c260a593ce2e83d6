"""The sampling kernels, run by Triton's interpreter, give the reference's batches."""

import pytest

from tests.support.interpreted import run_interpreted
from tests.support.versions import needs_torch

# Each case once with room for the largest batch, and once with sizes read hop by hop.
PROGRAM = """
import sys
from tempergat.ops.gpu import schedule
from tempergat.ops.gpu.sampling import hops
from tests.support.gpu_sampling import *
schedule.LONGEST_OF_SMALL = 16
for case in map(CASES.get, sys.argv[1:]):
    for most in (1 << 24, 10):
        hops._MOST_UNREAD = most
        for replace in (False, True):
            check_sample(case, replace, "cpu")
    hops._MOST_UNREAD = 1 << 24
    for self_loops in (False, True):
        check_layers(case, self_loops, "cpu")
        check_padded_layers(case, self_loops, "cpu")
check_typed_sample("cpu")
"""


@needs_torch(2, 8, "interpreted by Triton 3.2 the kernels draw other edges")
def test_interpreted_kernels_sample_and_group_as_the_reference() -> None:
    run_interpreted(PROGRAM, "two hops")


@pytest.mark.slow
def test_interpreted_kernels_sample_unusual_graphs_as_the_reference() -> None:
    unusual = ("three hops", "no edges", "one node", "most nodes isolated")
    run_interpreted(PROGRAM, *unusual, "nothing drawn", "wide", "all", "hub")
