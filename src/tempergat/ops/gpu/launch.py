"""Launches the GPU kernels with as little work on the host as possible.

Triton inspects every argument of every launch to find the compiled kernel that fits,
which takes longer than a kernel on a small graph. Here the compiled kernel is looked up
by what it depends on, and gets plain addresses from the second launch on, without
Triton's hooks for profilers.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from triton.compiler import CompiledKernel
from triton.runtime import driver

from tempergat.ops.gpu import HAS_FAST_LAUNCH

_compiled: dict[Any, CompiledKernel] = {}
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

    Whole numbers must be among the kernel's ``do_not_specialize``. Nothing is started
    for an empty grid.

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
    devices = {t.get_device() for t in tensors if t is not None}
    if len(devices) > 1:
        places = sorted({str(t.device) for t in tensors if t is not None})
        raise ValueError(
            f"attention takes all its tensors from one device, got {places}; move "
            "them with .to()"
        )
    # Compiled code relies on 16-byte alignment and on the width of the numbers.
    aligned = not any(map((15).__and__, addresses))
    usual = aligned and max(numbers, default=0) < _WIDEST
    key = (kernel.fn, warps, constants, *types, *devices) if usual else None
    compiled = _compiled.get(key)
    if compiled is not None:
        stream = driver.active.get_current_stream(*devices)
        place = (*grid, 1, stream, compiled.function, compiled.packed_metadata)
        hooks = (None, None, None)
        compiled.run(*place, *hooks, *addresses, *numbers, *constants)
        return
    compiled = kernel[grid](*tensors, *numbers, *constants, num_warps=warps)
    if usual and HAS_FAST_LAUNCH and isinstance(compiled, CompiledKernel):
        _compiled[key] = compiled
