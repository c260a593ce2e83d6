"""The compiled library of `csrc/`: how it is found, loaded and called.

The library is built with the package. In a checkout that was never installed,
``python -m tempergat.ops.cpu.build`` builds it.

A call of a kernel is the structure `Call` of `csrc/call.h`. It is filled in as a list
of numbers and packed at once: with ctypes' structures, setting one field after another
takes longer than attention on a small graph.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tempergat.ops.random import drop_threshold, keep_scale

# Raised together with kInterfaceVersion in csrc/call.h.
INTERFACE_VERSION = 13
ISAS = ("generic", "avx2", "avx512")
KERNELS = (
    "gat_forward",
    "gat_backward",
    "gatv2_forward",
    "gatv2_backward",
    "dot_product_forward",
    "dot_product_backward",
    "aggregate",
)

# The numbers of the types in csrc/call.h.
STORAGE = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}
# The functions that drop elements out, by the type they take.
DROPOUT_TYPES = {torch.float32: "dropout_float", torch.float64: "dropout_double"}
_FAILURES = {1: "out of memory", 2: "unknown storage type"}
# The libraries of GCC's and LLVM's OpenMP.
_RUNTIMES = ("gomp", "omp", "iomp5")

# Edges grouped by one end, see `ops/graphs/graph.py`, and a matrix of feature rows.
_ROWS = ("pointer", "other", "position", "edge_id", "count")
_FEATURES = ("data", "rows", "stride")
_PARTS: dict[str, tuple[str, ...]] = {
    "storage": (),
    "isa": (),
    "threads": (),
    "wide_index": (),
    "heads": (),
    "channels": (),
    "negative_slope": (),
    "dropout": (),
    "drop_threshold": (),
    "dropout_seed": (),
    "by_target": _ROWS,
    "by_source": _ROWS,
    "z_src": _FEATURES,
    "z_dst": _FEATURES,
    "edge": _FEATURES,
    "out": _FEATURES,
    "dout": _FEATURES,
    "dz_src": _FEATURES,
    "dz_dst": _FEATURES,
    "dedge": _FEATURES,
    "score_src": (),
    "score_dst": (),
    "edge_score": (),
    "att": (),
    "att_dst": (),
    "theta": (),
    "thetas": (),
    "epsilon": (),
    "dweights": (),
    "lse": (),
    "weights": (),
    "dscore_src": (),
    "dscore_dst": (),
    "datt": (),
    "datt_dst": (),
    "dtheta": (),
    "dedge_score": (),
    "gate_logit": _FEATURES,
    "skip": _FEATURES,
    "finished": _FEATURES,
    "dlogit": _FEATURES,
    "dattended": _FEATURES,
    "bias": (),
    "dbias": (),
    "gate_sum": (),
    "dgate_sum": (),
    "edge_width": (),
    "edge_x": (),
    "edge_map": (),
    "dedge_x": (),
    "dedge_map": (),
    "edge_weight": (),
    "edge_bias": (),
    "dedge_weight": (),
    "dedge_bias": (),
    "scale": (),
    "key": _FEATURES,
    "dkey": _FEATURES,
    "edge_sum": (),
    "records": _FEATURES,
}
# The names of matrices of feature rows.
FEATURES = {name for name, parts in _PARTS.items() if parts is _FEATURES}
_REALS = ("negative_slope", "dropout", "epsilon", "scale")

_lengths = [max(1, len(parts)) for parts in _PARTS.values()]
# Where a field begins; absent arguments are 0, the null pointer.
PLACE = dict(zip(_PARTS, itertools.accumulate([0, *_lengths[:-1]]), strict=True))
CALL_LENGTH = sum(_lengths)
_packer = struct.Struct(
    "="
    + "".join(
        ("d" if name in _REALS else "q") * n
        for name, n in zip(_PARTS, _lengths, strict=True)
    )
)
CALL_SIZE = _packer.size


class Library:
    """The compiled kernels, or why there are none.

    Attributes:
        problem: Why the kernels cannot be used; None when they can.
        best_isa: Index in `ISAS` of the best instruction set of this machine.
        isa: The one in use.
        warned: Whether a warning about the problem was given.
        forked: Whether this process is a fork of the one that loaded the library.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None
        self.isa = self.best_isa = 0
        self.warned = False
        self.forked = False
        self._functions: Any = None
        self._kernels: dict[str, Callable[[bytes], int]] = {}
        try:
            self._functions = open_library(path)
            self._bind_all()
        except (OSError, AttributeError) as error:
            self.problem = str(error)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._notice_fork)

    def _bind_all(self) -> None:
        version = _bind(self._functions, "interface_version")()
        if version != INTERFACE_VERSION:
            raise OSError(
                f"{self.path.name} was built for version {version} of the interface, "
                f"this is version {INTERFACE_VERSION}"
            )
        size = _bind(self._functions, "call_size")()
        if size != CALL_SIZE:
            raise OSError(
                f"a call of {self.path.name} has {size} bytes, not {CALL_SIZE}: "
                "library.py and csrc/call.h differ"
            )
        self.isa = self.best_isa = _bind(self._functions, "best_isa")()
        pointer, number, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
        for name in KERNELS:
            self._kernels[name] = _bind(self._functions, name, ctypes.c_char_p)
        call = ctypes.c_char_p
        _bind(self._functions, "run_copies", pointer, call, number, call)
        words = (pointer, number, pointer, *[number] * 4, real, number, pointer)
        for name in DROPOUT_TYPES.values():
            _bind(self._functions, name, *words)

    def function(self, name: str, *arguments: Any, result: Any = ctypes.c_int64) -> Any:
        """A further function of the library; None if it was built without it."""
        if self.problem or not hasattr(self._functions, f"tempergat_{name}"):
            return None
        return _bind(self._functions, name, *arguments, result=result)

    def _notice_fork(self) -> None:
        self.forked = True

    def threads(self) -> int:
        """How many threads a call uses: torch's number, or one after a fork.

        OpenMP's threads do not survive a fork, and it would wait for them for ever.
        """
        return 1 if self.forked else torch.get_num_threads()

    def run(
        self,
        name: str,
        values: list[Any],
        copies: int = 1,
        steps: Sequence[int] = (),
    ) -> None:
        """Runs one kernel.

        Args:
            name: The kernel.
            values: The fields of a call, in the order of the structure.
            copies: On so many copies of the graph.
            steps: What is added to each field from copy to copy, if there are several.
        """
        kernel, call = self._kernels[name], _packer.pack(*values)
        if copies == 1:
            status = kernel(call)
        else:
            address = ctypes.cast(kernel, ctypes.c_void_p)  # type: ignore[arg-type]
            packed = struct.pack(f"={CALL_LENGTH}q", *steps)
            status = self._functions.tempergat_run_copies(address, call, copies, packed)
        if status:
            check(name, status)

    def dropout(self, x: Tensor, seeds: Tensor, rate: float, out: Tensor) -> None:
        """Writes dropped-out elements, [rows, seeds, columns]; see `ops/features`."""
        name = f"tempergat_{DROPOUT_TYPES[x.dtype]}"
        status = getattr(self._functions, name)(
            x.data_ptr(),
            x.size(1),
            seeds.data_ptr(),
            seeds.numel(),
            x.size(0),
            x.size(2),
            drop_threshold(rate),
            keep_scale(rate, x.dtype),
            self.threads(),
            out.data_ptr(),
        )
        check(name, status)


def check(name: str, status: int) -> None:
    """Raises RuntimeError if a kernel returned that it failed."""
    if status:
        reason = _FAILURES.get(status, f"status {status}")
        raise RuntimeError(f"the CPU kernel {name} failed: {reason}")


def library_path() -> Path:
    """Where the compiled library is, or would be."""
    name = "_cpu.dll" if os.name == "nt" else "_cpu.so"
    # In an editable install it is not beside this file.
    return Path(str(resources.files("tempergat.ops.cpu").joinpath(name)))


def open_library(path: Path) -> Any:
    """Loads a library that uses the process's OpenMP.

    So it shares torch's threads where torch has loaded OpenMP for all libraries. Where
    it has not, torch's own is opened to all; the system's, with other threads, comes
    last.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} was not built")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        problem = error
    for runtime in _openmp_runtimes():
        try:
            ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(path))
        except OSError as error:
            problem = error
    raise problem


def _openmp_runtimes() -> Iterator[str]:
    # On macOS and on ARM, torch opens the OpenMP of its wheel to its libraries alone.
    installed = Path(torch.__file__).parents[1]
    for folder, name in itertools.product(("torch/lib", "torch.libs"), _RUNTIMES):
        yield from map(str, (installed / folder).glob(f"lib{name}[.-]*"))
    yield from filter(None, map(ctypes.util.find_library, _RUNTIMES))


def _bind(
    functions: Any, name: str, *arguments: Any, result: Any = ctypes.c_int64
) -> Any:
    function = getattr(functions, f"tempergat_{name}")
    function.argtypes, function.restype = arguments, result
    return function


library = Library(library_path())
