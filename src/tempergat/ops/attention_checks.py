"""Checks of what an attention is called with."""

import torch
from torch import Tensor

from tempergat.ops.calls import Attention
from tempergat.ops.graph import Graph
from tempergat.ops.torch_internals import is_tracing


def check_inputs(
    attention: Attention, graph: Graph, inputs: tuple[Tensor | None, ...]
) -> None:
    """Raises ValueError unless all shapes fit the graph, the features and each other.

    Kernels trust the shapes: a wrong one would read outside of a tensor.
    """
    z, name = inputs[0], attention.inputs[0].name
    if z is None or z.dim() != 3:
        raise ValueError(
            f"{name} must have shape [{graph.num_src}, heads, channels], got "
            f"{None if z is None else list(z.shape)}"
        )
    # A compiler would specialise on the sizes that are compared.
    if is_tracing():
        return
    _, heads, channels = z.shape
    sizes = {
        "S": graph.num_src,
        "T": graph.num_dst,
        "E": graph.src.size(0),
        "H": heads,
        "C": channels,
    }
    if attention.width_at:
        sizes["D"] = _common_width(attention, inputs)
    for x, spec, shape_of in zip(
        inputs, attention.inputs, attention.shape_of, strict=True
    ):
        if x is None:
            if spec.optional:
                continue
        elif x.shape == shape_of(sizes) or (spec.shape == "H" and x.dim() == 0):
            continue
        raise ValueError(
            f"{spec.name} must have shape {list(shape_of(sizes))}, to fit the "
            f"graph and the features, got {None if x is None else list(x.shape)}"
        )


def _common_width(attention: Attention, inputs: tuple[Tensor | None, ...]) -> int:
    """The size that the letter D stands for: that of the first input which has it."""
    width = 0
    missing: list[str] = []
    given: list[str] = []
    for k, axis in attention.width_at:
        x, name = inputs[k], attention.inputs[k].name
        if x is None:
            missing.append(name)
            continue
        if not given:
            width = x.size(axis) if axis < x.dim() else 0
        given.append(name)
    if given and missing:
        raise ValueError(
            f"{' and '.join(given)} needs {' and '.join(missing)} as well; pass both, "
            "or neither"
        )
    return width


def check_dropout(dropout: float, seed: Tensor | None, heads: int) -> None:
    """Raises ValueError unless the rate is one and there is a seed for every head."""
    if not 0.0 < dropout <= 1.0:
        raise ValueError(f"dropout must be between 0 and 1, got {dropout}")
    if seed is None or seed.dtype != torch.int64 or seed.numel() != heads:
        got = "none" if seed is None else f"{seed.dtype} of shape {list(seed.shape)}"
        raise ValueError(
            f"dropout needs dropout_seed, one int64 for each of {heads} heads, got "
            f"{got}"
        )


def check_devices(graph: Graph, tensors: tuple[Tensor | None, ...]) -> None:
    """Raises ValueError unless the graph and all tensors are on one device."""
    if is_tracing():
        return
    devices = {graph.device, *(t.device for t in tensors if t is not None)}
    if len(devices) > 1:
        raise ValueError(
            "attention takes all its tensors from one device, got "
            f"{sorted(map(str, devices))}; move them with .to()"
        )
