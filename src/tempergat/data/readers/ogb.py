"""OGB's node-property graphs, from the gzipped tables of the raw archives."""

import gzip
from pathlib import Path

import numpy as np
import scipy.sparse
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError
from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.features import as_tensor
from tempergat.data.formats.errors import DamagedFile
from tempergat.data.formats.graphs import add_relation, make_graph, narrow, symmetrize
from tempergat.data.formats.number_tables import node_mask, read_edges, read_numbers
from tempergat.data.formats.numpy_files import class_numbers

_SPLIT_FILES = dict(zip(MASKS, ("train", "valid", "test"), strict=True))
_YEAR_CLASSES = 5
_EDGES, _EDGE_COUNT = "edge.csv.gz", "num-edge-list.csv.gz"


def read_arxiv(paths: dict[str, Path], directed: bool = False) -> Data:
    """ogbn-arxiv. A citation becomes an edge in both directions unless `directed`.

    Most published results, the baselines of OGB among them, symmetrise this graph.
    """
    graph = _read_homogeneous(paths, "time")
    num_nodes = int(graph.num_nodes)
    edges = _edges(paths, "raw", num_nodes)
    if not directed:
        edges = symmetrize(edges, num_nodes)
    graph.edge_index = as_tensor(narrow(edges, num_nodes))
    return graph


def read_products(paths: dict[str, Path]) -> Data:
    """ogbn-products. The archive lists every undirected edge once."""
    graph = _read_homogeneous(paths, "sales_ranking")
    num_nodes = int(graph.num_nodes)
    edges = _edges(paths, "raw", num_nodes)
    # Not merged: OGB counts both directions of every listed edge, 123,718,280 in all.
    graph.edge_index = as_tensor(symmetrize(edges, num_nodes, merge=False))
    return graph


def _read_homogeneous(paths: dict[str, Path], split: str) -> Data:
    num_nodes = int(
        read_numbers(paths["raw/num-node-list.csv.gz"], np.int64, 1, 1)[0, 0]
    )
    masks = {
        mask: _mask(paths[f"split/{split}/{file}.csv.gz"], num_nodes)
        for mask, file in _SPLIT_FILES.items()
    }
    return make_graph(
        num_nodes,
        x=read_numbers(paths["raw/node-feat.csv.gz"], np.float32, rows=num_nodes),
        y=_labels(paths["raw/node-label.csv.gz"], num_nodes),
        **masks,
    )


def read_mag(paths: dict[str, Path], features: str = "averaged") -> HeteroData:
    """ogbn-mag with reverse edges, as H2GB has it.

    Citations get edges in both directions within their type; the other three relations
    each get a reverse type.

    Args:
        paths: The tables.
        features: `"averaged"`, as H2GB has it: authors and fields get the mean features
            of their papers, and institutions those of their authors. With `"learned"`
            papers alone have features, so that the others get learned vectors.

    Raises:
        UserError: `features` is neither.
    """
    if features not in ("averaged", "learned"):
        raise UserError(f"features is {features!r}; choose averaged or learned")
    counts = _node_counts(paths["raw/num-node-dict.csv.gz"])
    papers = counts["paper"]
    table = paths["raw/node-feat/paper/node-feat.csv.gz"]
    data = HeteroData()
    for kind, count in counts.items():
        data[kind].num_nodes = count
    x = read_numbers(table, np.float32, rows=papers)
    data["paper"].x = as_tensor(x)
    labels = _labels(paths["raw/node-label/paper/node-label.csv.gz"], papers)
    data["paper"].y = as_tensor(labels)
    for name in paths:
        if name.startswith("raw/relations/") and name.endswith(_EDGES):
            folder = name.removesuffix(f"/{_EDGES}")
            source, relation, target = folder.split("/")[2].split("___")
            edges = _edges(paths, folder, counts[source], counts[target])
            add_relation(data, (source, relation, target), edges)
    for mask, file in _SPLIT_FILES.items():
        path = paths[f"split/time/paper/{file}.csv.gz"]
        data["paper"][mask] = as_tensor(_mask(path, papers))
    if features == "averaged":
        for source, relation, kind in (
            ("paper", "rev_writes", "author"),
            ("paper", "has_topic", "field_of_study"),
            ("author", "affiliated_with", "institution"),
        ):
            _average(data, source, relation, kind)
    return data


def _average(data: HeteroData, source: str, relation: str, kind: str) -> None:
    """Gives nodes the mean features of those that have an edge to them; 0 without."""
    sources, nodes = data[source, relation, kind].edge_index.numpy()
    shape = (int(data[kind].num_nodes), int(data[source].num_nodes))
    ones = np.ones(len(nodes), dtype=np.float32)
    sums = scipy.sparse.csr_array((ones, (nodes, sources)), shape) @ data[source].x
    counts = np.bincount(nodes, minlength=shape[0]).clip(1).astype(np.float32)
    data[kind].x = as_tensor(sums / counts[:, None])


def read_mag_year(paths: dict[str, Path], features: str = "averaged") -> HeteroData:
    """ogbn-mag, with papers classified by the quantile of their year.

    As in H2GB, the bounds are the 20, 40, 60 and 80 % quantiles, and a year equal to a
    bound belongs to the upper class. The split is made when the graph is loaded.
    """
    data = read_mag(paths, features)
    papers = data["paper"]
    path = paths["raw/node-feat/paper/node_year.csv.gz"]
    years = read_numbers(path, np.int64, 1, int(papers.num_nodes))[:, 0]
    papers.y = as_tensor(even_quantiles(years, _YEAR_CLASSES))
    for mask in MASKS:
        del papers[mask]
    return data


def even_quantiles(values: np.ndarray, classes: int) -> np.ndarray:
    """The class of each value when bounded by even quantiles."""
    bounds = np.quantile(values, np.arange(1, classes) / classes)
    return np.searchsorted(bounds, values, side="right").astype(np.int64)


def _labels(path: Path, num_nodes: int) -> np.ndarray:
    labels = read_numbers(path, np.float64, 1, num_nodes)[:, 0]
    missing = np.isnan(labels)
    labels[missing] = UNLABELLED
    return class_numbers(path, labels)


def _mask(path: Path, num_nodes: int) -> np.ndarray:
    return node_mask(path, read_numbers(path, np.int64, 1)[:, 0], num_nodes)


def _edges(paths: dict[str, Path], folder: str, *sizes: int) -> np.ndarray:
    """The edges in a folder of the archive, as many as it says there."""
    path, count = (paths[f"{folder}/{name}"] for name in (_EDGES, _EDGE_COUNT))
    listed = int(read_numbers(count, np.int64, 1, 1)[0, 0])
    edges = read_edges(path, *sizes)
    if edges.shape[1] != listed:
        problem = f"has {edges.shape[1]} rows, but {count.name} says {listed}"
        raise DamagedFile(path, problem, both=True)
    return edges


def _node_counts(path: Path) -> dict[str, int]:
    """The number of nodes of each type: a line of names above one of numbers."""
    (counts,) = read_numbers(path, np.int64, rows=1, header_lines=1)
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        names = stream.readline().strip().split(",")
    return dict(zip(names, counts.tolist(), strict=True))
