"""Reads .pt files: PyG graphs that torch saved, alone or as a dataset of one graph."""

import re
import warnings
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, counted, explain_unreadable, first_line
from tempergat.data.layouts.pt_classes import loadable_graphs
from tempergat.data.layouts.pyg_objects import from_pyg
from tempergat.data.user.options import ReadOptions
from tempergat.data.user.user_graph import UserGraph


def read_pt(path: Path, options: ReadOptions) -> UserGraph:
    """Reads a saved PyG graph without running code.

    The file may hold a `Data`, a `HeteroData`, a `Batch`, which is read as one graph of
    unconnected parts, or what `InMemoryDataset.save` writes for one graph.

    Args:
        path: The file.
        options: Which edge attributes are used.

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
    return from_pyg(str(path), _only_graph(path, value), options)


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
        if isinstance(graph, dict):
            kind = value[2] if len(value) == 3 else Data
            graph = _from_dict(path, graph, kind)
        value = graph
    if isinstance(value, list) and any(isinstance(one, Data) for one in value):
        _refuse_several(path, f"a list of {counted(len(value), 'graph')}")
    if not isinstance(value, Data | HeteroData):
        raise UserError(
            f"{path} holds a {type(value).__name__}; save a PyG Data or HeteroData"
        )
    return value


def _from_dict(path: Path, graph: dict[Any, Any], kind: Any) -> Data | HeteroData:
    if kind not in (Data, HeteroData):
        raise UserError(f"{path} holds a dict; save a PyG Data or HeteroData")
    try:
        made: Data | HeteroData = kind.from_dict(graph)
    except Exception as error:
        # The dictionary can hold anything under any key.
        raise UserError(
            f"{path} holds a broken {kind.__name__} ({first_line(error)}); save it "
            "again"
        ) from error
    return made


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
