"""Fused attention on the CPU: calls into the compiled library of `csrc/`.

The library is built with the package. In a checkout that was never installed,
``python -m tempergat.ops.cpu.build`` builds it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import warnings
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tempergat.ops.graph import Graph, Rows
from tempergat.ops.random import drop_threshold, keep_scale

# Raised together with kInterfaceVersion in csrc/call.h.
INTERFACE_VERSION = 4
ISAS = ("generic", "avx2", "avx512")
REMEDY = "with a C++ compiler at hand, `python -m tempergat.ops.cpu.build` builds them"

STORAGE = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}
# The functions that drop elements out, by the type they take.
DROPOUT_TYPES = {torch.float32: "dropout_float", torch.float64: "dropout_double"}
_FAILURES = {1: "out of memory", 2: "unknown storage type"}
# GCC's and LLVM's OpenMP, by the names their libraries have.
_RUNTIMES = ("gomp", "omp", "iomp5")


class _Rows(ctypes.Structure):
    _fields_ = (
        ("pointer", ctypes.c_void_p),
        ("other", ctypes.c_void_p),
        ("position", ctypes.c_void_p),
        ("edge_id", ctypes.c_void_p),
        ("count", ctypes.c_int64),
    )


class _Features(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("stride", ctypes.c_int64),
    )


class _Call(ctypes.Structure):
    _fields_ = (
        ("storage", ctypes.c_int64),
        ("isa", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("wide_index", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("channels", ctypes.c_int64),
        ("negative_slope", ctypes.c_double),
        ("dropout", ctypes.c_double),
        ("drop_threshold", ctypes.c_int64),
        ("dropout_seed", ctypes.c_void_p),
        ("by_target", _Rows),
        ("by_source", _Rows),
        ("z_src", _Features),
        ("z_dst", _Features),
        ("edge", _Features),
        ("out", _Features),
        ("dout", _Features),
        ("dz_src", _Features),
        ("dz_dst", _Features),
        ("dedge", _Features),
        ("score_src", ctypes.c_void_p),
        ("score_dst", ctypes.c_void_p),
        ("edge_score", ctypes.c_void_p),
        ("att", ctypes.c_void_p),
        ("dweights", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("dscore_src", ctypes.c_void_p),
        ("dscore_dst", ctypes.c_void_p),
        ("datt", ctypes.c_void_p),
        ("dedge_score", ctypes.c_void_p),
        ("records", _Features),
    )


class Library:
    """The compiled kernels, or why there are none.

    Attributes:
        problem: Why the kernels cannot be used; None when they can.
        best_isa: Index in `ISAS` of the best instruction set of this machine.
        isa: The one in use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None
        self.isa = self.best_isa = 0
        self.warned = False
        self.forked = False
        self._functions: Any = None
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
        self.isa = self.best_isa = _bind(self._functions, "best_isa")()
        for name in KERNELS:
            _bind(self._functions, name, ctypes.POINTER(_Call))
        pointer, number, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
        words = (pointer, number, pointer, *[number] * 4, real, number, pointer)
        for name in DROPOUT_TYPES.values():
            _bind(self._functions, name, *words)

    def _notice_fork(self) -> None:
        self.forked = True

    def threads(self) -> int:
        """How many threads a call uses: torch's number, or one after a fork.

        A forked process has none of the threads that OpenMP believes it has, and
        would wait for them for ever.
        """
        return 1 if self.forked else torch.get_num_threads()

    def run(self, name: str, call: _Call) -> None:
        """Runs one kernel with this library's instruction set."""
        call.isa = self.isa
        call.threads = self.threads()
        _check(name, getattr(self._functions, f"tempergat_{name}")(ctypes.byref(call)))

    def dropout(self, x: Tensor, seeds: Tensor, rate: float, out: Tensor) -> None:
        """Writes dropped-out elements, [rows, seeds, columns], see `ops/dropout.py`."""
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
        _check(name, status)


def _check(name: str, status: int) -> None:
    if status:
        reason = _FAILURES.get(status, f"status {status}")
        raise RuntimeError(f"the CPU kernel {name} failed: {reason}")


def library_path() -> Path:
    """Where the compiled library is, or would be."""
    name = "_cpu.dll" if os.name == "nt" else "_cpu.so"
    # In an editable install it is not beside this file.
    return Path(str(resources.files("tempergat.ops.cpu").joinpath(name)))


def open_library(path: Path) -> Any:
    """Loads a library that leaves OpenMP to the process.

    So it shares torch's threads where torch has made them known; where it has not, or
    has another compiler's, a runtime of the system's is loaded.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} was not built")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        problem = error
    for name in _RUNTIMES:
        runtime = ctypes.util.find_library(name)
        if runtime is None:
            continue
        try:
            ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(path))
        except OSError as error:
            problem = error
    raise problem


def _bind(functions: Any, name: str, *arguments: Any) -> Any:
    function = getattr(functions, f"tempergat_{name}")
    function.argtypes, function.restype = arguments, ctypes.c_int64
    return function


KERNELS = (
    "gat_forward",
    "gat_backward",
    "gatv2_forward",
    "gatv2_backward",
    "aggregate",
)
library = Library(library_path())


def refusal(graph: Graph, z: Tensor) -> str | None:
    """Why the CPU kernels cannot serve a call; None when they can."""
    if z.device.type != "cpu":
        return f"the features are on {z.device}"
    if z.dtype not in STORAGE:
        return f"the CPU kernels store float32, float64 or bfloat16, not {z.dtype}"
    if 0 in z.shape[-2:]:
        return f"there is nothing to compute for features of shape {list(z.shape)}"
    if library.problem is not None:
        _warn_once()
        return f"{library.problem}; {REMEDY}"
    return None


def _warn_once() -> None:
    if library.warned or torch.compiler.is_compiling():
        return
    library.warned = True
    warnings.warn(
        f"tempergat has no CPU kernels ({library.problem}): attention runs in plain "
        f"PyTorch, slower and with more memory; {REMEDY}",
        RuntimeWarning,
        stacklevel=2,
    )


def gat_forward(
    z: Tensor,
    score_src: Tensor,
    score_dst: Tensor | None,
    edge_score: Tensor | None,
    dropout_seed: Tensor | None,
    by_target: Rows,
    negative_slope: float,
    dropout: float,
    weights: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """`tempergat::gat_forward`."""
    frame = _Frame(z, dropout_seed, negative_slope, dropout)
    frame.edges("by_target", by_target)
    frame.features(z_src=z)
    frame.plain(score_src=score_src, score_dst=score_dst, edge_score=edge_score)
    return frame.forward("gat_forward", score_src, by_target, weights)


def gat_backward(
    dout: Tensor,
    dweights: Tensor | None,
    z: Tensor,
    score_src: Tensor,
    score_dst: Tensor | None,
    edge_score: Tensor | None,
    dropout_seed: Tensor | None,
    out: Tensor,
    lse: Tensor,
    by_target: Rows,
    by_source: Rows,
    negative_slope: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`tempergat::gat_backward`."""
    frame = _Frame(z, dropout_seed, negative_slope, dropout)
    frame.edges("by_target", by_target)
    frame.edges("by_source", by_source)
    frame.features(z_src=z, dout=dout)
    frame.plain(score_src=score_src, score_dst=score_dst, edge_score=edge_score)
    frame.plain(lse=lse, dweights=dweights)
    dz, dscore_src = _empty(z), _empty(score_src)
    dscore_dst = _empty(score_dst, score_src)
    dedge_score = score_src.new_empty(0, z.size(1))
    if edge_score is not None:
        # A padded edge has gradient 0.
        dedge_score = score_src.new_zeros(edge_score.shape)
        frame.plain(dedge_score=dedge_score)
    frame.features(dz_src=dz)
    frame.plain(dscore_src=dscore_src)
    if score_dst is not None:
        frame.plain(dscore_dst=dscore_dst)
    # Two numbers per head.
    frame.records(by_target, 2 * z.size(1) * score_src.element_size())
    frame.run("gat_backward")
    return dz, dscore_src, dscore_dst, dedge_score


def gatv2_forward(
    z_src: Tensor,
    z_dst: Tensor,
    att: Tensor,
    edge: Tensor | None,
    dropout_seed: Tensor | None,
    by_target: Rows,
    negative_slope: float,
    dropout: float,
    weights: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """`tempergat::gatv2_forward`."""
    frame = _Frame(z_src, dropout_seed, negative_slope, dropout)
    frame.edges("by_target", by_target)
    frame.features(z_src=z_src, z_dst=z_dst, edge=edge)
    frame.plain(att=att)
    return frame.forward("gatv2_forward", att, by_target, weights)


def gatv2_backward(
    dout: Tensor,
    dweights: Tensor | None,
    z_src: Tensor,
    z_dst: Tensor,
    att: Tensor,
    edge: Tensor | None,
    dropout_seed: Tensor | None,
    out: Tensor,
    lse: Tensor,
    by_target: Rows,
    by_source: Rows,
    negative_slope: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`tempergat::gatv2_backward`."""
    frame = _Frame(z_src, dropout_seed, negative_slope, dropout)
    frame.edges("by_target", by_target)
    frame.edges("by_source", by_source)
    frame.features(z_src=z_src, z_dst=z_dst, edge=edge, dout=dout)
    frame.plain(att=att, lse=lse, dweights=dweights)
    dz_src, dz_dst, datt = _empty(z_src), _empty(z_dst), _empty(att)
    dedge = z_dst.new_empty(0, *z_dst.shape[1:])
    if edge is not None:
        dedge = edge.new_zeros(edge.shape)
        frame.features(dedge=dedge)
    frame.features(dz_src=dz_src, dz_dst=dz_dst)
    frame.plain(datt=datt)
    # Two numbers per head, one bit per channel.
    heads, channels = att.shape
    frame.records(by_target, heads * (2 * att.element_size() + (channels + 7) // 8))
    frame.run("gatv2_backward")
    return dz_src, dz_dst, datt, dedge


def aggregate(rows: Rows, values: Tensor, x: Tensor) -> Tensor:
    """Sums of other ends' rows, weighted by ``values`` per slot and head.

    Args:
        rows: The matrix' elements by row; ``edge_id`` is not read.
        values: One value per element and head, float64 if x is, else float32.
        x: Feature rows of the other ends, [others, heads, channels].
    """
    frame = _Frame(x, None, 0.0, 0.0)
    frame.edges("by_target", rows)
    out = x.new_empty(rows.pointer.size(0) - 1, *x.shape[1:])
    frame.features(z_src=x, out=out)
    frame.plain(weights=values)
    frame.run("aggregate")
    return out


class _Frame:
    """A call being put together; keeps the tensors it points into alive."""

    def __init__(
        self, z: Tensor, dropout_seed: Tensor | None, slope: float, dropout: float
    ) -> None:
        self.z = z
        self.kept: list[Tensor] = []
        self.call = _Call()
        self.call.storage = STORAGE[z.dtype]
        self.call.heads, self.call.channels = z.shape[1:]
        self.call.negative_slope = slope
        if dropout > 0.0:
            if dropout_seed is None:
                raise ValueError("dropout > 0 needs dropout_seed, one int64 per head")
            self.call.dropout = dropout
            self.call.drop_threshold = drop_threshold(dropout)
            self.plain(dropout_seed=dropout_seed)

    def edges(self, name: str, rows: Rows) -> None:
        self.call.wide_index = int(rows.pointer.dtype == torch.int64)
        at = getattr(self.call, name)
        at.count = rows.pointer.size(0) - 1
        for field, tensor in zip(Rows._fields, rows, strict=True):
            setattr(at, field, tensor.data_ptr())

    def features(self, **tensors: Tensor | None) -> None:
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            # Rows apart are fine, as in a slice of a wider product.
            if tensor.stride()[1:] != (tensor.size(2), 1):
                tensor = tensor.contiguous()
            self.kept.append(tensor)
            at = getattr(self.call, name)
            at.data, at.rows = tensor.data_ptr(), tensor.size(0)
            at.stride = tensor.stride(0)

    def plain(self, **tensors: Tensor | None) -> None:
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            tensor = tensor.contiguous()
            self.kept.append(tensor)
            setattr(self.call, name, tensor.data_ptr())

    def records(self, rows: Rows, size: int) -> None:
        """Room for so many bytes per edge."""
        at = self.call.records
        at.rows, at.stride = rows.other.size(0), (size + 7) // 8 * 8
        tensor = self.z.new_empty(at.rows * at.stride, dtype=torch.uint8)
        self.kept.append(tensor)
        at.data = tensor.data_ptr()

    def forward(
        self, name: str, working: Tensor, by_target: Rows, weights: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Runs a forward kernel into new tensors."""
        heads, channels = self.z.shape[1:]
        targets = by_target.pointer.size(0) - 1
        out = self.z.new_empty(targets, heads, channels)
        lse = working.new_empty(targets, heads)
        # A padded edge has weight 0.
        weight = working.new_zeros(by_target.other.size(0) if weights else 0, heads)
        self.features(out=out)
        self.plain(lse=lse, weights=weight if weights else None)
        self.run(name)
        return out, lse, weight

    def run(self, name: str) -> None:
        library.run(name, self.call)


def _empty(x: Tensor | None, like: Tensor | None = None) -> Tensor:
    """Room for the gradient of x; without rows if x is None."""
    if x is not None:
        return x.new_empty(x.shape)
    assert like is not None
    return like.new_empty(0, *like.shape[1:])
