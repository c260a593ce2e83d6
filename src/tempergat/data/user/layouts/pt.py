"""Reads .pt files: PyG objects that torch saved."""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import (
    AttrType,
    BaseStorage,
    EdgeStorage,
    GlobalStorage,
    NodeStorage,
)

from tempergat.base import UserError, explain_unreadable, first_line
from tempergat.data.features import without_beta_warning
from tempergat.data.user.layouts.pyg_objects import plain_graph


def _plain_dict(_factory: Any) -> dict[Any, Any]:
    """Replaces a defaultdict, which torch cannot fill."""
    return {}


# The classes a saved Data or HeteroData consists of. They hold data and run nothing.
_PARTS_OF_GRAPHS: list[Any] = [
    Data,
    HeteroData,
    DataEdgeAttr,
    DataTensorAttr,
    BaseStorage,
    NodeStorage,
    EdgeStorage,
    GlobalStorage,
    # PyG caches which attributes belong to nodes or edges.
    AttrType,
    (_plain_dict, "collections.defaultdict"),
]


def read_pt(path: Path) -> Data | HeteroData:
    """Reads a saved PyG object without running code.

    Raises:
        UserError: The file is damaged, or holds anything else.
    """
    try:
        with explain_unreadable(path), without_beta_warning(), _loadable_graphs():
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
    if not isinstance(value, Data | HeteroData):
        raise UserError(
            f"{path} holds a {type(value).__name__}; save a PyG Data or HeteroData"
        )
    return plain_graph(str(path), value)


@contextmanager
def _loadable_graphs() -> Iterator[None]:
    """Lets torch load PyG's graphs, besides what it was allowed to load before."""
    before = torch.serialization.get_safe_globals()
    try:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(
            [part for part in before if part is not defaultdict] + _PARTS_OF_GRAPHS
        )
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _reason(error: BaseException) -> str:
    """Why torch refuses a file, without its advice to run the code in the file."""
    text = str(error)
    named = re.search(r"GLOBAL (\S+)", text)
    if named:
        return f"it names {named[1]}"
    if text.startswith("Weights only load failed"):
        return "it is not an archive of plain tensors"
    return first_line(error)
