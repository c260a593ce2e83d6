"""Large user graphs: a folder of `.npy` files that are mapped into memory, not read.

The folder holds `edge_index.npy` (2 x edges, int32 or int64), `x.npy` (nodes x
features, float32 or float16) and `y.npy` (int64, -1 where unknown), and may hold
`train_mask.npy`, `val_mask.npy` and `test_mask.npy` (bool). Edges are followed as they
are listed, and repeated ones are kept. If they are sorted by target, nothing is sorted
for sampled training either.

All values are checked and hashed when the folder is opened for the first time. What was
found is noted in `tempergat.json` with the size and the time of the last change of
every file; while these stay the same, the folder opens without being read.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tempergat.base import UserError, explain_unreadable, write_text
from tempergat.data.dataset import MASKS, UNLABELLED, Dataset, hash_array, hash_tensors
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graph_checks import check_arrays
from tempergat.data.formats.raw_graph import Graph, to_pyg
from tempergat.data.splits import GraphWithSplits
from tempergat.data.user.feature_report import Finding
from tempergat.data.user.options import ReadOptions, option_flag

_NOTES = "tempergat.json"
_VERSION = 1
_REQUIRED = ("edge_index", "x", "y")


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


def open_array_folder(
    folder: Path,
    options: ReadOptions,
    labelled: bool,
    use_masks: bool,
    verify: bool = False,
) -> GraphWithSplits:
    """Opens a folder of this layout.

    Args:
        folder: The folder.
        options: None of them has a meaning here; they must be the defaults.
        labelled: Whether there must be labels; otherwise all are unknown.
        use_masks: Whether the masks are the split; otherwise one is made.
        verify: Whether to check all values even where they were checked before.

    Raises:
        UserError: A file is missing, damaged or cut short, or contradicts another.
    """
    # A model passes on what it knows of its training graph.
    if labelled:
        refuse_options(folder, options)
    wanted = [*_REQUIRED, *MASKS] if labelled else ["edge_index", "x"]
    arrays = {}
    for name in wanted:
        path = folder / f"{name}.npy"
        if path.exists() or name in _REQUIRED:
            arrays[name] = _mapped(path)
    count = len(arrays["x"])
    if not labelled:
        arrays["y"] = np.full(count, UNLABELLED)
    graph = Graph({f".{name}": array for name, array in arrays.items()}, {"": count})
    known = None if verify else _noted(folder, graph)
    num_classes = max(int(arrays["y"].max(initial=UNLABELLED)) + 1, 0)
    if known is None:
        try:
            check_arrays(folder, graph, None, num_classes)
        except DamagedFile as error:
            raise UserError(
                f"{error.where} {error.problem}; correct the arrays, whose nodes are "
                f"the {count} rows of x.npy"
            ) from error
        with ThreadPoolExecutor() as threads:
            hashes = threads.map(hash_array, graph.arrays.values())
            known = dict(zip(graph.arrays, hashes, strict=True))
        _note(folder, known)
    with warnings.catch_warnings():
        # torch warns of arrays that must not be written to. Mapped for writing, a file
        # larger than memory could not be opened.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        data = to_pyg(graph, None)
    unsplit = Dataset(
        name=str(folder),
        data=data,
        target=None,
        num_classes=num_classes,
        metric="accuracy",
        source=str(folder.resolve()),
        fingerprint="",
        license="the user's",
        read_options=options,
    )
    hashed = hash_tensors(data, known)
    masks = {name: arrays[name].astype(bool) for name in MASKS if name in arrays}
    if not labelled:
        masks = {name: np.zeros(count, dtype=bool) for name in MASKS}
    if masks and len(masks) < len(MASKS):
        missing = next(name for name in MASKS if name not in masks)
        raise UserError(f"{folder} has masks, but no {missing}.npy; add it")
    given = ["given with the graph"] if masks and (use_masks or not labelled) else []
    return GraphWithSplits(
        unsplit, hashed, given, lambda _: masks, is_numbered=False, stratified=True
    )


def check_array_folder(folder: Path) -> list[Finding]:
    """What a folder of this layout holds; all values are checked again.

    Raises:
        UserError: A file is missing or damaged, or contradicts another.
    """
    has_labels = (folder / "y.npy").exists()
    graph = open_array_folder(folder, ReadOptions(), has_labels, True, verify=True)
    data = graph.unsplit.data
    findings = [
        Finding("nodes", int(data.num_nodes)),
        Finding("edges", int(data.edge_index.size(1)), "followed as they are listed"),
        Finding("features", int(data.x.size(1))),
    ]
    if not has_labels:
        action = "predict can classify its nodes; compare and train need labels"
        return [*findings, Finding("labels", "none", action)]
    findings.append(Finding("classes", graph.unsplit.num_classes))
    if graph.splits:
        for name, mask in graph.masks_of(0).items():
            findings.append(Finding(name.replace("_", " "), int(mask.sum())))
    return findings


def refuse_options(folder: Path, options: ReadOptions) -> None:
    """Refuses all options, because the arrays are used as they are.

    Raises:
        UserError: An option differs from its default.
    """
    given = options.given()
    if given:
        raise UserError(
            f"{option_flag(given[0])} does not apply to {folder}, whose arrays are "
            "used as they are; leave it out"
        )


def _mapped(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"{path.parent} has no {path.name}; add it") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, TypeError, SyntaxError, OverflowError) as error:
        raise UserError(
            f"{path} was cut short or is no .npy file of numbers; write it again with "
            "numpy.save"
        ) from error
    return array


def _times(folder: Path, names: list[str]) -> dict[str, list[int]]:
    found = {name: (folder / f"{name[1:]}.npy") for name in names}
    stats = {name: path.stat() for name, path in found.items() if path.exists()}
    return {name: [s.st_size, s.st_mtime_ns] for name, s in stats.items()}


def _noted(folder: Path, graph: Graph) -> dict[str, str] | None:
    """The hashes of all arrays, if they were checked and have not changed since."""
    names = list(graph.arrays)
    try:
        notes: Any = json.loads((folder / _NOTES).read_text())
        hashes: dict[str, str] = notes["hashes"]
        current = _times(folder, names)
        same = all(notes["files"].get(name) == current[name] for name in current)
        if notes["version"] == _VERSION and same and set(current) <= set(hashes):
            return hashes
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return None


def _note(folder: Path, hashes: dict[str, str]) -> None:
    names = list(hashes)
    content = {"version": _VERSION, "files": _times(folder, names), "hashes": hashes}
    # A folder that cannot be written to is checked every time.
    with contextlib.suppress(OSError, UserError):
        write_text(folder / _NOTES, json.dumps(content, indent=1))
