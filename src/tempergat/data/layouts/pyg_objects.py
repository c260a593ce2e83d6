"""PyG objects as user graphs, copied into plain tensors in main memory."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, counted, first_line
from tempergat.data.dataset import MASKS, HowRead
from tempergat.data.layouts.arrays import native_numbers
from tempergat.data.layouts.pt_classes import SavedArray
from tempergat.data.user.edges import choose_edge_columns, edge_attributes
from tempergat.data.user.options import ReadOptions, in_python
from tempergat.data.user.splits import is_split_array, split_arrays
from tempergat.data.user.user_graph import UserGraph

# What is read of a graph. NumPy arrays under other names are left as they are.
_USED = ("x", "y", "edge_index", "edge_attr", "edge_weight", *MASKS)
# What PyG keeps for itself on a graph or a Batch.
_OF_PYG = ("num_nodes", "batch", "ptr")


def from_pyg(source: str, graph: Data | HeteroData, options: ReadOptions) -> UserGraph:
    """A copy of a PyG object, with the edge attributes that the options name.

    Edge attributes that are not asked for stay on the graph until it is hashed, because
    they are part of its fingerprint.

    Raises:
        UserError: The object is broken, holds tensors that numpy cannot hold, or has
            no such edge attribute.
    """
    data = _plain_graph(source, graph)
    read = UserGraph(
        data,
        keeps_direction=True,
        notes=_note_of_batch(source, graph),
        how_read=_how_read(data, options.target),
    )
    if isinstance(data, HeteroData):
        if options.edge_features or options.edge_weight:
            raise UserError(
                f"{source} has node types, where edge features and weights are not "
                "used; leave --edge-features and --edge-weight out "
                f"{in_python('edge_features', 'edge_weight')}"
            )
        return read
    ends = data.get("edge_index")
    if not isinstance(ends, Tensor) or ends.dim() != 2:
        # What is wrong with the edges is said where they are checked.
        return read
    names = [
        name
        for name in edge_attributes(data)
        if isinstance(data[name], Tensor) and data[name].dim() <= 2
    ]
    chosen = choose_edge_columns(
        source, names, lambda name: data[name].numpy(), options
    )
    return chosen.added_to(read)


def _how_read(data: Data | HeteroData, target: str | None) -> HowRead:
    """What holds the split, and what is not used but for edge columns."""
    split: tuple[str, ...] = ()
    unread: list[str] = []
    for store in data.stores:
        kind = store._key
        used = {"x", "edge_index", *_OF_PYG}
        if kind == target if target is not None else "y" in store:
            split = tuple(split_arrays(store))
            used |= {"y", *split}
        ends = store.get("edge_index")
        if isinstance(data, Data) and isinstance(ends, Tensor) and ends.dim() == 2:
            used |= {*edge_attributes(data)}
        of = f" of {'__'.join(kind) if isinstance(kind, tuple) else kind}"
        unread += [
            f"{n}{of if kind else ''}" for n, _ in store.items() if n not in used
        ]
    return HowRead(split=split, not_read=tuple(unread))


def _note_of_batch(source: str, graph: Data | HeteroData) -> tuple[str, ...]:
    # PyG keeps the number of joined graphs apart from the attributes.
    joined = getattr(graph, "_num_graphs", None)
    if not isinstance(joined, int):
        return ()
    return (
        f"{source} is a Batch of {counted(joined, 'graph')}, which are read as one "
        "graph of unconnected parts",
    )


def _plain_graph(source: str, graph: Data | HeteroData) -> Data | HeteroData:
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
        where = "" if store._key is None else f" of {store._key}"
        for name, value in list(store.items()):
            if isinstance(value, np.ndarray | SavedArray) and name in _USED:
                array = _plain_array(f"{source}: {name}{where}", value)
                store[name] = torch.from_numpy(array)
            elif isinstance(value, Tensor):
                tensor = value.cpu() if value.is_cuda else value
                store[name] = _plain_tensor(source, name, where, tensor)
    return data


def _plain_array(where: str, value: np.ndarray | SavedArray) -> np.ndarray:
    if isinstance(value, SavedArray):
        try:
            value = value.array()
        except Exception as error:
            # A damaged file can hold anything in place of a shape or a type.
            raise UserError(
                f"{where} is {first_line(error)}; save it as a tensor"
            ) from error
    # A copy, because torch wants to be able to write.
    return native_numbers(where, value).copy()


def _plain_tensor(source: str, name: str, where: str, tensor: Tensor) -> Tensor:
    """The tensor without gradients, in a type and a layout that numpy has too.

    Raises:
        UserError: It has another layout, or does not hold plain numbers.
    """
    may_be_sparse = name not in ("edge_index", "y") and not is_split_array(name)
    is_sparse = may_be_sparse and tensor.layout == torch.sparse_csr
    if tensor.layout != torch.strided and not is_sparse:
        raise UserError(
            f"{source}: {name}{where} has layout {tensor.layout}; make it dense"
            + (" or sparse CSR" if may_be_sparse else "")
        )
    tensor = tensor.detach()
    if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64):
        values = (tensor.values() if is_sparse else tensor).numpy()
        native_numbers(f"{source}: {name}{where}", values)
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
