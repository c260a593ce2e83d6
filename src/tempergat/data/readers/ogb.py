"""OGB's node-property graphs, from the gzipped tables of the raw archives."""

import gzip
import warnings
import zlib
from pathlib import Path

import numpy as np
from torch_geometric.data import Data, HeteroData

from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.features import as_tensor
from tempergat.data.formats.errors import DamagedFile
from tempergat.data.formats.graphs import (
    add_relation,
    make_graph,
    narrow,
    symmetrize,
)

_SPLIT_FILES = dict(zip(MASKS, ("train", "valid", "test"), strict=True))
_YEAR_CLASSES = 5
_BLOCK = 1 << 24
_TO_SPACES = bytes.maketrans(b",\t\n\r", b"    ")


def read_arxiv(paths: dict[str, Path], directed: bool = False) -> Data:
    """ogbn-arxiv. A citation becomes an edge in both directions unless `directed`.

    Most published results, the baselines of OGB among them, symmetrise this graph.
    """
    edges = _edges(paths["raw/edge.csv.gz"])
    graph = _read_homogeneous(paths, "time")
    num_nodes = int(graph.num_nodes)
    _require_nodes(paths["raw/edge.csv.gz"], edges, num_nodes, num_nodes)
    if not directed:
        edges = symmetrize(edges, num_nodes)
    graph.edge_index = as_tensor(narrow(edges, num_nodes))
    return graph


def read_products(paths: dict[str, Path]) -> Data:
    """ogbn-products. The archive lists every undirected edge once."""
    edges = _edges(paths["raw/edge.csv.gz"])
    graph = _read_homogeneous(paths, "sales_ranking")
    num_nodes = int(graph.num_nodes)
    _require_nodes(paths["raw/edge.csv.gz"], edges, num_nodes, num_nodes)
    # Not merged: OGB counts both directions of every listed edge, 123,718,280 in all.
    graph.edge_index = as_tensor(symmetrize(edges, num_nodes, merge=False))
    return graph


def _read_homogeneous(paths: dict[str, Path], split: str) -> Data:
    num_nodes = int(read_numbers(paths["raw/num-node-list.csv.gz"], 1, np.int64)[0, 0])
    features = paths["raw/node-feat.csv.gz"]
    masks = {
        mask: _mask(paths[f"split/{split}/{file}.csv.gz"], num_nodes)
        for mask, file in _SPLIT_FILES.items()
    }
    return make_graph(
        num_nodes,
        x=read_numbers(features, _width(features), np.float32, num_nodes),
        y=_labels(paths["raw/node-label.csv.gz"], num_nodes),
        **masks,
    )


def read_mag(paths: dict[str, Path]) -> HeteroData:
    """ogbn-mag with reverse edges, as H2GB has it.

    Citations get edges in both directions within their type; the other three relations
    each get a reverse type. Only papers have features.
    """
    counts = read_header_table(paths["raw/num-node-dict.csv.gz"])
    papers = counts["paper"]
    features = paths["raw/node-feat/paper/node-feat.csv.gz"]
    data = HeteroData()
    for kind, count in counts.items():
        data[kind].num_nodes = count
    x = read_numbers(features, _width(features), np.float32, papers)
    data["paper"].x = as_tensor(x)
    labels = _labels(paths["raw/node-label/paper/node-label.csv.gz"], papers)
    data["paper"].y = as_tensor(labels)
    for name, path in paths.items():
        if name.startswith("raw/relations/"):
            source, relation, target = name.split("/")[2].split("___")
            edges = _edges(path)
            _require_nodes(path, edges, counts[source], counts[target])
            add_relation(data, (source, relation, target), edges)
    for mask, file in _SPLIT_FILES.items():
        path = paths[f"split/time/paper/{file}.csv.gz"]
        data["paper"][mask] = as_tensor(_mask(path, papers))
    return data


def read_mag_year(paths: dict[str, Path]) -> HeteroData:
    """ogbn-mag, with papers classified by the quantile of their year.

    As in H2GB, the bounds are the 20, 40, 60 and 80 % quantiles, and a year equal to a
    bound belongs to the upper class. The split is made when the graph is loaded.
    """
    data = read_mag(paths)
    papers = data["paper"]
    path = paths["raw/node-feat/paper/node_year.csv.gz"]
    years = read_numbers(path, 1, np.int64, int(papers.num_nodes))[:, 0]
    papers.y = as_tensor(even_quantiles(years, _YEAR_CLASSES))
    for mask in MASKS:
        del papers[mask]
    return data


def even_quantiles(values: np.ndarray, classes: int) -> np.ndarray:
    """The class of each value when bounded by even quantiles."""
    bounds = np.quantile(values, np.arange(1, classes) / classes)
    return np.searchsorted(bounds, values, side="right").astype(np.int64)


def _edges(path: Path) -> np.ndarray:
    return np.ascontiguousarray(read_numbers(path, 2, np.int64).T)


def _require_nodes(path: Path, columns: np.ndarray, *sizes: int) -> None:
    """Checks the node numbers in each column against the number of nodes."""
    for ends, size in zip(columns, sizes, strict=True):
        if len(ends) and not (ends.min() >= 0 and ends.max() < size):
            row = int(np.flatnonzero((ends < 0) | (ends >= size))[0])
            raise DamagedFile(
                f"{path}, row {row + 1}",
                f"names node {ends[row]}, but there are {size} nodes",
            )


def _width(path: Path) -> int:
    """The number of columns of a gzipped table."""
    try:
        with gzip.open(path) as stream:
            return stream.readline().count(b",") + 1
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFile(path, f"is a damaged gzip file ({error})") from error


def _labels(path: Path, num_nodes: int) -> np.ndarray:
    labels = read_numbers(path, 1, np.float64, num_nodes)[:, 0]
    missing = np.isnan(labels)
    labels[missing] = UNLABELLED
    return labels.astype(np.int64)


def _mask(path: Path, num_nodes: int) -> np.ndarray:
    nodes = read_numbers(path, 1, np.int64)
    _require_nodes(path, nodes.T, num_nodes)
    mask = np.zeros(num_nodes, dtype=bool)
    mask[nodes[:, 0]] = True
    return mask


def read_numbers(
    path: Path, columns: int, dtype: type[np.generic], rows: int | None = None
) -> np.ndarray:
    """Reads a gzipped table of numbers without a header.

    Args:
        path: A file of comma- or tab-separated values.
        columns: Number of values in a row.
        dtype: Type of the result.
        rows: Number of rows, where it is known; any other number is an error.

    Returns:
        An array of shape (rows, columns).

    Raises:
        UserError: The file is damaged or holds anything but such rows.
    """
    blocks = []
    num_rows = 0
    rest = b""
    try:
        with gzip.open(path) as stream:
            while data := stream.read(_BLOCK):
                head, newline, tail = (rest + data).rpartition(b"\n")
                rest = tail
                if newline:
                    blocks.append(_parse(path, head, columns, dtype, num_rows))
                    num_rows += len(blocks[-1])
        if rest.strip():
            blocks.append(_parse(path, rest, columns, dtype, num_rows))
            num_rows += len(blocks[-1])
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFile(path, f"is a damaged gzip file ({error})") from error
    if rows is not None and num_rows != rows:
        raise DamagedFile(path, f"has {num_rows} rows, but the graph has {rows}")
    result = np.empty((num_rows, columns), dtype=dtype)
    start = 0
    # Each block is freed once it is copied, so that memory never holds all twice.
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        result[start : start + len(block)] = block
        start += len(block)
    return result


def _parse(
    path: Path, text: bytes, columns: int, dtype: type[np.generic], first: int
) -> np.ndarray:
    with warnings.catch_warnings():
        # numpy only warns about text that it cannot read.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values = np.fromstring(text.translate(_TO_SPACES), dtype=dtype, sep=" ")
        except (DeprecationWarning, ValueError):
            values = np.empty(0, dtype=dtype)
    lines = text.count(b"\n") + 1
    if len(values) != lines * columns:
        row = first + _first_bad_line(text, columns, dtype)
        raise DamagedFile(f"{path}, row {row + 1}", f"does not hold {columns} numbers")
    return values.reshape(lines, columns)


def _first_bad_line(text: bytes, columns: int, dtype: type[np.generic]) -> int:
    for number, line in enumerate(text.split(b"\n")):
        parts = line.translate(_TO_SPACES).split()
        try:
            np.array(parts, dtype=np.bytes_).astype(dtype)
        except ValueError:
            return number
        if len(parts) != columns:
            return number
    return 0


def read_header_table(path: Path) -> dict[str, int]:
    """Reads a gzipped table of one header line and one row of whole numbers."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            header, values = (stream.readline().strip().split(",") for _ in range(2))
        return {name: int(v) for name, v in zip(header, values, strict=True)}
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DamagedFile(
            path, f"is not a header and a row of whole numbers ({error})"
        ) from error
