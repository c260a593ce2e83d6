"""The linear maps of a layer and the inputs they take."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn.dense.linear import Linear

from tempergat.ops import sparse
from tempergat.ops.dropout import dropout
from tempergat.ops.graph import graph_cache
from tempergat.ops.sparse import SparseFeatures

Features = Tensor | SparseFeatures


def make_projection(in_channels: int, out_channels: int, bias: bool) -> Linear:
    """A linear map as PyG's attention layers have it."""
    return Linear(in_channels, out_channels, bias, weight_initializer="glorot")


def as_features(x: Features) -> Features:
    """Torch's own sparse matrices as sparse features, sorted once per tensor."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        features: SparseFeatures = graph_cache.get(
            x, "features", lambda: SparseFeatures.from_torch(x)
        )
        return features
    return x


class Together:
    """Node features and all linear maps of them, by one product that reads them once.

    Args:
        x: The features.
        lins: The maps.
    """

    def __init__(self, x: Tensor, lins: Sequence[Linear]) -> None:
        out = x @ torch.cat([lin.weight for lin in lins]).t()
        parts = torch.split(out, [lin.out_channels for lin in lins], dim=-1)
        self._parts: dict[Linear, Tensor] = dict(zip(lins, parts, strict=True))

    def project(self, lin: Linear) -> Tensor:
        """What one of the maps makes of them."""
        part = self._parts[lin]
        return part if lin.bias is None else part + lin.bias


Projectable = Features | Together


def project(lin: Linear, x: Projectable) -> Tensor:
    """A linear map of node features."""
    if isinstance(x, Together):
        return x.project(lin)
    if isinstance(x, SparseFeatures):
        if lin.in_channels <= 0:
            # A lazy layer takes its width from the first tensor it is called with.
            lin(torch.empty(0, x.size(-1), device=x.device, dtype=x.dtype))
        return sparse.linear(x, lin.weight, lin.bias)
    out: Tensor = lin(x)
    return out


def drop_features(x: Features, rate: float, seed: Tensor) -> Features:
    """Dropout on a layer's input, keyed by seed and (stored) element."""
    if isinstance(x, SparseFeatures):
        return x.dropout(rate, seed)
    return dropout(x, rate, seed)
