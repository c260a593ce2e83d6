"""Products of nodes with the linear map of edge features.

Attention by dot products never projects an edge: what belongs to the map is computed
once per node, because ``<q, W x> = <W^T q, x>`` and ``sum a W x = W sum a x``.

Results are in the type of the map, in autocast too: it leaves operations alone that
write into a given tensor.
"""

import torch
from torch import Tensor

# Up to so many heads, one product with zeros between the heads is faster on a GPU.
_FEW_HEADS = 8


def pull_back(x_THC: Tensor, edge_map_HCD: Tensor) -> Tensor:
    """``edge_map^T x`` of every node and head, [T, H, D]."""
    x_THC = x_THC.to(edge_map_HCD.dtype)
    out_THD = edge_map_HCD.new_empty((*x_THC.shape[:2], edge_map_HCD.size(2)))
    if _in_one_product(x_THC):
        torch.mm(x_THC.flatten(1), _blocks(edge_map_HCD), out=out_THD.flatten(1))
    else:
        torch.bmm(x_THC.transpose(0, 1), edge_map_HCD, out=out_THD.transpose(0, 1))
    return out_THD


def add_push(out_THC: Tensor, sum_THD: Tensor, edge_map_HCD: Tensor) -> None:
    """Adds ``edge_map sum`` to what every node and head has, in place."""
    if out_THC.dtype != sum_THD.dtype:
        out_THC += pull_back(sum_THD, edge_map_HCD.mT)
    elif _in_one_product(out_THC):
        out_THC.flatten(1).addmm_(sum_THD.flatten(1), _blocks(edge_map_HCD.mT))
    else:
        sum_HTD, map_HDC = sum_THD.transpose(0, 1), edge_map_HCD.mT
        out_THC.transpose(0, 1).baddbmm_(sum_HTD, map_HDC)


def outer(x_THC: Tensor, sum_THD: Tensor) -> Tensor:
    """The sum over nodes of the outer products of two tables, [H, C, D]."""
    x_THC = x_THC.to(sum_THD.dtype)
    (_, heads, channels), width = x_THC.shape, sum_THD.size(2)
    if _in_one_product(x_THC):
        product = sum_THD.new_empty(heads * channels, heads * width)
        torch.mm(x_THC.flatten(1).t(), sum_THD.flatten(1), out=product)
        product = product.view(heads, channels, heads, width)
        return product.diagonal(dim1=0, dim2=2).permute(2, 0, 1)
    out_HCD = sum_THD.new_empty(heads, channels, width)
    return torch.bmm(x_THC.permute(1, 2, 0), sum_THD.transpose(0, 1), out=out_HCD)


def _in_one_product(x_THC: Tensor) -> bool:
    return x_THC.is_cuda and x_THC.size(1) <= _FEW_HEADS


def _blocks(map_HCD: Tensor) -> Tensor:
    """One matrix for all heads, [H * C, H * D]."""
    blocks: Tensor = torch.block_diag(*map_HCD)  # type: ignore[no-untyped-call]
    return blocks
