"""PyG objects, alone or in .pt files, as user graphs of plain tensors in memory."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, counted, explain_unreadable, first_line
from tempergat.data.dataset import MASKS, HowRead
from tempergat.data.formats.numpy_files import native_numbers
from tempergat.data.layouts.pt_classes import SavedArray, loadable_graphs
from tempergat.data.user.edges import (
    edge_attributes,
    with_edge_columns,
    without_edge_columns,
)
from tempergat.data.user.reading import Reading, UserGraph
from tempergat.data.user.splits import is_split_array, split_arrays

# What is read of a graph. NumPy arrays under other names are left as they are.
_USED = ("x", "y", "edge_index", "edge_attr", "edge_weight", *MASKS)
# What PyG keeps for itself on a graph or a Batch.
_OF_PYG = ("num_nodes", "batch", "ptr")


def read_pt(path: Path, reading: Reading) -> UserGraph:
    """Reads a saved PyG graph without running code.

    The file may hold a `Data`, a `HeteroData`, a `Batch`, which is read as one graph of
    unconnected parts, or what `InMemoryDataset.save` writes for one graph.

    Raises:
        UserError: The file is damaged, or holds anything else.
    """
    try:
        with explain_unreadable(path), loadable_graphs(), warnings.catch_warnings():
            # torch warns of archives that it then refuses.
            warnings.simplefilter("ignore")
            value = torch.load(path, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except Exception as error:
        # Any exception of torch's archive reader or unpickler can come out here.
        raise UserError(
            f"{path} is not a graph that can be loaded without running code "
            f"({_reason(error)}); save it with torch.save(data, path), data being a "
            "PyG Data or HeteroData of plain tensors"
        ) from error
    return from_pyg(_only_graph(path, value), reading)


def _only_graph(path: Path, value: Any) -> Data | HeteroData:
    """The graph in what torch loaded.

    Raises:
        UserError: There is none, or more than one.
    """
    if isinstance(value, tuple) and len(value) in (2, 3):
        # As InMemoryDataset saves it: the graph, where to cut it, and its class, which
        # older versions of PyG left out.
        graph, slices = value[:2]
        if slices is not None:
            _refuse_several(path, "the graphs of a dataset")
        kind = value[2] if len(value) == 3 else Data
        value = graph
        if isinstance(graph, dict) and kind in (Data, HeteroData):
            try:
                value = kind.from_dict(graph)
            except Exception as error:
                # The dictionary can hold anything under any key.
                raise UserError(
                    f"{path} holds a broken {kind.__name__} ({first_line(error)}); "
                    "save it again"
                ) from error
    if isinstance(value, list) and any(isinstance(one, Data) for one in value):
        _refuse_several(path, f"a list of {counted(len(value), 'graph')}")
    if not isinstance(value, Data | HeteroData):
        raise UserError(
            f"{path} holds a {type(value).__name__}; save a PyG Data or HeteroData"
        )
    return value


def _refuse_several(path: Path, what: str) -> None:
    raise UserError(
        f"{path} holds {what}, not a single graph; save the one you want with "
        "torch.save(dataset[0], path), or all as one graph with "
        "torch.save(Batch.from_data_list(list(dataset)), path)"
    )


def _reason(error: BaseException) -> str:
    """Why torch refuses a file, without its advice to run the code in the file."""
    text = str(error)
    named = re.search(r"GLOBAL (\S+)", text)
    if named:
        return f"it names {named[1]}"
    if text.startswith("Weights only load failed"):
        return "it is not an archive of plain tensors"
    return first_line(error)


def from_pyg(graph: Data | HeteroData, reading: Reading) -> UserGraph:
    """A copy of a PyG object, with the edge attributes that the options name.

    Edge attributes that are not asked for stay on the graph until it is hashed, because
    they are part of its fingerprint.

    Raises:
        UserError: The object is broken, holds tensors that numpy cannot hold, or has
            no such edge attribute.
    """
    source = reading.name
    data = _plain_graph(source, graph)
    how_read = _how_read(data, reading.options.target)
    read = UserGraph(data, keeps_direction=True, how_read=how_read)
    # PyG keeps the number of joined graphs apart from the attributes.
    joined = getattr(graph, "_num_graphs", None)
    if isinstance(joined, int):
        reading.notes.append(
            f"{source} is a Batch of {counted(joined, 'graph')}, which are read as one "
            "graph of unconnected parts"
        )
    if isinstance(data, HeteroData):
        unused = [
            f"{name} of {'__'.join(kind)}"
            for kind in data.edge_types
            for name in data[kind]
            if name in ("edge_attr", "edge_weight")
        ]
        without_edge_columns(source, unused, reading)
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
    return with_edge_columns(
        read, source, names, lambda name: data[name].numpy(), reading
    )


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
