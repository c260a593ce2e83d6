"""The linear maps of a layer and the inputs they take."""

from torch import Tensor
from torch_geometric.nn.dense.linear import Linear

from tempergat.ops.random import dropout

Features = Tensor


def make_projection(in_channels: int, out_channels: int, bias: bool) -> Linear:
    """A linear map as PyG's attention layers have it."""
    return Linear(in_channels, out_channels, bias, weight_initializer="glorot")


def project(lin: Linear, x: Features) -> Tensor:
    """A linear map of node features."""
    out: Tensor = lin(x)
    return out


def drop_features(x: Features, rate: float, seed: Tensor) -> Features:
    """Dropout on a layer's input, keyed by seed and element."""
    return dropout(x, rate, seed)
