"""Fused attention on the CPU."""

from torch import Tensor

from tempergat.ops.graph import Graph


def refusal(graph: Graph, z: Tensor) -> str | None:
    """Why the CPU kernels cannot serve a call; None when they can."""
    return "the CPU kernels are not part of this build"
