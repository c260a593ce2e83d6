"""All kernels compile for GPUs that are not here, and none gets worse unseen."""

import subprocess
import sys

import pytest

from tests.support.interpreted import ROOT, environment_of_programs
from tests.support.versions import needs_torch
from tools.check_gpu import TARGETS, Needs, faults_of

NEEDS = Needs(4, 40, 0, 1024, 400, 8, 2)


def _check(*arguments: str) -> str:
    pytest.importorskip("triton")
    run = subprocess.run(
        [sys.executable, "-m", "tools.check_gpu", *arguments],
        env=environment_of_programs(),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@needs_torch(2, 8, "Triton 3.2 does not compile all kernels; no GPU is used with it")
def test_kernels_compile_for_a_hopper_gpu_and_need_no_more_than_before() -> None:
    assert _check("--quick", "sm_90").startswith("sm_90: ")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_all_forms_of_all_kernels_compile_for_every_target(target: str) -> None:
    assert _check(target).endswith("; 0 faults\n")


@pytest.mark.parametrize(
    ("worse", "fault"),
    [
        ({"shared": 240_000}, "240000 bytes of shared memory, a program gets 232448"),
        ({"shared": 60_000}, "a multiprocessor runs 3 programs at once, not 12"),
        ({"registers": 41}, "a multiprocessor runs 10 programs at once, not 12"),
        ({"stack": 16}, "16 bytes of stack: registers are spilled"),
        ({"instructions": 441}, "441 instructions, not 400"),
    ],
)
def test_the_check_names_what_got_worse(worse: dict[str, int], fault: str) -> None:
    key = ("gat.forward", "gat 8x8", "sm_90")
    assert faults_of(key, NEEDS._replace(**worse), NEEDS) == [
        f"gat.forward gat 8x8 sm_90: {fault}"
    ]


def test_small_changes_are_no_faults() -> None:
    changed = NEEDS._replace(registers=39, shared=2048, instructions=440, loads=9)
    assert faults_of(("gat.forward", "gat 8x8", "sm_90"), changed, NEEDS) == []
