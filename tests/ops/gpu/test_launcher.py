"""Launches reach the driver as Triton's own do, with a driver that only listens."""

import json
import subprocess
import sys

import pytest

from tests.support.interpreted import environment_of_programs
from tests.support.versions import needs_torch

PROGRAM = """
import json, types
import torch
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia
from triton.runtime import driver
from tempergat.ops.gpu.features.gather import _gather_kernel as kernel
from tempergat.ops.gpu.launching import launch

heard = []
class Driver:
    launcher_cls = nvidia.CudaLauncher
    get_current_device = lambda self: 0
    get_current_stream = lambda self, device: 0
    get_current_target = lambda self: GPUTarget("cuda", 90, 32)
    # What the C function gets, and what loading a kernel gives.
    utils = types.SimpleNamespace(
        launch=lambda *facts: heard.append(facts),
        build_signature_metadata=list,
        get_device_properties=lambda device: {"max_shared_mem": 2**17},
        load_binary=lambda *facts: (1, 4321, 40, 0, 1024),
    )

# A part of the compiled driver, with which a launcher describes arguments.
nvidia.PyKernelArg = lambda **facts: facts
driver.set_active(Driver())
launch.current_stream = lambda device: 99
types_of = (torch.float32, torch.int32, torch.float32)
numbers, constants = (5, 8), (True, 256, 8)
compiled = launch.compile_kernel(kernel, types_of, numbers, constants, 4)
function, before = launch._start_of(compiled)
arguments = (4096, 8192, 65536, *numbers, *constants)
function(7, 3, 1, 99, *before, *arguments)
compiled.run(
    7, 3, 1, 99, compiled.function, compiled.packed_metadata, None, None, None,
    *arguments,
)
print(json.dumps([launch.direct_launch(), *[repr(x) for x in heard]]))
"""


@needs_torch(2, 8, "Triton 3.2 makes its launcher where there is a driver alone")
def test_a_direct_launch_gives_the_driver_what_triton_would_give() -> None:
    pytest.importorskip("triton")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment_of_programs(),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    known, ours, tritons = json.loads(run.stdout)
    # Triton's launcher has the parameters that the direct launch knows.
    assert known is not None
    assert ours == tritons
    # Grid, stream and the loaded function.
    assert ours.startswith("(7, 3, 1, 99, 4321, ")
    assert "(4096, 8192, 65536, 5, 8, True, 256, 8)" in ours
