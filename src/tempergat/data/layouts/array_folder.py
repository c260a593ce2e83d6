"""Large user graphs: a folder of `.npy` files that are mapped into memory, not read.

The folder holds `edge_index.npy` (2 x edges, int32 or int64), `x.npy` (nodes x
features, float32 or float16) and `y.npy` (a whole number for each node, -1 where
unknown), and may hold `train_mask.npy`, `val_mask.npy` and `test_mask.npy` (bool; a
column for each of several splits). Edges are followed as they are listed, and repeated
ones are kept. If they are sorted by target, nothing is sorted for sampled training
either. Numbers of other types, or in another byte order, are converted in memory.

Labels and masks are read and checked whenever the folder is opened. So are edges and
features, and hashed, unless they are large: then what was found is noted in
`tempergat.json` with the size of both files and the times of their last change. While
these stay the same, neither is read.
"""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tempergat.base import (
    UserError,
    explain_unreadable,
    listed,
    require_memory,
    write_into,
)
from tempergat.data.dataset import MASKS, hash_array
from tempergat.data.formats.errors import GraphError
from tempergat.data.formats.graphs import are_widened
from tempergat.data.formats.numpy_files import native_numbers
from tempergat.data.tables.files import not_a_file
from tempergat.data.user.reading import NoLabels, Reading, UserGraph
from tempergat.data.user.validate import check_edges, require_finite

_NOTES = "tempergat.json"
_VERSION = 2
_REQUIRED = ("edge_index", "x", "y")
_MAPPED = ("edge_index", "x")
# Bytes that are checked and hashed in about a tenth of a second.
_LARGE = 1 << 26
_MAPPED_TYPES = {"edge_index": ("i4", "i8"), "x": ("f2", "f4", "f8")}
_GRAPH_SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".pt")
_SPLIT_NAME = re.compile(
    r"(?<![a-z])(train(ing)?|trn?|val(id(ation)?)?|dev|test(ing)?|splits?|folds?"
    r"|masks?)"
    r"(idx|ind(ex|ices)|ids?|masks?|nodes|set)?(?![a-z])"
)


def is_array_folder(folder: Path) -> bool:
    """Whether a folder has this layout; `edge_index.npy` may be missing by mistake."""
    with explain_unreadable(folder):
        if (folder / "edge_index.npy").is_file():
            return True
        if not any((folder / f"{name}.npy").is_file() for name in _REQUIRED):
            return False
        # Tables may have arrays beside them.
        return not any(
            entry.name.startswith(("nodes", "edges")) for entry in folder.iterdir()
        )


def read_array_folder(folder: Path, reading: Reading) -> UserGraph:
    """Reads labels and masks of a folder of this layout, and maps the rest.

    For a report, edges and features are checked even where that is noted.

    Raises:
        UserError: A file is missing, damaged or cut short, or contradicts another.
    """
    with warnings.catch_warnings():
        # torch warns of arrays that must not be written to. Mapped for writing, a file
        # larger than memory could not be opened.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        mapped = {name: torch.from_numpy(_typed(folder, name)) for name in _MAPPED}
    count = len(mapped["x"])
    data = Data(num_nodes=count, **mapped)
    known = None if reading.collect else _noted(folder)
    if known is None:
        known = _checked(folder, data)
    if are_widened(data.num_edges):
        data.edge_index = data.edge_index.long()
    if reading.labelled:
        for name, array in _read_labels(folder, count).items():
            data[name] = torch.from_numpy(array)
    _note_unread(folder, reading, MASKS[0] in data)
    return UserGraph(data, keeps_direction=True, mapped_hashes=known)


def _typed(folder: Path, name: str) -> np.ndarray:
    """The edges or the features, mapped where torch can use them as they are."""
    array = _mapped(folder / f"{name}.npy")
    is_index = name == "edge_index"
    shape = "(2, edges)" if is_index else "(nodes, features)"
    fits = array.ndim == 2 and (not is_index or array.shape[0] == 2)
    if not fits or array.dtype.kind not in ("iu" if is_index else "iufb"):
        raise UserError(
            f"{folder / name}.npy is {array.dtype} of shape {array.shape}; save "
            f"{'whole numbers' if is_index else 'numbers'} of shape {shape}"
        )
    if array.dtype.isnative and array.dtype.str[1:] in _MAPPED_TYPES[name]:
        return array
    wanted = np.int64 if is_index else np.float32
    require_memory(
        array.size * np.dtype(wanted).itemsize,
        f"converting {folder / name}.npy from {array.dtype}",
        f"save it as {'int32' if is_index else 'float32'}",
    )
    plain = native_numbers(f"{folder / name}.npy", array)
    with np.errstate(over="ignore"):
        return plain if plain.dtype.kind == "f" else plain.astype(wanted)


def _read_labels(folder: Path, count: int) -> dict[str, np.ndarray]:
    """The labels and masks, each with as many rows as there are nodes."""
    if not (folder / "y.npy").exists():
        raise NoLabels(f"{folder} has no y.npy; add it")
    given = [name for name in MASKS if (folder / f"{name}.npy").exists()]
    if given and len(given) < len(MASKS):
        missing = next(name for name in MASKS if name not in given)
        raise UserError(f"{folder} has masks, but no {missing}.npy; add it")
    arrays = {}
    for name in ("y", *given):
        path = folder / f"{name}.npy"
        array = _mapped(path)
        if array.shape[:1] != (count,):
            raise UserError(
                f"{path} has shape {array.shape}, but x.npy has {count} rows; give "
                "both one row for each node"
            )
        arrays[name] = native_numbers(str(path), array).copy()
    return arrays


def _mapped(path: Path) -> np.ndarray:
    kind = not_a_file(path)
    if kind == "missing":
        raise UserError(f"{path.parent} has no {path.name}; add it")
    if kind is not None:
        raise UserError(f"{path} is {kind}, but an array is a file; replace it")
    try:
        with warnings.catch_warnings():
            # numpy warns of headers that it parses all the same.
            warnings.simplefilter("ignore")
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("an archive")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:
        # A damaged header can raise almost any exception in numpy.
        raise UserError(
            f"{path} was cut short or is no .npy file of numbers; write it again with "
            "numpy.save"
        ) from error
    return array


def _note_unread(folder: Path, reading: Reading, has_masks: bool) -> None:
    """Notes files of arrays or tables that are not part of this layout.

    Raises:
        UserError: One is called like a split, which the graph needs and lacks.
    """
    used = {f"{name}.npy" for name in (*_REQUIRED, *MASKS)}
    unread = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.suffix in _GRAPH_SUFFIXES and entry.name not in used
    )
    for name in unread:
        if reading.labelled and not has_masks and _SPLIT_NAME.search(name.lower()):
            raise UserError(
                f"{folder} has {name}, which is called like a split, but no "
                "train_mask.npy; save the split as train_mask.npy, val_mask.npy and "
                "test_mask.npy (bool, a value for each node), or move the file away"
            )
    if unread:
        verb = "is" if len(unread) == 1 else "are"
        reading.notes.append(f"{folder}: {listed(unread)} {verb} not read")


def _checked(folder: Path, data: Data) -> dict[str, str]:
    """Checks all edges and features; returns their hashes, which large ones note."""
    times = _times(folder)
    try:
        check_edges(str(folder), data)
        require_finite(str(folder), data)
    except GraphError as error:
        remedy = f"correct the arrays, whose nodes are the {len(data.x)} rows of x.npy"
        raise GraphError(error.where, error.problem, remedy) from error
    arrays = {f".{name}": data[name].numpy() for name in _MAPPED}
    with ThreadPoolExecutor() as threads:
        hashes = threads.map(hash_array, arrays.values())
        known = dict(zip(arrays, hashes, strict=True))
    if sum(size for size, *_ in times.values()) >= _LARGE:
        content = {"version": _VERSION, "files": times, "hashes": known}
        # A folder that cannot be written to is checked every time.
        with contextlib.suppress(UserError):
            write_into(folder, _NOTES, json.dumps(content, indent=1))
    return known


def _noted(folder: Path) -> dict[str, str] | None:
    """The hashes of large arrays that were checked and have not changed since."""
    times = _times(folder)
    path = folder / _NOTES
    if sum(size for size, *_ in times.values()) < _LARGE or not path.is_file():
        return None
    try:
        notes: Any = json.loads(path.read_text())
        hashes: dict[str, str] = notes["hashes"]
        same = notes["version"] == _VERSION and notes["files"] == times
        return {f".{name}": str(hashes[f".{name}"]) for name in times} if same else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _times(folder: Path) -> dict[str, list[int]]:
    """The size of each mapped file and when it last changed.

    A copy or an archive may keep the time of the last change of a file's content, but
    not that of the file itself (`ctime`). So notes that came with a folder are void.
    """
    infos = {name: (folder / f"{name}.npy").stat() for name in _MAPPED}
    return {
        name: [info.st_size, info.st_mtime_ns, info.st_ctime_ns]
        for name, info in infos.items()
    }
