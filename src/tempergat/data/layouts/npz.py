"""Reads .npz files of NumPy arrays, in the layout of PyG or in a published one.

One published layout lists edges: `node_features`, `node_labels`, `edges` (one row for
each) and `train_masks`, `val_masks`, `test_masks` (one row for each split), as in the
heterophilous-graphs repository. The other holds sparse matrices in the parts of
scipy's CSR: `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`, the same with `attr`
or a dense `attr_matrix`, and `labels`, as in the gnn-benchmark repository.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from tempergat.base import UserError, did_you_mean
from tempergat.data.dataset import MASKS, HowRead
from tempergat.data.features import as_tensor
from tempergat.data.formats.errors import GraphError
from tempergat.data.formats.numpy_files import (
    EDGE_ARRAYS,
    NpzArchive,
    open_npz,
    read_csr,
    read_edge_column,
    read_tensors,
    refuse_pickled,
    require_arrays,
)
from tempergat.data.user.edges import with_edge_columns
from tempergat.data.user.options import in_python
from tempergat.data.user.reading import NoLabels, Reading, UserGraph
from tempergat.data.user.splits import is_split_array, split_arrays

_KNOWN = ("edge_index", "x", "y", *MASKS, *EDGE_ARRAYS)
_PARTS = tuple(
    f"{matrix}_{part}"
    for matrix in ("adj", "attr")
    for part in ("data", "indices", "indptr", "shape")
)
_WEIGHTS = "adj_data"


def read_npz(path: Path, reading: Reading) -> UserGraph:
    """Reads a graph from an .npz file.

    Raises:
        UserError: The file is damaged, holds Python objects, or is not a graph.
    """
    with open_npz(path) as archive:
        names = archive.names
        if "edge_index" in names:
            return _read_pyg_names(path, archive, reading)
        if "adj_indptr" in names:
            return _read_matrices(path, archive, reading)
        if "edges" in names:
            return _read_node_edges(path, archive, reading)
        for name in names:
            # Often a pickled matrix, so that no other name is known.
            if archive.header(name)[1].hasobject:
                raise refuse_pickled(path, name)
        raise GraphError(
            path,
            f"has no array edge_index, only {', '.join(names[:9]) or 'none'}",
            f"an .npz graph takes {', '.join(_KNOWN)}, or the arrays of a published "
            "layout (adj_data, adj_indices, ... or node_features, node_labels, edges)",
        )


def _read_pyg_names(path: Path, archive: NpzArchive, reading: Reading) -> UserGraph:
    names, labelled = archive.names, reading.labelled
    for name in ("edge_index", "y") if labelled else ("edge_index", "x"):
        if name not in names:
            raise (NoLabels if name == "y" else UserError)(
                f"{path} has no array {name}, only {', '.join(names)}; an .npz graph "
                f"takes {', '.join(_KNOWN)}"
            )
    split = [name for name in names if is_split_array(name)]
    unknown = sorted(set(names) - {*_KNOWN, *reading.edge_columns, *split})
    if unknown:
        raise UserError(
            f"{path} has an array {unknown[0]}, which is not known; "
            f"{did_you_mean(unknown[0], _KNOWN)}an .npz graph takes "
            f"{', '.join(_KNOWN)}, and arrays named by --edge-features "
            f"{in_python('edge_features')}"
        )
    wanted = ["edge_index", "x", *(("y", *split) if labelled else ())]
    tensors = read_tensors(path, archive, [name for name in wanted if name in names])
    data = Data.from_dict(tensors)
    how_read = HowRead(split=tuple(split_arrays(data)))
    return _with_edge_arrays(UserGraph(data, how_read=how_read), path, archive, reading)


def _read_node_edges(path: Path, archive: NpzArchive, reading: Reading) -> UserGraph:
    """Reads the layout of `node_features`, `node_labels`, `edges` and masks."""
    labelled = reading.labelled
    meaning = {"edges": "edge_index", "node_features": "x"}
    if labelled:
        meaning["node_labels"] = "y"
        if f"{MASKS[0]}s" in archive.names:
            meaning |= {f"{mask}s": mask for mask in MASKS}
        else:
            meaning |= {name: name for name in archive.names if is_split_array(name)}
    needed = "node_labels" if labelled else "node_features"
    require_arrays(path, archive, ("edges", needed))
    present = [name for name in meaning if name in archive.names]
    tensors = read_tensors(path, archive, present)
    edges = tensors["edges"]
    if edges.dim() != 2 or edges.shape[1] != 2:
        problem = f"edges has shape {tuple(edges.shape)}"
        remedy = "give every edge a row of source and target"
        raise GraphError(f"{path}:", problem, remedy)
    for mask in MASKS:
        rows = tensors.get(f"{mask}s")
        if rows is not None and rows.dim() == 2:
            tensors[f"{mask}s"] = rows.T.contiguous()
    tensors["edges"] = edges.T.contiguous()
    data = Data.from_dict({meaning[name]: tensors[name] for name in present})
    masks = [name for name in present if meaning[name] in split_arrays(data)]
    every = ("edges", "node_features", "node_labels", *masks, *EDGE_ARRAYS)
    known = {*every, *reading.edge_columns}
    how_read = _how_read("node_labels", masks, archive, known)
    return _with_edge_arrays(UserGraph(data, how_read=how_read), path, archive, reading)


def _with_edge_arrays(
    graph: UserGraph, path: Path, archive: NpzArchive, reading: Reading
) -> UserGraph:
    known, edges = {*EDGE_ARRAYS, *reading.edge_columns}, graph.data.edge_index
    names = [name for name in archive.names if name in known]

    def read(name: str) -> np.ndarray:
        return read_edge_column(path, archive, edges, name)

    return with_edge_columns(graph, str(path), names, read, reading)


def _read_matrices(path: Path, archive: NpzArchive, reading: Reading) -> UserGraph:
    """Reads the layout of `adj_*`, `attr_*` and `labels`."""
    adjacency = read_csr(path, archive, "adj_")
    if adjacency.shape[0] != adjacency.shape[1]:
        problem = f"adj_shape is {adjacency.shape}"
        remedy = "give the adjacency matrix as many columns as rows"
        raise GraphError(f"{path}:", problem, remedy)
    data = Data(num_nodes=adjacency.shape[0])
    if "attr_matrix" in archive.names:
        data.x = read_tensors(path, archive, ["attr_matrix"])["attr_matrix"]
    elif "attr_indptr" in archive.names:
        data.x = as_tensor(read_csr(path, archive, "attr_"))
    if reading.labelled:
        require_arrays(path, archive, ["labels"])
        data.y = read_tensors(path, archive, ["labels"])["labels"]
        split = [name for name in archive.names if is_split_array(name)]
        for name, value in read_tensors(path, archive, split).items():
            data[name] = value
    for name in ("x", "y"):
        rows = data[name].shape[:1] if name in data else (data.num_nodes,)
        if rows != (data.num_nodes,):
            what = "labels" if name == "y" else "attr"
            raise GraphError(
                f"{path}:",
                f"{what} has {rows[0] if rows else 'no'} rows, but adj_shape names "
                f"{data.num_nodes} nodes",
                "give both one row per node",
            )
    rows = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    ends = np.stack([rows, adjacency.indices.astype(np.int64)])
    data.edge_index = as_tensor(ends)
    is_weighted = bool((adjacency.data != 1).any())
    masks = list(split_arrays(data))
    known = ("labels", "attr_matrix", *_PARTS, *masks)
    return with_edge_columns(
        UserGraph(data, how_read=_how_read("labels", masks, archive, known)),
        str(path),
        [_WEIGHTS] if is_weighted or _WEIGHTS in reading.edge_columns else [],
        lambda _: adjacency.data,
        reading,
    )


def _how_read(
    label: str,
    split: Sequence[str],
    archive: NpzArchive,
    known: Collection[str | None],
) -> HowRead:
    # Without labels, no array of the split is used.
    others = [
        name
        for name in archive.names
        if name not in known and (split or not is_split_array(name))
    ]
    return HowRead(label=label, split=tuple(split), not_read=tuple(others))
