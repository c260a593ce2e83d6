"""The fused attention ops, registered with torch once for all devices."""

from torch import Tensor

from tempergat.ops.graph import Graph


def refusal(backend: str, graph: Graph, z: Tensor) -> str | None:
    """Why a fused backend cannot serve a call; None when it can."""
    return f"the {backend} kernels are not part of this build"
