"""Published graphs in text files: tables of geom-gcn and MUSAE, and WikiCS in JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from tempergat.base import first_line, listed
from tempergat.data.dataset import MASKS
from tempergat.data.features import to_scipy
from tempergat.data.formats.errors import DamagedFile
from tempergat.data.formats.graphs import deduplicate, make_graph, symmetrize
from tempergat.data.formats.number_tables import read_edges, require_nodes
from tempergat.data.formats.numpy_files import load_arrays, require_shape
from tempergat.data.layouts.word_folder import read_word_files
from tempergat.data.user.options import ReadOptions
from tempergat.data.user.reading import Reading

_NUM_SPLITS = 10


def read_geom_gcn(paths: dict[str, Path], *, word_lists: bool = False) -> Data:
    """Reads a graph. The ten splits become the columns of the masks.

    Args:
        paths: The tables and the splits.
        word_lists: Whether nodes have lists of words, as in actor; otherwise they have
            a 0 or 1 for every word, as in the WebKB graphs.
    """
    path = paths["out1_node_feature_label.txt"]
    nodes, rows, columns, labels = [], [], [], []
    num_words = 0
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        try:
            node, words, label = line.split("\t")
            values = [int(word) for word in words.split(",")]
            nodes.append(int(node))
            labels.append(int(label))
        except ValueError as error:
            raise DamagedFile(
                f"{path}, row {number}",
                "does not hold a node, its words and its label",
            ) from error
        present = values if word_lists else np.flatnonzero(values).tolist()
        num_words = max(num_words, max(values) + 1 if word_lists else len(values))
        rows += [nodes[-1]] * len(present)
        columns += present
    num_nodes = len(nodes)
    if sorted(nodes) != list(range(num_nodes)):
        raise DamagedFile(path, f"does not number its {num_nodes} nodes from 0")
    x = scipy.sparse.csr_array(
        (np.ones(len(rows), np.float32), (rows, columns)),
        shape=(num_nodes, num_words),
    )
    # A word listed twice still counts once.
    x.sum_duplicates()
    x.data[:] = 1
    y = np.empty(num_nodes, dtype=np.int64)
    y[nodes] = labels
    edges = read_edges(paths["out1_graph_edges.txt"], num_nodes, header_lines=1)
    # The names of these files begin with the graph's.
    ends = [f"_split_0.6_0.2_{number}.npz" for number in range(_NUM_SPLITS)]
    files = [next(p for name, p in paths.items() if name.endswith(end)) for end in ends]
    splits = [load_arrays(file, *MASKS) for file in files]
    return make_graph(
        num_nodes,
        x=x,
        y=y,
        edge_index=deduplicate(edges, num_nodes),
        **{name: np.stack([s[name] != 0 for s in splits], axis=1) for name in MASKS},
    )


def read_musae(
    paths: dict[str, Path],
    id_column: str,
    label_column: str,
    classes: Sequence[str],
    num_words: int = 0,
    folder: str = "",
) -> Data:
    """Reads a graph, edges followed both ways. Features are 1 for every word listed.

    Args:
        paths: The edges, the words and the table of nodes, of one graph or of several.
        id_column: The column that edges and words refer to; it numbers the nodes.
        label_column: The column of the label.
        classes: The label of each class, sorted.
        num_words: How many words there are at least.
        folder: The folder of the graph in an archive of several.
    """
    paths = {n: p for n, p in paths.items() if n.startswith(f"{folder}/")} or paths
    edges, words, table = (
        next(path for name, path in paths.items() if name.endswith(end))
        for end in ("edges.csv", ".json", "target.csv")
    )
    options = ReadOptions(id=id_column, label=label_column)
    reading = Reading(str(table.parent), options)
    graph = read_word_files(table, edges, words, reading, num_words)
    names = graph.predicted.names
    if names not in (None, tuple(classes)):
        problem = f"has the classes {listed(names)}, not {listed(classes)}"
        raise DamagedFile(table, problem)
    data = graph.data
    nodes = np.array(graph.node_ids or range(len(data.y))).astype(np.int64)
    order = np.argsort(nodes)
    num_nodes = len(nodes)
    if not np.array_equal(nodes[order], np.arange(num_nodes)):
        raise DamagedFile(table, f"does not number its {num_nodes} nodes from 0")
    return make_graph(
        num_nodes,
        x=to_scipy(data.x)[order],
        y=data.y.numpy()[order],
        edge_index=symmetrize(nodes[data.edge_index.numpy()], num_nodes),
    )


def read_wikics(paths: dict[str, Path]) -> Data:
    """Reads WikiCS, links followed both ways. Its twenty splits share the test set."""
    (path,) = paths.values()
    try:
        content = json.loads(path.read_bytes())
        features = np.array(content["features"], dtype=np.float32)
        labels = np.array(content["labels"], dtype=np.int64)
        targets = [np.array(row, dtype=np.int64) for row in content["links"]]
        masks = {
            "train_mask": np.array(content["train_masks"], dtype=bool),
            "val_mask": np.array(content["val_masks"], dtype=bool),
            "test_mask": np.array(content["test_mask"], dtype=bool),
        }
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedFile(
            path,
            f"is not JSON with features, labels, links and masks ({first_line(error)})",
        ) from error
    num_nodes = len(labels)
    require_shape(path, "links", (len(targets),), (num_nodes,))
    source = np.repeat(np.arange(num_nodes), [len(row) for row in targets])
    target = np.concatenate([np.empty(0, np.int64), *targets])
    require_nodes(path, target, num_nodes)
    shape = masks["train_mask"].shape
    require_shape(path, "train_masks", shape[1:], (num_nodes,))
    require_shape(path, "val_masks", masks["val_mask"].shape, shape)
    require_shape(path, "test_mask", masks["test_mask"].shape, (num_nodes,))
    masks["test_mask"] = np.repeat(masks["test_mask"][None], len(masks["val_mask"]), 0)
    return make_graph(
        num_nodes,
        x=features,
        y=labels,
        edge_index=symmetrize(np.stack([source, target]), num_nodes),
        **{name: np.ascontiguousarray(mask.T) for name, mask in masks.items()},
    )
