"""What a dataset needs, estimated from the counts of the catalogue alone."""

from collections.abc import Sequence

from tempergat.data.catalog.entries import Entry

# Published tables are compressed to about this many bytes for each number.
_RAW_BYTES = 4
# A list of Python numbers takes about this many bytes for each of them; the files of
# OAG hold such lists.
_LISTED_BYTES = 32
# Edges are sorted as keys of 8 bytes, beside the table they are read from.
_BYTES_PER_EDGE = 40


def disk_bytes(entry: Entry) -> tuple[int, int]:
    """Disk for the raw files, and for the arrays that are kept of them.

    The archive and what is unpacked from it are there at the same time. Where the size
    of a file is not known, it is estimated from what it holds.
    """
    features, edges = _numbers(entry)
    raw = entry.download_bytes
    if raw is None:
        raw = _RAW_BYTES * (features + edges)
    if any(file.members for file in entry.files):
        raw *= 2
    kept = 4 * features + 4 * edges + 11 * entry.num_nodes
    return raw, kept if entry.keep_processed else 0


def reading_bytes(entry: Entry) -> int:
    """Memory to read the raw files."""
    features, edges = _numbers(entry)
    per_feature = _LISTED_BYTES if entry.reader.endswith("read_oag") else 4
    return per_feature * features + _BYTES_PER_EDGE * edges // 2


def step_bytes(
    entry: Entry,
    width: int,
    num_layers: int,
    batch_size: int | None = None,
    fanout: Sequence[int] = (),
) -> int:
    """Memory of a training step at most, by the formulas of docs/large.md.

    Args:
        entry: The dataset.
        width: The width of a layer, all heads together.
        num_layers: The number of layers.
        batch_size: Seeds of a batch; None for the whole graph.
        fanout: How many neighbours of each edge type are drawn, hop by hop; -1 for all.
    """
    num_edges, num_features = entry.num_edges or 0, entry.num_features or 0
    nodes, edge_bytes = entry.num_nodes, 40 * num_edges
    if batch_size is not None:
        edge_bytes = 8 * entry.num_nodes + 4 * num_edges
        nodes = batch_nodes(entry, batch_size, fanout)
    return edge_bytes + 4 * nodes * (num_features + 5 * num_layers * width)


def batch_nodes(entry: Entry, batch_size: int, fanout: Sequence[int]) -> int:
    """Nodes of a batch at most: those it has where no two share a neighbour."""
    drawn = reached = batch_size
    for count in fanout:
        drawn *= (entry.edge_types or 1) * (count if count > 0 else entry.num_nodes)
        reached += drawn
    return min(entry.num_nodes, reached)


def _numbers(entry: Entry) -> tuple[int, int]:
    """How many numbers the features and the ends of the edges are."""
    return entry.num_nodes * (entry.num_features or 0), 2 * (entry.num_edges or 0)
