"""PyG objects as plain copies in main memory."""

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, first_line
from tempergat.data.dataset import MASKS


def plain_graph(source: str, graph: Data | HeteroData) -> Data | HeteroData:
    """A copy of a PyG object with plain tensors in main memory.

    Raises:
        UserError: The object is broken, or holds tensors that numpy cannot hold.
    """
    kind = HeteroData if isinstance(graph, HeteroData) else Data
    try:
        # A damaged file may yield an object that lacks its inner parts.
        data: Data | HeteroData = kind.from_dict(graph.to_dict())
    except Exception as error:
        raise UserError(
            f"{source} holds a broken {type(graph).__name__} ({first_line(error)}); "
            "save it again"
        ) from error
    for store in data.stores:
        for name, tensor in list(store.items()):
            if isinstance(tensor, Tensor):
                where = "" if store._key is None else f" of {store._key}"
                tensor = tensor.cpu() if tensor.is_cuda else tensor
                store[name] = _plain_tensor(source, name, where, tensor)
    return data


def _plain_tensor(source: str, name: str, where: str, tensor: Tensor) -> Tensor:
    """The tensor without gradients, in a type and a layout that numpy has too.

    Raises:
        UserError: It has another layout, or does not hold plain numbers.
    """
    may_be_sparse = name not in ("edge_index", "y", *MASKS)
    is_sparse = may_be_sparse and tensor.layout == torch.sparse_csr
    if tensor.layout != torch.strided and not is_sparse:
        raise UserError(
            f"{source}: {name}{where} has layout {tensor.layout}; make it dense"
            + (" or sparse CSR" if may_be_sparse else "")
        )
    tensor = tensor.detach()
    if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64):
        tensor = tensor.long()
    elif tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    try:
        (tensor.values() if is_sparse else tensor).numpy()
    except (TypeError, RuntimeError) as error:
        raise UserError(
            f"{source}: {name}{where} is a tensor of {tensor.dtype} on "
            f"{tensor.device}, which numpy cannot hold; save it as float32 or "
            "int64, or leave it out"
        ) from error
    return tensor
