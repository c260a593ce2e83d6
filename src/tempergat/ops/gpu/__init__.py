"""Fused attention on CUDA devices, through Triton.

Triton is imported at the first call, not with the package: it is absent from CPU
builds of torch and slow to load.
"""

import functools
import importlib.util
from typing import Any

import torch
from torch import Tensor

from tempergat.ops.graph import Graph

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_MOST_CHANNELS = 8192


def refusal(graph: Graph, z: Tensor) -> str | None:
    """Why these kernels cannot serve a call; None when they can."""
    if not z.is_cuda:
        return f"z is on {z.device}, not on a CUDA device"
    reason = _device_refusal(z.get_device())
    if reason is not None:
        return reason
    if z.dtype not in _DTYPES:
        return f"{z.dtype} is not among float32, bfloat16 and float16"
    if graph.device != z.device:
        return f"the graph is on {graph.device}, z on {z.device}"
    if z.numel() == 0:
        return f"z is empty ({list(z.shape)})"
    if z.size(-1) > _MOST_CHANNELS:
        return f"{z.size(-1)} channels per head are more than {_MOST_CHANNELS}"
    return None


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


@functools.cache
def _device_refusal(device: int) -> str | None:
    if not has_triton():
        return "triton is not installed; it comes with CUDA builds of torch"
    if torch.cuda.get_device_capability(device) < (8, 0):
        name = torch.cuda.get_device_name(device)
        return f"{name} is older than compute capability 8.0"
    return None


def _check_dtype(z: Tensor) -> None:
    # Float32 features with one float64 argument arrive as float64.
    if z.dtype not in _DTYPES:
        raise TypeError(
            f"the GPU kernels take float32, bfloat16 or float16, got {z.dtype}: one "
            "argument of the attention is float64; convert it with .float()"
        )


def gat_forward(z: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """GAT's output, the log-sum-exp of each row and, if asked for, the weights."""
    from tempergat.ops.gpu import gat as gpu_gat

    _check_dtype(z)
    return gpu_gat.forward(z, *arguments)


def gat_backward(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of z, score_src, score_dst and edge_score (no rows: absent)."""
    from tempergat.ops.gpu import gat as gpu_gat

    return gpu_gat.backward(*arguments)


def gatv2_forward(z_src: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """GATv2's output, the log-sum-exp of each row and, if asked for, the weights."""
    from tempergat.ops.gpu import gatv2 as gpu_gatv2

    _check_dtype(z_src)
    return gpu_gatv2.forward(z_src, *arguments)


def gatv2_backward(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of z_src, z_dst, att and edge (no rows: absent)."""
    from tempergat.ops.gpu import gatv2 as gpu_gatv2

    return gpu_gatv2.backward(*arguments)
