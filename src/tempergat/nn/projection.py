"""The linear maps of a layer and the inputs they take."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear
from torch_geometric.nn.dense.linear import Linear

from tempergat.ops import dense, sparse
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


def many_models() -> bool:
    """Whether a torch.func transform runs a layer, for many models at once."""
    return (
        not torch.compiler.is_compiling()
        and torch._C._are_functorch_transforms_active()
    )


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """`torch.nn.functional.linear`, fit for many models at once."""
    return dense.linear(x, weight) if many_models() else linear(x, weight)


class Together:
    """Node features and all linear maps of them, by one product that reads them once.

    Args:
        x: The features.
        lins: The maps.
    """

    def __init__(self, x: Tensor, lins: Sequence[Linear]) -> None:
        out = dense.linear(x, torch.cat([lin.weight for lin in lins]))
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
    if many_models() and lin.in_channels > 0:
        product = dense.linear(x, lin.weight)
        return product if lin.bias is None else product + lin.bias
    out: Tensor = lin(x)
    return out


def drop_features(x: Features, rate: float, seed: Tensor) -> Features:
    """Dropout on a layer's input, keyed by seed and (stored) element."""
    if isinstance(x, SparseFeatures):
        return x.dropout(rate, seed)
    return dropout(x, rate, seed)
