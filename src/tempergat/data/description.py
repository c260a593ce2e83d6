"""A dataset in words: its size, its split, and how it was read."""

import numpy as np

from tempergat.base import listed, printable
from tempergat.data.dataset import MASKS, Dataset, node_counts

# Sorting as many edges takes about a second.
_MOST_EDGES_TO_SORT = 5_000_000
_MOST_NAMES = 6


def describe(dataset: Dataset) -> str:
    """The size, the split and how a dataset was read, a line for each."""
    nodes = sum(node_counts(dataset.data).values())
    parts = [int(dataset.store[name].sum()) for name in MASKS]
    x = dataset.store.get("x")
    features = f"{x.shape[1]:,} features, " if x is not None else ""
    predicted = dataset.predicted
    names = f" ({listed(predicted.names)})" if predicted.names else ""
    lines = [
        f"{dataset.name}: {nodes:,} nodes, {dataset.data.num_edges:,} edges, "
        f"{features}{predicted.width} classes{names}"
        f"{_unlabelled(dataset, ', {} unlabelled ({})')}",
        f"split {dataset.split}; train/validation/test "
        f"{parts[0]:,}/{parts[1]:,}/{parts[2]:,}",
        reading_line(dataset),
    ]
    return printable("\n".join(filter(None, lines)), keep="\n")


def describe_direction(dataset: Dataset) -> str:
    """Which way edges are followed; empty for node types and huge graphs."""
    undirected = dataset.undirected
    if undirected is None:
        if dataset.is_heterogeneous or dataset.data.num_edges > _MOST_EDGES_TO_SORT:
            return ""
        source, target = dataset.data.edge_index.long().numpy()
        nodes = dataset.data.num_nodes
        keys, reverse = source * nodes + target, target * nodes + source
        undirected = np.array_equal(np.unique(keys), np.unique(reverse))
    if undirected:
        return "edges are followed both ways"
    return "edges are followed one way, from source to target"


def describe_reading(dataset: Dataset) -> dict[str, str]:
    """What the files of a user graph were taken for, by subject.

    Empty for datasets by name. Labels and the split are left out where the graph was
    read without them.
    """
    how = dataset.how_read
    if how is None:
        return {}
    is_labelled = dataset.predicted.width > 0
    split = f"from {listed(how.split)}" if how.split else dataset.split
    x = dataset.store.get("x")
    features = "none" if x is None else f"x, {x.shape[1]:,} without names"
    if dataset.feature_names is not None:
        features = listed(dataset.feature_names, _MOST_NAMES)
    words = {
        "label": f"from {how.label}" if is_labelled else "",
        "nodes": f"named by {how.nodes or 'row number, from 0'}",
        "features": features,
        "unlabelled": _unlabelled(dataset, "{} ({})"),
        "split": (dataset.split if dataset.is_split_made else split)
        if is_labelled
        else "",
        "edges": describe_direction(dataset).removeprefix("edges "),
        "scaled": listed(dataset.scaled_columns, _MOST_NAMES),
        "not_read": listed(how.not_read, _MOST_NAMES),
    }
    return {subject: printable(said) for subject, said in words.items() if said}


def reading_line(dataset: Dataset) -> str:
    """How a graph was read; of a dataset by name, which way edges are followed.

    A split that was made is not mentioned, because it was not read.
    """
    words = describe_reading(dataset)
    if not words:
        return describe_direction(dataset)
    if dataset.is_split_made:
        words.pop("split", None)
    parts = [f"{subject.replace('_', ' ')} {said}" for subject, said in words.items()]
    return f"read: {'; '.join(parts)}"


def _unlabelled(dataset: Dataset, words: str) -> str:
    """Puts the number of unlabelled nodes, and how that is written, into words."""
    written = {} if dataset.how_read is None else dataset.how_read.unlabelled
    count = sum(written.values())
    if not count:
        return ""
    return words.format(
        f"{count:,} {'node' if count == 1 else 'nodes'}", listed(written)
    )
