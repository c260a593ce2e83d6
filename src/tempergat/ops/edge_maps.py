"""Products of nodes with the linear map of edge features.

Attention by dot products never projects an edge: what belongs to the map is computed
once per node, because ``<q, W x> = <W^T q, x>`` and ``sum a W x = W sum a x``.
"""

from torch import Tensor

from tempergat.ops.reference import at_least_float32


def pull_back(x_THC: Tensor, edge_map_HCD: Tensor) -> Tensor:
    """``edge_map^T x`` of every node and head, [T, H, D]."""
    x_HTC = at_least_float32(x_THC).transpose(0, 1)
    return x_HTC.matmul(edge_map_HCD).transpose(0, 1)


def push(sum_THD: Tensor, edge_map_HCD: Tensor) -> Tensor:
    """``edge_map sum`` of every node and head, [T, H, C]."""
    return sum_THD.transpose(0, 1).matmul(edge_map_HCD.mT).transpose(0, 1)


def add_push(out_THC: Tensor, sum_THD: Tensor, edge_map_HCD: Tensor) -> None:
    """Adds ``edge_map sum`` to what every node and head has, in place."""
    if out_THC.dtype == sum_THD.dtype:
        sum_HTD, map_HDC = sum_THD.transpose(0, 1), edge_map_HCD.mT
        out_THC.transpose(0, 1).baddbmm_(sum_HTD, map_HDC)
    else:
        out_THC += push(sum_THD, edge_map_HCD)


def outer(x_THC: Tensor, sum_THD: Tensor) -> Tensor:
    """The sum over nodes of the outer products of two tables, [H, C, D]."""
    x_HCT = at_least_float32(x_THC).permute(1, 2, 0)
    return x_HCT.matmul(sum_THD.transpose(0, 1))
