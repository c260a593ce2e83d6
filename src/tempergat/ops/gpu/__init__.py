"""The GPU backend: Triton kernels for CUDA devices.

Triton is imported by the first call, not with the package: it is absent from CPU
builds of torch and slow to load.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tempergat.ops import random
from tempergat.ops.gpu.launching import precompile
from tempergat.ops.torch_internals import in_dispatch_mode, in_transform, is_tracing

# A graph is made by functions of this package, and calls have graphs.
if TYPE_CHECKING:
    from tempergat.ops.calls import Backward, Call, Forward

NAME = "gpu"
DEVICE_TYPE = "cuda"
DISPATCH_KEY = "CUDA"

_SINGLE_OR_HALF = (torch.float32, torch.bfloat16, torch.float16)
_DTYPES = {
    "aggregate": (*_SINGLE_OR_HALF, torch.float64),
    "outer": (torch.float32,),
}
# The ops whose modules are in `features/`.
_OF_FEATURES = ("aggregate", "dropout", "gate", "gather", "outer")
_MOST_CHANNELS = 8192
# The most elements of one head's linear map of edge features, which programs hold.
_LARGEST_MAP = 2048
# Of fewer nodes, or more columns, torch's own batched products are as fast as "outer".
_FEWEST_NODES = 1024
_MOST_COLUMNS = 64
_MOST_EDGE_FEATURES = 16
# The same where they are not projected.
_MOST_DOT_FEATURES = 256
# Larger graphs are grouped with less memory, one side after the other.
_MOST_GROUPED = 2**25
_OLDEST_CAPABILITY = (8, 0)
# The kernels collect tuples, which older versions of Triton do not compile.
_OLDEST_TRITON = (3, 3)


def _find_triton() -> str | None:
    if importlib.util.find_spec("triton") is None:
        return None
    for distribution in ("triton", "pytorch-triton"):
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "of unknown version"


def _parse(version: str) -> tuple[int, ...] | None:
    parts = version.split(".")[:2]
    return tuple(map(int, parts)) if all(p.isdecimal() for p in parts) else None


# The installed version of Triton; None without it.
TRITON = _find_triton()
_TRITON_VERSION = None if TRITON is None else _parse(TRITON)


def refusal(call: Call) -> str | None:
    """Why these kernels cannot run a call on a CUDA device; None when they can."""
    x = call.tensors[0]
    assert x is not None
    reason = _device_refusal(x.get_device())
    if reason is not None:
        return reason
    if x.dtype not in _DTYPES.get(call.op, _SINGLE_OR_HALF):
        return f"{x.dtype} is not among float32, bfloat16 and float16"
    if call.op == "gate":
        return _gate_refusal(call)
    if call.op == "outer":
        return _outer_refusal(call)
    return None if call.graph is None else _attention_refusal(call)


# By device. A dictionary, because torch.compile warns about functools.cache.
_device_refusals: dict[int, str | None] = {}


def _device_refusal(device: int) -> str | None:
    if device not in _device_refusals:
        _device_refusals[device] = _find_device_refusal(device)
    return _device_refusals[device]


def _find_device_refusal(device: int) -> str | None:
    if TRITON is None:
        return "triton is not installed; it comes with CUDA builds of torch"
    if _TRITON_VERSION is not None and _TRITON_VERSION < _OLDEST_TRITON:
        oldest = ".".join(map(str, _OLDEST_TRITON))
        return f"triton {TRITON} is older than {oldest}"
    if torch.version.hip is not None:
        # The numbers of capabilities are NVIDIA's.
        if os.environ.get("TEMPERGAT_ROCM") == "1":
            return None
        return (
            "the Triton kernels compile for ROCm, but have never run there; "
            "TEMPERGAT_ROCM=1 switches them on"
        )
    if torch.cuda.get_device_capability(device) < _OLDEST_CAPABILITY:
        name = torch.cuda.get_device_name(device)
        return f"{name} is older than compute capability 8.0"
    return None


def _attention_refusal(call: Call) -> str | None:
    z = call.tensors[0]
    assert z is not None
    for x in call.tensors:
        if x is not None and x.dtype == torch.float64:
            return (
                "one of the tensors is float64, the GPU kernels compute in float32; "
                "convert it with .float() to use them"
            )
    if z.numel() == 0:
        return f"z is empty ({list(z.shape)})"
    if z.size(-1) > _MOST_CHANNELS:
        return f"{z.size(-1)} channels per head are more than {_MOST_CHANNELS}"
    # GATv2's edge_map, [H, C, D].
    edge_map = call.tensors[5] if call.op == "gatv2" and len(call.tensors) > 5 else None
    if edge_map is not None and (
        edge_map.size(2) > _MOST_EDGE_FEATURES or edge_map[0].numel() > _LARGEST_MAP
    ):
        return (
            f"{edge_map.size(2)} features per edge and {z.size(-1)} channels per head "
            "are too many to project them in the kernels"
        )
    if call.op == "dot_product" and len(call.tensors) > 3:
        edge_x = call.tensors[3]
        if edge_x is not None and edge_x.size(-1) > _MOST_DOT_FEATURES:
            return (
                f"{edge_x.size(-1)} features per edge are more than "
                f"{_MOST_DOT_FEATURES}"
            )
    return None


def _gate_refusal(call: Call) -> str | None:
    x, logit = call.tensors
    assert x is not None
    assert logit is not None
    if x.dtype != logit.dtype or x.shape != logit.shape:
        return (
            f"the gate is {logit.dtype} {list(logit.shape)}, the features are "
            f"{x.dtype} {list(x.shape)}"
        )
    return None


def _outer_refusal(call: Call) -> str | None:
    dout, x = call.tensors
    assert dout is not None
    assert x is not None
    if x.dtype == dout.dtype and is_faster_outer(dout.shape, x.shape):
        return None
    return "torch's own product is as fast for few nodes, one model or many columns"


def is_faster_outer(dout: Sequence[int], x: Sequence[int]) -> bool:
    """Whether "outer" is faster than torch for dout and x of these shapes."""
    nodes, models, outs = dout
    is_narrow = max(outs, x[2]) <= _MOST_COLUMNS
    return nodes >= _FEWEST_NODES and models > 1 and x[1] == models and is_narrow


def attend(attention: str, call: Forward) -> tuple[Tensor | None, ...]:
    """Runs an attention and its epilogue; see `Backend.attend`."""
    results: tuple[Tensor | None, ...] = kernels("gate").attend(
        kernels(attention), call
    )
    return results


def gradients(attention: str, call: Backward) -> tuple[Tensor | None, ...]:
    """The gradients of an attention; see `Backend.gradients`."""
    results: tuple[Tensor | None, ...] = kernels("gate").gradients(
        kernels(attention), call
    )
    return results


def can_group(edge_index: Tensor, largest: int) -> bool:
    """Whether the module "edges" takes these edges.

    Args:
        edge_index: The edges.
        largest: The largest number among nodes and edges.
    """
    return (
        0 < largest <= _MOST_GROUPED
        and _is_plain(edge_index)
        and not torch.cuda.is_current_stream_capturing()
    )


def gather_rows(x: Tensor, index: Tensor) -> Tensor:
    """``x.index_select(0, index)``, by a kernel of ours where it can."""
    is_matrix = x.dim() == 2 and x.is_contiguous() and index.is_contiguous()
    is_known = x.dtype in _SINGLE_OR_HALF and not x.requires_grad
    if is_matrix and is_known and _is_plain(x):
        rows: Tensor = kernels("gather").run(x, index)
        return rows
    return x.index_select(0, index)


def fold_in(seed: Tensor, data: int | Tensor) -> Tensor:
    """`random.fold_in`, by one kernel instead of thirteen where it can."""
    has_kernel = isinstance(data, Tensor) and data.is_cuda and data.is_contiguous()
    if has_kernel and seed.dim() == 0 and _is_plain(seed):
        seeds: Tensor = kernels("dropout").seeds(seed, data)
        return seeds
    return random.fold_in(seed, data)


def _is_plain(x: Tensor) -> bool:
    """Whether nothing but a device's own kernels has to know of what is done with x."""
    return (
        x.is_cuda
        and type(x) is Tensor
        and not (is_tracing() or in_transform() or in_dispatch_mode())
        and _device_refusal(x.get_device()) is None
    )


@functools.cache
def kernels(op: str) -> Any:
    """The module with an op's kernels."""
    room = ".features" if op in _OF_FEATURES else ""
    return importlib.import_module(f"{__name__}{room}.{op}")


def compile_ahead(
    op: str,
    heads: int,
    channels: int,
    *,
    models: int = 1,
    nodes: int = 1,
    dtype: torch.dtype = torch.float32,
    dropout: bool = False,
    gate: bool = False,
    edge: bool = False,
    learnt: bool = False,
    weights: bool = False,
    training: bool = True,
    device: torch.device | str | None = None,
) -> None:
    """Compiles the kernels of later calls in background threads.

    Returns at once; a later call waits for its own kernels only. Nothing is done where
    the kernels do not run, nor when the same was asked for before. What is compiled
    stays in Triton's cache on disk.

    Args:
        op: An attention, with all that a step of such a layer needs; "dropout" of
            whole tensors; "aggregate", sparse features times weights; or "outer", the
            gradient of the weights of many models.
        heads: Heads of a model; for "outer" the rows of a weight.
        channels: Channels per head; for "dropout" the columns of the tensor, for
            "aggregate" the rows and for "outer" the columns of a weight.
        models: How many models are trained at once.
        nodes: Number of nodes.
        dtype: The type of the features.
        dropout: Whether attention weights are dropped.
        gate: Whether the layer has a feature gate.
        edge: Whether edges have a part in the logits.
        learnt: Whether the layer learns one temperature of all its heads.
        weights: Whether attention weights are returned.
        training: Whether gradients are taken.
        device: The CUDA device; the current one if it is not given.

    Raises:
        ValueError: If there is no such op.
    """
    if op not in precompile.OPS:
        raise ValueError(f"op must be one of {', '.join(precompile.OPS)}, got {op!r}")
    facts = (models, nodes, dtype, dropout, gate, edge, learnt, weights, training)
    request = precompile.CompileRequest(op, heads, channels, *facts)
    place = torch.device(DEVICE_TYPE if device is None else device)
    if (request, place) in precompile.requests:
        return
    if place.type != DEVICE_TYPE or not torch.cuda.is_available():
        return
    if dtype not in _SINGLE_OR_HALF or channels > _MOST_CHANNELS:
        return
    number = torch.cuda.current_device() if place.index is None else place.index
    if _device_refusal(number) is None:
        precompile.start(request, place, number)


def sampling_kernels(device: torch.device) -> Any | None:
    """The module that samples on this device; None where these kernels cannot."""
    if device.type != DEVICE_TYPE:
        return None
    index = torch.cuda.current_device() if device.index is None else device.index
    return kernels("sampling") if _device_refusal(index) is None else None


def launch_path() -> str:
    """How kernels are launched with the installed Triton, in words."""
    if TRITON is None:
        return "not at all: triton is not installed"
    support = importlib.import_module(f"{__name__}.launching.launch").direct_launch()
    if support == "tested":
        return f"directly: the launcher of triton {TRITON} takes plain addresses"
    if support == "untested":
        return (
            f"directly: the launcher of triton {TRITON} takes plain addresses by its "
            "signature; this form of it was never tried on a GPU"
        )
    return (
        "through Triton's own launcher, with more work per call: that of triton "
        f"{TRITON} has another signature than the direct launch knows"
    )
