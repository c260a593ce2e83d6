"""Checks of what an attention is called with.

Kernels trust the shapes: a wrong one would read outside of a tensor.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Parameter

from tempergat.ops.calls import Attention, Input, repeat_edges
from tempergat.ops.graphs.graph import Graph
from tempergat.ops.torch_internals import is_tracing

# Types of what a call is usually given: tensors, or nothing.
_USUAL = frozenset((Tensor, Parameter, type(None)))


def checked_inputs(
    attention: Attention,
    graph: Graph,
    inputs: tuple[Tensor | None, ...],
    traced: bool,
) -> tuple[Tensor | None, ...]:
    """The inputs, with those of edges for every head and for one copy or for all.

    Args:
        attention: The attention.
        graph: The graph.
        inputs: The attention's inputs.
        traced: Whether the call is being traced.

    Raises:
        TypeError: These are no graph and no tensors.
        ValueError: A shape does not fit the graph, the features or the others.
    """
    if not isinstance(graph, Graph):
        raise TypeError(
            f"an attention takes a Graph, got {type(graph).__name__}; make one with "
            "tempergat.Graph(edge_index, num_nodes)"
        )
    if traced or not _USUAL.issuperset(map(type, inputs)):
        for x, spec in zip(inputs, attention.inputs, strict=True):
            if x is not None and not isinstance(x, Tensor):
                raise TypeError(
                    f"{spec.name} must be a tensor, got {x!r:.60}; use torch.as_tensor"
                )
    z, name = inputs[0], attention.inputs[0].name
    if z is None or z.dim() != 3:
        raise ValueError(
            f"{name} must have shape [{graph.num_src}, heads, channels], got "
            f"{None if z is None else list(z.shape)}"
        )
    _, heads, channels = z.shape
    if inputs[-2] is not None or inputs[-1] is not None:
        inputs = *inputs[:-2], *(_by_head(x, heads) for x in inputs[-2:])
    # A compiler would specialise on the sizes that are compared.
    if not traced:
        sizes = {
            "S": graph.num_src,
            "T": graph.num_dst,
            "E": graph.num_all_edges,
            "H": heads,
            "C": channels,
            "D": _common_width(attention, inputs) if attention.width_at else 0,
        }
        for x, spec, shape_of in zip(
            inputs, attention.inputs, attention.shape_of, strict=True
        ):
            if x is None:
                if spec.optional:
                    continue
            elif (
                x.shape == shape_of(sizes)
                or (spec.shape == "H" and x.dim() == 0)
                or _of_one_copy(x, spec, shape_of(sizes), graph.copies)
            ):
                continue
            raise ValueError(
                f"{spec.name} must have shape {list(shape_of(sizes))}, to fit the "
                f"graph and the features, got {None if x is None else list(x.shape)}"
            )
    return inputs if graph.copies == 1 else _fit_edges(attention, graph, inputs)


def _by_head(x: Tensor | None, heads: int) -> Tensor | None:
    """One number per edge, given to every head."""
    return x if x is None or x.dim() != 1 else x.unsqueeze(-1).expand(-1, heads)


def _of_one_copy(x: Tensor, spec: Input, shape: tuple[int, ...], copies: int) -> bool:
    """Whether x has the edges of one copy of a repeated graph."""
    if copies == 1 or not spec.is_of_edges:
        return False
    return x.shape[1:] == shape[1:] and x.size(0) * copies == shape[0]


def _fit_edges(
    attention: Attention, graph: Graph, inputs: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """The inputs, with those of edges all of one copy of the graph, or all of every."""
    given = [x for k in attention.edges_at if (x := inputs[k]) is not None]
    # Not a set: a compiler cannot hash a size that it does not know.
    if all(x.size(0) == given[0].size(0) for x in given[1:]):
        return inputs
    return tuple(
        repeat_edges(x, graph) if spec.is_of_edges else x
        for x, spec in zip(inputs, attention.inputs, strict=True)
    )


def _common_width(attention: Attention, inputs: tuple[Tensor | None, ...]) -> int:
    """The size that the letter D stands for: that of the first input which has it."""
    width, absent = None, False
    for k, axis in attention.width_at:
        x = inputs[k]
        if x is None:
            absent = True
        elif width is None:
            width = x.size(axis) if axis < x.dim() else 0
    if width is None:
        return 0
    if absent:
        names: dict[bool, list[str]] = {True: [], False: []}
        for k, _ in attention.width_at:
            names[inputs[k] is not None].append(attention.inputs[k].name)
        raise ValueError(
            f"{' and '.join(names[True])} needs {' and '.join(names[False])} as well; "
            "pass both, or neither"
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
