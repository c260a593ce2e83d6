"""The CPU backend: C++ kernels in `csrc/`, called through ctypes."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import TYPE_CHECKING, Any

import torch

from tempergat.ops.cpu import library

# A graph is made by functions of this package, and calls have graphs.
if TYPE_CHECKING:
    from torch import Tensor

    from tempergat.ops.calls import Backward, Call, Forward

NAME = "cpu"
DEVICE_TYPE = "cpu"
DISPATCH_KEY = "CPU"

_REMEDY = "with a C++ compiler, `python -m tempergat.ops.cpu.build` builds them"


def refusal(call: Call) -> str | None:
    """Why these kernels cannot run a call on the CPU; None when they can."""
    x = call.tensors[0]
    assert x is not None
    if call.op == "dropout":
        if x.dtype not in library.DROPOUT_TYPES:
            return f"the CPU kernels drop float32 or float64 elements, not {x.dtype}"
    elif x.dtype not in library.STORAGE:
        return f"the CPU kernels store float32, float64 or bfloat16, not {x.dtype}"
    if call.graph is not None and 0 in x.shape[-2:]:
        return f"there is nothing to compute for features of shape {list(x.shape)}"
    if library.library.problem is not None:
        return f"{library.library.problem}; {_REMEDY}"
    return None


@functools.cache
def kernels(op: str) -> Any:
    """The module with an op's kernels."""
    return importlib.import_module(f"{__name__}.{op}")


def attend(attention: str, call: Forward) -> tuple[Tensor | None, ...]:
    """Runs an attention and its epilogue; see `Backend.attend`."""
    results: tuple[Tensor | None, ...] = kernels(attention).forward(call)
    return results


def gradients(attention: str, call: Backward) -> tuple[Tensor | None, ...]:
    """The gradients of an attention; see `Backend.gradients`."""
    results: tuple[Tensor | None, ...] = kernels(attention).backward(call)
    return results


def warn_without_kernels() -> None:
    """Warns, once, that attention runs without the kernels because they are missing."""
    loaded = library.library
    if loaded.problem is None or loaded.warned or torch.compiler.is_compiling():
        return
    loaded.warned = True
    warnings.warn(
        f"tempergat has no CPU kernels ({loaded.problem}): attention runs in plain "
        f"PyTorch, slower and with more memory; {_REMEDY}",
        RuntimeWarning,
        stacklevel=4,
    )
