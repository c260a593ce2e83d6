"""The attention ops on a GPU, checked against the reference before they are timed."""

import functools
from typing import Any

import torch
from torch import Tensor

from benchmarks.graphs import SIZES, Size, power_law_graph
from tempergat import ops
from tempergat.ops import Graph
from tempergat.ops.kinds import registered


def load(name: str) -> Graph:
    edge_index, num_nodes = power_law_graph(name, "cuda")
    graph = Graph(edge_index, num_nodes, self_loops=True, check=False)
    del edge_index
    _ = graph.by_target, graph.by_source
    torch.cuda.empty_cache()
    return graph


def draw(
    kind: str, graph: Graph, heads: int, channels: int, dtype: Any
) -> list[Tensor]:
    """Arguments of the op, followed by the gradient of its output."""
    make = functools.partial(torch.randn, device="cuda")
    z = make(graph.num_src, heads, channels).to(dtype)
    if kind == "gat":
        rest = [make(heads, channels) * channels**-0.5 for _ in range(2)]
    else:
        rest = [make(graph.num_dst, heads, channels).to(dtype), make(heads, channels)]
    leaves = [x.requires_grad_() for x in (z, *rest)]
    return [*leaves, make(graph.num_dst, heads, channels).to(dtype)]


def results(call: Any, graph: Graph, tensors: list[Tensor]) -> list[Tensor]:
    leaves = [x.detach().requires_grad_() for x in tensors[:-1]]
    out = call(graph, *leaves)
    return [out.detach(), *torch.autograd.grad(out, leaves, tensors[-1].to(out.dtype))]


def by_torch(kind: str) -> Any:
    """The reference of an attention, without edge features and dropout."""
    attention = registered(kind)
    numbers = tuple(attention.settings.values())

    def call(graph: Graph, *leaves: Tensor) -> Tensor:
        inputs = (*leaves, *[None] * (len(attention.inputs) - len(leaves)))
        return attention.by_reference(graph, inputs, numbers, 0.0, None)[0]

    return call


def check(kind: str, dtype: Any, heads: int, channels: int) -> str:
    """Empty if the kernels are as exact as PyTorch in this precision, else the worst.

    On a small graph with cut rows, against float64; the measure is PyTorch's own error
    with everything in that precision.
    """
    SIZES["check"] = Size(3000, 300_000, 0)
    graph = load("check")
    tensors = draw(kind, graph, heads, channels, dtype)
    if ops.explain(graph, tensors[0]).backend != "gpu":
        return "another backend served"

    fast = results(lambda g, *a: getattr(ops, kind)(g, *a)[0], graph, tensors)
    exact = results(by_torch(kind), graph, [x.double() for x in tensors])
    same = results(by_torch(kind), graph, [x.to(dtype) for x in tensors])
    for number, (a, b, truth) in enumerate(zip(fast, same, exact, strict=True)):
        error, allowed = ((x.double() - truth).norm() / truth.norm() for x in (a, b))
        if not error <= 2 * allowed + 4 * torch.finfo(torch.float32).eps:
            return f"result {number}: error {error:.2g}, PyTorch's {allowed:.2g}"
    return ""


def check_at_size(kind: str, graph: Graph, heads: int, channels: int) -> str:
    """Empty if float32 agrees with the float32 reference on a full-size graph.

    Among millions of sums one may lie so near 0 that rounding decides on which side of
    LeakyReLU's bend it is; one of three draws must agree.
    """
    worst = float("nan")
    for _ in range(3):
        tensors = draw(kind, graph, heads, channels, torch.float32)
        fast = results(lambda g, *a: getattr(ops, kind)(g, *a)[0], graph, tensors)
        same = results(by_torch(kind), graph, tensors)
        pairs = zip(fast, same, strict=True)
        # Unlike Python's, torch's maximum of a NaN and a number is NaN.
        worst = float(torch.stack([(a - b).norm() / b.norm() for a, b in pairs]).max())
        if worst < 1e-5:
            return ""
    return f"differs from the reference by {worst:.2g}"
