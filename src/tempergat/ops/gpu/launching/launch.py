"""Launches the GPU kernels with as little work on the host as possible.

Triton inspects every argument of every launch to find the compiled kernel that fits,
which takes longer than a kernel on a small graph. Here the compiled kernel is looked up
by what it depends on, and gets plain addresses from the second launch on, without
Triton's hooks for profilers.

Kernels can be compiled before they are needed (`precompile.py`): inside `compile_only`,
launches with tensors of the CPU are compiled by background threads and not run. A real
launch waits for its own kernel only.
"""

import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from triton.compiler import CompiledKernel
from triton.runtime import driver

from tempergat.ops.gpu.launching.precompile import BackgroundThreads
from tempergat.ops.torch_internals import current_device, current_stream

# The parameters of Triton's launcher, which starts a compiled kernel. The second list
# is that of Triton 3.7. A test builds that launcher; it never ran on a GPU.
_PLACE = ("self", "gridX", "gridY", "gridZ", "stream", "function")
_METADATA = ("kernel_metadata", "launch_metadata")
_HOOKS = ("launch_enter_hook", "launch_exit_hook")
_TESTED_PARAMETERS = (*_PLACE, "args")
_UNTESTED_PARAMETERS = (*_PLACE, *_METADATA, *_HOOKS, "args")
_SCRATCH = ("global", "profile")
# How a compiled kernel is started: a function, and what it is called with between grid
# and stream on one side, and the kernel's own arguments on the other.
_Start = tuple[Any, tuple[Any, ...]]
_compiled: dict[Any, _Start] = {}
# Kernels that background threads compile, by the same keys.
_compiling: dict[Any, Future[Any]] = {}
_MOST_THREADS = 8
_loading = threading.Lock()
_compile_only = threading.local()
# Up to here Triton passes a number as 32 bits.
_WIDEST = 2**31


def divide_up(number: int, by: int) -> int:
    """The quotient, rounded up."""
    return -(-number // by)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below the number."""
    return 1 << (number - 1).bit_length()


def launch(
    kernel: Any,
    grid: tuple[int, int],
    tensors: Sequence[Tensor | None],
    numbers: tuple[int | float, ...],
    constants: tuple[Any, ...],
    warps: int,
) -> None:
    """Starts a kernel whose parameters are tensors, numbers and constants, in order.

    Whole numbers must be among the kernel's ``do_not_specialize``, and a number must
    have the same type in all launches: one compiled kernel serves them. Nothing is
    started for an empty grid.

    Args:
        kernel: The kernel, as decorated by Triton.
        grid: How many programs it has along both axes.
        tensors: Its pointers; None for one that the constants say is not used.
        numbers: Its numbers.
        constants: Its compile-time constants.
        warps: Warps of a program.
    """
    if grid[0] == 0 or grid[1] == 0:
        return
    addresses = [0 if t is None else t.data_ptr() for t in tensors]
    types = [None if t is None else t.dtype for t in tensors]
    # `backend.refusal` has seen to it that all are on one device.
    first = tensors[0]
    if first is None:
        first = next(t for t in tensors if t is not None)
    device = first.get_device()
    if device < 0 and is_compile_only():
        _compile_only.receive(kernel, types, numbers, constants, warps)
        return
    if device >= 0 and device != current_device():
        # Triton starts kernels on the current device.
        with torch.cuda.device(device):
            launch(kernel, grid, tensors, numbers, constants, warps)
        return
    # Compiled code relies on 16-byte alignment and on the width of the numbers.
    aligned = not any(map((15).__and__, addresses))
    usual = aligned and max(numbers, default=0) < _WIDEST
    key = (kernel.fn, warps, constants, *types, device) if usual else None
    start = _compiled.get(key)
    if start is None and key in _compiling:
        start = _finished(key)
    if start is not None:
        function, before = start
        place = (grid[0], grid[1], 1, current_stream(device), *before)
        function(*place, *addresses, *numbers, *constants)
        return
    compiled = kernel[grid](*tensors, *numbers, *constants, num_warps=warps)
    if usual and isinstance(compiled, CompiledKernel) and direct_launch() is not None:
        _compiled[key] = _start_of(compiled)


def _start_of(compiled: CompiledKernel) -> _Start:
    """How a kernel is started; loads it if it was not loaded."""
    # Asked for first: loading the kernel makes its function known.
    launcher = compiled.run
    function, rest = compiled.function, (compiled.packed_metadata, None, None, None)
    sizes = [getattr(launcher, f"{kind}_scratch_size", -1) for kind in _SCRATCH]
    if direct_launch() == "tested" and sizes == [0, 0]:
        # What the launcher itself calls for a kernel that needs no memory of its own.
        flags = (launcher.launch_cooperative_grid, launcher.launch_pdl, None, None)
        return launcher.launch, (function, *flags, *rest)
    return launcher, (function, *rest)


@contextmanager
def compile_only(
    device: int, receive: Callable[..., None] | None = None
) -> Iterator[None]:
    """Compiles for this device what the thread launches with tensors of the CPU.

    Args:
        device: The number of the device.
        receive: What gets the launches instead, without their grids and tensors but
            with the types of these: then no device is needed.
    """
    _compile_only.device = device
    _compile_only.receive = receive or _compile_in_background
    try:
        yield
    finally:
        _compile_only.device = -1


def is_compile_only() -> bool:
    """Whether this thread's launches with tensors of the CPU are only compiled."""
    return getattr(_compile_only, "device", -1) >= 0


def device_of(tensor: Tensor) -> int:
    """The number of the device that a kernel with this tensor runs on; -1 for none."""
    if is_compile_only():
        device: int = _compile_only.device
        return device
    return tensor.get_device()


@functools.cache
def _threads() -> BackgroundThreads:
    return BackgroundThreads(min(_MOST_THREADS, os.cpu_count() or 1))


def compile_kernel(
    kernel: Any,
    types: Sequence[torch.dtype | None],
    numbers: tuple[int | float, ...],
    constants: tuple[Any, ...],
    warps: int,
) -> CompiledKernel:
    """The kernel that `launch` starts, with types in place of the tensors."""
    compiled: CompiledKernel = kernel.warmup(
        *types, *numbers, *constants, grid=(1, 1), num_warps=warps
    )
    return compiled


def _compile_in_background(
    kernel: Any,
    types: list[torch.dtype | None],
    numbers: tuple[int | float, ...],
    constants: tuple[Any, ...],
    warps: int,
) -> None:
    device = _compile_only.device
    key = (kernel.fn, warps, constants, *types, device)
    if key in _compiled or key in _compiling or direct_launch() is None:
        return

    def build() -> CompiledKernel:
        with torch.cuda.device(device):
            compiled = compile_kernel(kernel, types, numbers, constants, warps)
            # Builds the launcher, which stays in Triton's cache. The kernel itself is
            # loaded by the first launch: loading can disturb the capture of a graph.
            driver.active.launcher_cls(compiled.src, compiled.metadata)
            return compiled

    with _loading:
        _compiling[key] = _threads().submit(build)


def _finished(key: Any) -> _Start | None:
    """A kernel that was compiled in the background; None if that failed."""
    future = _compiling.get(key)
    try:
        compiled = None if future is None else future.result()
    except Exception:
        # The launch itself meets the same error, and reports it.
        compiled = None
    with _loading:
        if compiled is not None and key not in _compiled:
            _compiled[key] = _start_of(compiled)
        _compiling.pop(key, None)
        return _compiled.get(key)


@functools.cache
def direct_launch() -> str | None:
    """Whether the installed Triton's launcher can be called directly.

    Returns:
        "tested" or "untested", whether a launcher with these parameters was ever run
        here; None for unknown parameters, which only Triton itself can pass.
    """
    if torch.version.hip is not None:
        return None
    try:
        from triton.backends.nvidia.driver import CudaLauncher
    except ImportError:
        return None
    names = tuple(inspect.signature(CudaLauncher.__call__).parameters)
    known = {_TESTED_PARAMETERS: "tested", _UNTESTED_PARAMETERS: "untested"}
    return known.get(names)
