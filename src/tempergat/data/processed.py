"""Processed graphs on disk, as arrays that are mapped into memory when opened.

A graph is a folder with one `.npy` file per array and `graph.json`, which names them.
The folder is written under another name and renamed, so that it is complete or absent.
Arrays are opened copy-on-write: they take no memory until they are used, and a change
to them never reaches the file. Their checksums are verified every time.
"""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tempergat.data.dataset import hash_array
from tempergat.data.formats.raw_graph import Graph

_VERSION = 1
_INDEX = "graph.json"
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
)


def write_processed(folder: Path, graph: Graph) -> None:
    """Writes a graph, replacing an older one. The caller holds the lock."""
    staging = folder.with_name(f".{folder.name}")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        listed = {}
        for number, (name, array) in enumerate(graph.arrays.items()):
            file = f"{number:02d}.npy"
            with open(staging / file, "wb") as stream:
                np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
            listed[name] = {"file": file, "sha256": hash_array(array)}
        index = {
            "version": _VERSION,
            "num_nodes": graph.num_nodes,
            "num_columns": graph.num_columns,
            "arrays": listed,
        }
        with open(staging / _INDEX, "w") as text:
            json.dump(index, text, indent=1)
            text.flush()
            os.fsync(text.fileno())
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(staging, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def open_processed(folder: Path) -> Graph | None:
    """Opens a processed graph and verifies the checksum of every array.

    This reads all arrays once, which takes a few seconds for each gigabyte.

    Returns:
        The graph with its verified hashes; None where there is none, or it is damaged
        or from another version.
    """
    try:
        index = json.loads((folder / _INDEX).read_text())
        if index["version"] != _VERSION:
            return None
        graph = Graph({}, _counts(index["num_nodes"]), _counts(index["num_columns"]))
        recorded = {}
        for name, entry in index["arrays"].items():
            # A name of a file in the folder, never a path that leads out of it.
            path = folder / Path(entry["file"]).name
            graph.arrays[name] = np.load(path, mmap_mode="c", allow_pickle=False)
            recorded[name] = entry["sha256"]
        with ThreadPoolExecutor() as threads:
            seen = threads.map(hash_array, graph.arrays.values())
            graph.hashes = dict(zip(graph.arrays, seen, strict=True))
    except _UNREADABLE:
        return None
    return graph if graph.hashes == recorded else None


def _counts(value: dict[str, int]) -> dict[str, int]:
    if not all(type(count) is int and count >= 0 for count in value.values()):
        raise ValueError("a number of nodes or columns is no such number")
    return value
