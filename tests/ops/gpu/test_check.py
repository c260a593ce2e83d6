"""All kernels compile for GPUs that are not here, and none gets worse unseen."""

import subprocess
import sys

import pytest

from tests.support.interpreted import ROOT, environment_of_programs
from tests.support.versions import needs_torch
from tools.check_gpu import TARGETS, Needs, faults_of

NEEDS = Needs(4, 40, 0, 1024, 400, 8, 2)


def _run(*arguments: str) -> tuple[int, str]:
    pytest.importorskip("triton")
    run = subprocess.run(
        [sys.executable, *arguments],
        env=environment_of_programs(),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return run.returncode, run.stdout + run.stderr


@needs_torch(2, 8, "Triton 3.2 does not compile all kernels; no GPU is used with it")
def test_kernels_compile_for_a_hopper_gpu_and_need_no_more_than_before() -> None:
    status, said = _run("-m", "tools.check_gpu", "--quick", "sm_90")
    assert status == 0, said


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_all_forms_of_all_kernels_compile_for_every_target(target: str) -> None:
    status, said = _run("-m", "tools.check_gpu", target)
    assert status == 0, said
    assert said.endswith("; 0 faults\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "fault"),
    [(512, "bytes of shared memory, a program gets"), (256, "runs 1 programs at once")],
)
def test_too_large_a_tile_of_a_real_kernel_is_found(nodes: int, fault: str) -> None:
    status, said = _run(
        "-c",
        "from tempergat.ops.gpu.features import outer\n"
        "from tools.check_gpu import main\n"
        f"outer._NODES = {nodes}\n"
        "raise SystemExit(main(['--quick', 'sm_90']))",
    )
    assert status == 1
    assert fault in said


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
    assert faults_of(TARGETS["sm_90"], NEEDS._replace(**worse), NEEDS) == [fault]


def test_small_changes_are_no_faults() -> None:
    changed = NEEDS._replace(registers=39, shared=2048, instructions=440, loads=9)
    assert faults_of(TARGETS["sm_90"], changed, NEEDS) == []
