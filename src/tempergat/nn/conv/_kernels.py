"""Has a layer's GPU kernels compiled in parallel, from its first call on."""

from __future__ import annotations

from typing import Any

import torch

from tempergat.nn.projection import Features, models_are_batched
from tempergat.ops import compile_ahead, is_tracing


def compile_kernels(layer: Any, x: Features, return_weights: bool) -> None:
    """Starts to compile the kernels of a whole step of the layer.

    Otherwise each kernel would be compiled when it is first launched, one after the
    other. Only the first call of its kind does anything.

    Args:
        layer: The layer; its ``attention`` names the op it calls.
        x: Its input.
        return_weights: Whether it returns the attention weights.
    """
    device = x.device
    if device.type != "cuda" or is_tracing() or models_are_batched():
        return
    half = torch.is_autocast_enabled("cuda")
    compile_ahead(
        layer.attention,
        layer.heads,
        layer.out_channels,
        dtype=torch.get_autocast_dtype("cuda") if half else x.dtype,
        dropout=layer.training and layer.dropout > 0.0,
        gate=layer.gate is not None,
        edge=layer.edge_dim is not None,
        learnt=layer.theta is not None and layer.theta.dim() == 0,
        weights=return_weights,
        training=torch.is_grad_enabled(),
        device=device,
    )
