"""Reads .npz files of NumPy arrays, in the layout of PyG or in a published one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from torch_geometric.data import Data

from tempergat.base import UserError, did_you_mean, explain_unreadable
from tempergat.data.dataset import MASKS, HowRead
from tempergat.data.formats.npz_archive import (
    NpzArchive,
    PickledObjects,
    refuse_pickled,
    why_unreadable,
)
from tempergat.data.layouts.arrays import (
    EDGE_ARRAYS,
    read_edge_column,
    read_tensors,
)
from tempergat.data.layouts.published_npz import read_matrices, read_node_edges
from tempergat.data.user.edges import choose_edge_columns
from tempergat.data.user.labels import NoLabels
from tempergat.data.user.options import ReadOptions, in_python
from tempergat.data.user.splits import is_split_array, split_arrays
from tempergat.data.user.user_graph import UserGraph

_Reader = Callable[[Path, NpzArchive, ReadOptions, bool], UserGraph]
_KNOWN = ("edge_index", "x", "y", *MASKS, *EDGE_ARRAYS)


def read_npz(path: Path, options: ReadOptions, labelled: bool) -> UserGraph:
    """Reads a graph from an .npz file.

    Args:
        path: The file.
        options: Which arrays of the edges are used.
        labelled: Whether it must hold labels; otherwise they are not read.

    Raises:
        UserError: The file is damaged, holds Python objects, or is not a graph.
    """
    with explain_unreadable(path), open(path, "rb") as stream, _readable(path):
        archive = NpzArchive(path, stream)
        return _reader_of(path, archive)(path, archive, options, labelled)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except PickledObjects as objects:
        raise refuse_pickled(path, objects) from None
    except Exception as error:
        # A damaged archive can raise almost any exception in zipfile and numpy.
        raise UserError(
            f"{path} is not a readable .npz of plain arrays ({why_unreadable(error)}); "
            "save it again with numpy.savez"
        ) from error


def _reader_of(path: Path, archive: NpzArchive) -> _Reader:
    names = archive.names
    if "edge_index" in names:
        return _read_pyg_names
    if "adj_indptr" in names:
        return read_matrices
    if "edges" in names:
        return read_node_edges
    for name in names:
        header = archive.header(name)
        if header.dtype.hasobject:
            # Often a pickled matrix, so that no other name is known.
            raise PickledObjects(name, header)
    raise UserError(
        f"{path} has no array edge_index, only {', '.join(names[:9]) or 'none'}; an "
        f".npz graph takes {', '.join(_KNOWN)}, or the arrays of a published layout "
        "(adj_data, adj_indices, ... or node_features, node_labels, edges)"
    )


def _read_pyg_names(
    path: Path, archive: NpzArchive, options: ReadOptions, labelled: bool
) -> UserGraph:
    names = archive.names
    asked = {*options.edge_features, options.edge_weight}
    for name in ("edge_index", "y") if labelled else ("edge_index", "x"):
        if name not in names:
            raise (NoLabels if name == "y" else UserError)(
                f"{path} has no array {name}, only {', '.join(names)}; an .npz graph "
                f"takes {', '.join(_KNOWN)}"
            )
    split = [name for name in names if is_split_array(name)]
    unknown = sorted(set(names) - {*_KNOWN, *asked, *split})
    if unknown:
        raise UserError(
            f"{path} has an array {unknown[0]}, which is not known; "
            f"{did_you_mean(unknown[0], _KNOWN)}an .npz graph takes "
            f"{', '.join(_KNOWN)}, and arrays named by --edge-features "
            f"{in_python('edge_features')}"
        )
    wanted = ["edge_index", "x", *(("y", *split) if labelled else ())]
    tensors = read_tensors(path, archive, [name for name in wanted if name in names])
    chosen = choose_edge_columns(
        str(path),
        [name for name in names if name in asked or name in EDGE_ARRAYS],
        partial(read_edge_column, path, archive, tensors["edge_index"]),
        options,
    )
    data = Data.from_dict(tensors)
    how_read = HowRead(split=tuple(split_arrays(data)))
    return chosen.added_to(UserGraph(data, how_read=how_read))
