"""Processed graphs on disk, as arrays that are mapped into memory when opened.

A graph is a folder with one `.npy` file per array and `graph.json`, which names them.
The folder is written under another name and renamed, so that it is complete or absent.
Arrays are opened copy-on-write: they take no memory until they are used, and a change
to them never reaches the file.

The checksums of all arrays are verified when a graph is opened for the first time.
Then `verified.json` notes the size and the time of the last change of every file.
While they stay the same, the graph opens without being read, in well under a second at
any size; headers and lengths are still checked. Once a file has changed, everything is
verified again. What changes a file without a new time, like a failing disk, is not
noticed: delete `verified.json` to have all checksums verified.
"""

import contextlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, write_array, write_into
from tempergat.data.dataset import (
    SPARSE_PARTS,
    hash_array,
    node_counts,
    tensor_parts,
    tensors,
)
from tempergat.data.features import as_tensor, csr_tensor
from tempergat.data.formats.graphs import are_widened

_VERSION = 1
_INDEX = "graph.json"
_STAMP = "verified.json"
# What a file that someone else wrote can cause.
_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
    # torch refuses a broken sparse matrix.
    RuntimeError,
)


def write_processed(folder: Path, data: Data | HeteroData) -> None:
    """Writes a graph, replacing an older one. The caller holds the lock."""
    staging = folder.with_name(f".{folder.name}")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        columns: dict[str, int] = {}
        listed: dict[str, dict[str, str]] = {}
        for name, tensor in tensors(data, in_order=False):
            if tensor.layout == torch.sparse_csr:
                columns[name] = tensor.shape[1]
            for part, values in tensor_parts(name, tensor):
                array, file = values.numpy(), f"{len(listed):02d}.npy"
                write_array(staging / file, array)
                listed[part] = {"file": file, "sha256": hash_array(array)}
        index = {
            "version": _VERSION,
            "num_nodes": node_counts(data),
            "num_columns": columns,
            "arrays": listed,
        }
        write_into(staging, _INDEX, json.dumps(index, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(staging, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def is_verified(folder: Path) -> bool:
    """Whether no file has changed since all checksums were verified."""
    try:
        noted = json.loads((folder / _STAMP).read_text())
        return bool(noted == _file_times(folder))
    except _UNREADABLE:
        return False


def note_verified(folder: Path) -> None:
    """Notes that the checksums of all files are right as they are now."""
    # A folder that cannot be written to is verified every time.
    with contextlib.suppress(OSError, UserError):
        write_into(folder, _STAMP, json.dumps(_file_times(folder)))


def _file_times(folder: Path) -> dict[str, list[int]]:
    files = sorted(path for path in folder.iterdir() if path.name != _STAMP)
    infos = {path.name: path.stat() for path in files if not path.name.startswith(".")}
    return {name: [s.st_size, s.st_mtime_ns] for name, s in infos.items()}


def open_processed(
    folder: Path, verify: bool = True
) -> tuple[Data | HeteroData, dict[str, str]] | None:
    """Opens a processed graph.

    Args:
        folder: Its folder.
        verify: Whether to verify the checksum of every array, which reads them all: a
            few seconds for each gigabyte.

    Returns:
        The graph and the hashes of its arrays; None where there is none, or it is
        damaged or from another version.
    """
    try:
        index = json.loads((folder / _INDEX).read_text())
        if index["version"] != _VERSION:
            return None
        num_nodes, columns = _counts(index["num_nodes"]), _counts(index["num_columns"])
        arrays, hashes = {}, {}
        for name, entry in index["arrays"].items():
            # A name of a file in the folder, never a path that leads out of it.
            path = folder / Path(entry["file"]).name
            arrays[name] = np.load(path, mmap_mode="c", allow_pickle=False)
            hashes[name] = entry["sha256"]
        if verify:
            with ThreadPoolExecutor() as threads:
                seen = threads.map(hash_array, arrays.values())
                if dict(zip(arrays, seen, strict=True)) != hashes:
                    return None
        return _graph_of(arrays, num_nodes, columns), hashes
    except _UNREADABLE:
        return None


def _graph_of(
    arrays: dict[str, np.ndarray], num_nodes: dict[str, int], columns: dict[str, int]
) -> Data | HeteroData:
    """The graph of arrays by the names that `tensors` and `tensor_parts` give."""
    data: Data | HeteroData = Data() if num_nodes.keys() == {""} else HeteroData()

    def store(owner: str) -> BaseStorage:
        if isinstance(data, Data):
            return data
        return data[tuple(owner.split("/")) if "/" in owner else owner]

    for kind, count in num_nodes.items():
        store(kind).num_nodes = count
    for name, count in columns.items():
        owner, attribute = name.rsplit(".", 1)
        indptr, indices, values = (arrays.pop(f"{name}.{p}") for p in SPARSE_PARTS)
        store(owner)[attribute] = csr_tensor(indptr, indices, values, count)
    edges = [array for name, array in arrays.items() if name.endswith(".edge_index")]
    widen = are_widened(sum(array.shape[1] for array in edges))
    for name, array in arrays.items():
        owner, attribute = name.rsplit(".", 1)
        is_index = array.dtype.kind in "iu"
        array = array.astype(np.int64, copy=False) if widen and is_index else array
        store(owner)[attribute] = as_tensor(array)
    return data


def _counts(value: dict[str, int]) -> dict[str, int]:
    if not all(type(count) is int and count >= 0 for count in value.values()):
        raise ValueError("a number of nodes or columns is no such number")
    return value
