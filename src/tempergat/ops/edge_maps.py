"""Products of nodes with the linear map of edge features.

Attention by dot products never projects an edge: what belongs to the map is computed
once per node, because ``<q, W x> = <W^T q, x>`` and ``sum a W x = W sum a x``.

Results are in the type of the map, in autocast too: it leaves operations alone that
write into a given tensor.
"""

import torch
from torch import Tensor


def pull_back(x_THC: Tensor, edge_map_HCD: Tensor) -> Tensor:
    """``edge_map^T x`` of every node and head, [T, H, D]."""
    x_HTC = x_THC.to(edge_map_HCD.dtype).transpose(0, 1)
    out_THD = edge_map_HCD.new_empty((*x_THC.shape[:2], edge_map_HCD.size(2)))
    torch.bmm(x_HTC, edge_map_HCD, out=out_THD.transpose(0, 1))
    return out_THD


def push(sum_THD: Tensor, edge_map_HCD: Tensor) -> Tensor:
    """``edge_map sum`` of every node and head, [T, H, C]."""
    out_THC = sum_THD.new_empty((*sum_THD.shape[:2], edge_map_HCD.size(1)))
    sum_HTD, map_HDC = sum_THD.transpose(0, 1), edge_map_HCD.mT
    torch.bmm(sum_HTD, map_HDC, out=out_THC.transpose(0, 1))
    return out_THC


def add_push(out_THC: Tensor, sum_THD: Tensor, edge_map_HCD: Tensor) -> None:
    """Adds ``edge_map sum`` to what every node and head has, in place."""
    if out_THC.dtype == sum_THD.dtype:
        sum_HTD, map_HDC = sum_THD.transpose(0, 1), edge_map_HCD.mT
        out_THC.transpose(0, 1).baddbmm_(sum_HTD, map_HDC)
    else:
        out_THC += push(sum_THD, edge_map_HCD)


def outer(x_THC: Tensor, sum_THD: Tensor) -> Tensor:
    """The sum over nodes of the outer products of two tables, [H, C, D]."""
    x_HCT = x_THC.to(sum_THD.dtype).permute(1, 2, 0)
    out_HCD = sum_THD.new_empty((*x_THC.shape[1:], sum_THD.size(2)))
    return torch.bmm(x_HCT, sum_THD.transpose(0, 1), out=out_HCD)
