"""Cora, Citeseer and Pubmed, from Planetoid's pickles."""

from pathlib import Path

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from tempergat.data.dataset import UNLABELLED
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graphs import deduplicate, make_graph
from tempergat.data.formats.pickles import load_pickle

_VALIDATION_NODES = 500


def read_planetoid(paths: dict[str, Path]) -> Data:
    """Reads a Planetoid graph from its eight files.

    `allx` holds the training and validation nodes and the rest of the graph, `tx` the
    test nodes in the shuffled order of `test.index`. Citeseer's index skips some
    nodes: those stay in the graph without features and without a label.
    """
    part = {name.split(".", 2)[2]: path for name, path in paths.items()}
    matrices = {name: _matrix(part[name]) for name in ("allx", "tx")}
    one_hot = {name: _labels(part[name]) for name in ("y", "ally", "ty")}
    test_index = _test_index(part["test.index"])
    known = matrices["allx"].shape[0]
    num_nodes = max(known, int(test_index.max()) + 1)
    if len(test_index) != matrices["tx"].shape[0] or test_index.min() < known:
        raise DamagedFile(
            part["test.index"],
            f"lists {len(test_index)} test nodes from {test_index.min()}, but tx has "
            f"{matrices['tx'].shape[0]} rows and the other nodes end at {known - 1}",
            both=True,
        )

    # Row r of the stacked matrix describes node owner[r]; a node no row describes keeps
    # an empty row.
    stacked = scipy.sparse.vstack([matrices["allx"], matrices["tx"]], format="coo")
    owner = np.concatenate([np.arange(known), test_index])
    x = scipy.sparse.csr_array(
        (stacked.data, (owner[stacked.row], stacked.col)),
        shape=(num_nodes, stacked.shape[1]),
    )
    labels = np.full(num_nodes, UNLABELLED, dtype=np.int64)
    labels[owner] = np.concatenate([one_hot["ally"], one_hot["ty"]])

    masks = {
        "train_mask": np.arange(len(one_hot["y"])),
        "val_mask": np.arange(len(one_hot["y"]), len(one_hot["y"]) + _VALIDATION_NODES),
        "test_mask": test_index,
    }
    return make_graph(
        num_nodes,
        x=x,
        edge_index=_edges(part["graph"], num_nodes),
        y=labels,
        **{name: np.isin(np.arange(num_nodes), nodes) for name, nodes in masks.items()},
    )


def _matrix(path: Path) -> scipy.sparse.csr_array:
    value = load_pickle(path)
    if not isinstance(value, scipy.sparse.csr_array):
        raise DamagedFile(path, "holds no sparse matrix")
    return value


def _labels(path: Path) -> np.ndarray:
    value = load_pickle(path)
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype.kind != "i":
        raise DamagedFile(path, "holds no one-hot labels")
    return np.where(value.any(axis=1), value.argmax(axis=1), UNLABELLED)


def _test_index(path: Path) -> np.ndarray:
    try:
        index = np.array(path.read_text().split(), dtype=np.int64)
    except ValueError as error:
        raise DamagedFile(path, f"holds more than node numbers: {error}") from error
    if len(index) == 0:
        raise DamagedFile(path, "is empty")
    return index


def _edges(path: Path, num_nodes: int) -> np.ndarray:
    neighbours = load_pickle(path)
    if not isinstance(neighbours, dict):
        raise DamagedFile(path, "holds no adjacency lists")
    counts = [len(targets) for targets in neighbours.values()]
    source = np.repeat(np.fromiter(neighbours, np.int64, len(counts)), counts)
    flat = (node for targets in neighbours.values() for node in targets)
    target = np.fromiter(flat, np.int64, sum(counts))
    return deduplicate(np.stack([source, target]), num_nodes, drop_loops=True)
