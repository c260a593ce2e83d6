"""The linear maps of a layer and the inputs they take."""

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


def project(lin: Linear, x: Features) -> Tensor:
    """A linear map of node features."""
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
