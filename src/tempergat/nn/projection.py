"""The linear maps of a layer."""

from torch import Tensor
from torch_geometric.nn.dense.linear import Linear

from tempergat.ops.random import dropout

Features = Tensor


class Projection(Linear):  # type: ignore[misc]
    """PyG's linear layer."""

    def forward(self, x: Features) -> Tensor:
        out: Tensor = super().forward(x)
        return out


def drop_features(x: Features, rate: float, seed: Tensor) -> Features:
    """Dropout on a layer's input, keyed by seed and element."""
    return dropout(x, rate, seed)
