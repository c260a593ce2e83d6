"""OGB's node-property graphs, from the raw archives: arxiv, products and mag."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.number_tables import read_header_table, read_numbers
from tempergat.data.formats.raw_graph import Graph, narrow, symmetrize, transpose

_SPLIT_FILES = dict(zip(MASKS, ("train", "valid", "test"), strict=True))
_YEAR_CLASSES = 5


def read_arxiv(paths: dict[str, Path], directed: bool = False) -> Graph:
    """ogbn-arxiv. A citation becomes an edge in both directions unless `directed`.

    Most published results, the baselines of OGB among them, symmetrise this graph.
    """
    edges = _edges(paths["raw/edge.csv.gz"])
    graph = _read_homogeneous(paths, "time")
    num_nodes = graph.num_nodes[""]
    _require_nodes(paths["raw/edge.csv.gz"], edges, num_nodes, num_nodes)
    if not directed:
        edges = symmetrize(edges, num_nodes)
    graph.arrays[".edge_index"] = narrow(edges, num_nodes)
    return graph


def read_products(paths: dict[str, Path]) -> Graph:
    """ogbn-products. The archive lists every undirected edge once."""
    edges = _edges(paths["raw/edge.csv.gz"])
    graph = _read_homogeneous(paths, "sales_ranking")
    num_nodes = graph.num_nodes[""]
    _require_nodes(paths["raw/edge.csv.gz"], edges, num_nodes, num_nodes)
    # Not merged: OGB counts both directions of every listed edge, 123,718,280 in all.
    graph.arrays[".edge_index"] = symmetrize(edges, num_nodes, merge=False)
    return graph


def _read_homogeneous(paths: dict[str, Path], split: str) -> Graph:
    num_nodes = int(read_numbers(paths["raw/num-node-list.csv.gz"], 1, np.int64)[0, 0])
    features = paths["raw/node-feat.csv.gz"]
    graph = Graph({}, {"": num_nodes})
    width = _width(features)
    graph.arrays[".x"] = read_numbers(features, width, np.float32, num_nodes)
    graph.arrays[".y"] = _labels(paths["raw/node-label.csv.gz"], num_nodes)
    for mask, file in _SPLIT_FILES.items():
        path = paths[f"split/{split}/{file}.csv.gz"]
        graph.arrays[f".{mask}"] = _mask(path, num_nodes)
    return graph


def read_mag(paths: dict[str, Path]) -> Graph:
    """ogbn-mag with reverse edges, as H2GB has it.

    Citations get edges in both directions within their type; the other three relations
    each get a reverse type. Only papers have features.
    """
    counts = read_header_table(paths["raw/num-node-dict.csv.gz"])
    papers = counts["paper"]
    features = paths["raw/node-feat/paper/node-feat.csv.gz"]
    graph = Graph({}, counts)
    graph.arrays["paper.x"] = read_numbers(
        features, _width(features), np.float32, papers
    )
    label_file = paths["raw/node-label/paper/node-label.csv.gz"]
    graph.arrays["paper.y"] = _labels(label_file, papers)
    for name, path in paths.items():
        if name.startswith("raw/relations/"):
            _add_relation(graph, path, tuple(name.split("/")[2].split("___")))
    for mask, file in _SPLIT_FILES.items():
        path = paths[f"split/time/paper/{file}.csv.gz"]
        graph.arrays[f"paper.{mask}"] = _mask(path, papers)
    return graph


def read_mag_year(paths: dict[str, Path]) -> Graph:
    """ogbn-mag, with papers classified by the quantile of their year.

    As in H2GB, the bounds are the 20, 40, 60 and 80 % quantiles, and a year equal to a
    bound belongs to the upper class. The split is made when the graph is loaded.
    """
    graph = read_mag(paths)
    path = paths["raw/node-feat/paper/node_year.csv.gz"]
    years = read_numbers(path, 1, np.int64, graph.num_nodes["paper"])[:, 0]
    graph.arrays["paper.y"] = even_quantiles(years, _YEAR_CLASSES)
    for mask in MASKS:
        del graph.arrays[f"paper.{mask}"]
    return graph


def even_quantiles(values: np.ndarray, classes: int) -> np.ndarray:
    """The class of each value when bounded by even quantiles."""
    bounds = np.quantile(values, np.arange(1, classes) / classes)
    return np.searchsorted(bounds, values, side="right").astype(np.int64)


def _add_relation(graph: Graph, path: Path, kind: tuple[str, ...]) -> None:
    source, relation, target = kind
    sizes = (graph.num_nodes[source], graph.num_nodes[target])
    edges = _edges(path)
    _require_nodes(path, edges, *sizes)
    if source == target:
        edges = symmetrize(edges, sizes[0])
    else:
        reverse = f"{target}/rev_{relation}/{source}.edge_index"
        graph.arrays[reverse] = transpose(edges, *sizes)
    graph.arrays[f"{source}/{relation}/{target}.edge_index"] = narrow(edges, max(sizes))


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
