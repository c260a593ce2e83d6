"""User graphs: a folder of tables, an .npz file, a .pt file or a PyG object.

A folder holds `nodes.csv` and `edges.csv` (or .parquet). In `nodes`, the column
`label` is the class (a number from 0 or a word; empty, nan or -1 where unknown), `id`
names the node (the row number from 0 where there is none), `split` is train, val, test
or empty, and every other column is a feature. In `edges`, the columns `source` and
`target` name nodes; others are not used. Instead of the column, the split may be a
table `split.csv` with `id` and `split`.

An .npz holds `edge_index` (2 x edges), `x`, `y`, and may hold `train_mask`,
`val_mask` and `test_mask`. A .pt holds a PyG `Data` or `HeteroData` with the same
attributes, and is read without running code.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import (
    AttrType,
    BaseStorage,
    EdgeStorage,
    GlobalStorage,
    NodeStorage,
)

from tempergat.base import UserError, explain_unreadable
from tempergat.data.dataset import MASKS, Dataset, hash_tensors
from tempergat.data.features import without_beta_warning
from tempergat.data.splits import GraphWithSplits
from tempergat.data.user.folder import UserGraph, read_folder
from tempergat.data.user.splits import check_masks, given_masks, numbered_splits
from tempergat.data.user.validate import normalise

USER_SUFFIXES = (".pt", ".npz")
# Name of a graph that is given as a PyG object, which has no name.
OBJECT_NAME = "graph"


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


def open_user_graph(
    graph: Path | Data | HeteroData,
    *,
    directed: bool = True,
    target: str | None = None,
    labelled: bool = True,
    use_masks: bool = True,
) -> GraphWithSplits:
    """Reads and checks a user graph.

    Args:
        graph: A folder of tables, an `.npz`, a `.pt`, or a PyG object, which is not
            changed.
        directed: Whether edges keep their direction; False adds the reverse ones.
        target: Node type to classify, where several have labels.
        labelled: Whether the graph needs labels. Without, its labels and masks are
            not used.
        use_masks: Whether the masks of the graph are its splits; otherwise a split is
            made.

    Raises:
        UserError: The files are missing or damaged, or the graph contradicts itself.
    """
    if isinstance(graph, Path):
        name, origin, licence = str(graph), str(graph.resolve()), "the user's"
        read = read_user_graph(graph, labelled=labelled)
    else:
        name, origin, licence = OBJECT_NAME, "a PyG object", "the user's"
        read = UserGraph(_plain_graph(name, graph))
    data = read.data
    kind = target_type(name, data, target)
    num_classes = normalise(name, data, kind, directed, labelled)
    unsplit = Dataset(
        name=name,
        data=data,
        target=kind,
        num_classes=num_classes,
        metric="accuracy",
        source=origin,
        fingerprint="",
        license=licence,
        node_ids=read.node_ids,
        class_names=read.class_names,
    )
    hashes = hash_tensors(data)
    if not labelled:
        empty = np.zeros(len(unsplit.store.y), dtype=bool)
        nobody = dict.fromkeys(MASKS, empty)
        return GraphWithSplits(unsplit, hashes, ["none"], lambda _: nobody)
    masks = given_masks(name, unsplit.store) if use_masks else {}
    numbered = numbered_splits(masks)
    splits = numbered or ([masks] if masks else [])

    def checked_masks(number: int) -> dict[str, np.ndarray]:
        check_masks(name, unsplit.store.y, splits[number])
        return {mask: value.numpy() for mask, value in splits[number].items()}

    words = "given with the graph"
    described = [f"{words}, number {number}" for number in range(len(numbered))]
    return GraphWithSplits(
        unsplit,
        hashes,
        described or [words] * len(splits),
        checked_masks,
        is_numbered=bool(numbered),
    )


def read_user_graph(
    path: Path, require_finite: bool = True, labelled: bool = True
) -> UserGraph:
    """Reads the files of a graph and checks each by itself.

    Args:
        path: A folder of tables, an `.npz` or a `.pt`.
        require_finite: Whether NaN and infinity in a table are refused.
        labelled: Whether there must be labels.

    Raises:
        UserError: They cannot be read.
    """
    with explain_unreadable(path):
        is_folder, is_file = path.is_dir(), path.is_file()
    if is_folder:
        return read_folder(path, require_finite, labelled)
    if not is_file:
        raise UserError(f"there is no file or folder {path}; check the path")
    if path.suffix == ".npz":
        return UserGraph(_read_npz(path, labelled))
    if path.suffix == ".pt":
        return UserGraph(_read_pt(path))
    raise UserError(
        f"{path} is neither a folder with nodes.csv and edges.csv nor a .npz or .pt "
        "file; save the graph as one of these"
    )


def _read_npz(path: Path, labelled: bool) -> Data:
    try:
        # Opened here, since numpy leaves a damaged file open.
        with explain_unreadable(path), open(path, "rb") as stream:
            opened = np.load(stream, allow_pickle=False)
            arrays = {name: opened[name] for name in opened.files}
    except UserError:
        raise
    except Exception as error:
        # A damaged archive can raise almost any exception in zipfile and numpy.
        raise UserError(
            f"{path} is not a readable .npz of plain arrays ({_first_line(error)}); "
            "save it again with numpy.savez"
        ) from error
    known = ("edge_index", "x", "y", *MASKS)
    for name in ("edge_index", "y") if labelled else ("edge_index", "x"):
        if name not in arrays:
            raise UserError(
                f"{path} has no array {name}, only {', '.join(arrays) or 'none'}; an "
                f".npz graph takes {', '.join(known)}"
            )
    unknown = sorted(set(arrays) - set(known))
    if unknown:
        raise UserError(
            f"{path} has an array {unknown[0]}, which is not known; an .npz "
            f"graph takes {', '.join(known)}"
        )
    data = Data()
    for name, array in arrays.items():
        if array.dtype.kind not in "iufb":
            raise UserError(
                f"{path}: {name} has type {array.dtype}; save it as numbers"
            )
        data[name] = torch.from_numpy(_native(array))
    return data


def _native(array: np.ndarray) -> np.ndarray:
    """The array in native byte order, without types that torch lacks."""
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _read_pt(path: Path) -> Data | HeteroData:
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
    return _plain_graph(str(path), value)


def _plain_graph(source: str, graph: Data | HeteroData) -> Data | HeteroData:
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
            f"{source} holds a broken {type(graph).__name__} ({_first_line(error)}); "
            "save it again"
        ) from error
    for store in data.stores:
        for name, tensor in list(store.items()):
            if isinstance(tensor, Tensor):
                where = "" if store._key is None else f" of {store._key}"
                tensor = tensor.cpu() if tensor.is_cuda else tensor
                store[name] = _plain_tensor(source, name, where, tensor)
    return data


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


def _reason(error: BaseException) -> str:
    """Why torch refuses a file, without its advice to run the code in the file."""
    text = str(error)
    named = re.search(r"GLOBAL (\S+)", text)
    if named:
        return f"it names {named[1]}"
    if text.startswith("Weights only load failed"):
        return "it is not an archive of plain tensors"
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__


def target_type(source: str, data: Data | HeteroData, target: str | None) -> str | None:
    """The node type to classify; None in a homogeneous graph.

    Raises:
        UserError: It is not clear which, or the one asked for has no labels.
    """
    if isinstance(data, Data):
        if target is not None:
            raise UserError(
                f"target is {target!r}, but {source} has no node types; leave it out"
            )
        return None
    labelled = [kind for kind in data.node_types if "y" in data[kind]]
    if target is None and len(labelled) == 1:
        return str(labelled[0])
    if target in labelled:
        return target
    listed = ", ".join(labelled) or "none"
    raise UserError(
        f"{source}: the node types with labels are {listed}, and target is {target!r}; "
        "give a y to one type, or choose with target"
    )
