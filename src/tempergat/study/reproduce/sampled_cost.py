"""What sampled training takes, by arithmetic: nothing of the graph is read."""

import math
from typing import NamedTuple

import torch

from tempergat.data import Entry
from tempergat.nn import METHODS
from tempergat.training import RunConfig

FLOAT_BYTES = 4
# How many tensors of a layer a step holds at its peak, and copies of its weights.
_NODE_TENSORS = 6
_EDGE_TENSORS = 4
_WEIGHT_COPIES = 5
# A forward pass costs one part of a training step, its gradients two.
_PARTS_OF_A_STEP = 3

# Operations per second in float32, and where they were measured: whole steps of
# `temp_gated` with the settings of ogbn-products (benchmarks/sampling.py), and for wide
# layers on a GPU with those of the typed datasets (benchmarks/typed.py).
_SPEEDS = {
    "cuda": (19e12, "on an H200"),
    "cpu": (40e9, "on a core of an AMD EPYC, for torch's {threads} threads"),
}
_WIDE, _WIDE_SPEED = 1024, 40e12
# Nodes with a label, and those of them in the training part.
_LABELLED = {
    "ogbn-products": (2_449_029, 196_615),
    "reddit": (232_965, 153_431),
    "ogbn-mag": (736_389, 629_571),
    "mag-year": (736_389, 368_194),
    "pokec": (1_632_803, 816_401),
}
# Neighbours drawn for a node on average, where they are far fewer than its edges: most
# edges of pokec are of few types (benchmarks/typed.py).
_MEAN_DRAWS = {"pokec": 16.0}


class BatchSizes(NamedTuple):
    """Nodes and edges of a batch up to each hop, the seeds first."""

    nodes: list[int]
    edges: list[int]


def batch_sizes(entry: Entry, config: RunConfig, batch_size: int) -> BatchSizes:
    """How large a batch is on average."""
    edges = entry.num_edges or 0
    nodes, drawn = [batch_size], [0]
    for fanout in config.fanout or ():
        # A node draws from every relation, but on average no more than it has edges.
        most = _MEAN_DRAWS.get(entry.name, edges / entry.num_nodes)
        each = most if fanout < 0 else min(fanout * max(entry.edge_types, 1), most)
        new = (nodes[-1] - (nodes[-2] if len(nodes) > 1 else 0)) * each
        drawn.append(drawn[-1] + int(new))
        # Some are drawn several times.
        share = 1.0 - math.exp(-(drawn[-1] + nodes[0]) / entry.num_nodes)
        nodes.append(int(share * entry.num_nodes))
    return BatchSizes(nodes, drawn)


def sampled_bytes(entry: Entry, config: RunConfig) -> int:
    """The graph with its features, and what a step on a batch holds."""
    edges, hidden = entry.num_edges or 0, config.hidden_channels
    nodes, drawn = batch_sizes(entry, config, int(config.batch_size or 0))
    values, hops = 0, len(nodes) - 1
    for after in range(config.num_layers):
        rows = nodes[min(after, hops)] + nodes[min(after + 1, hops)]
        values += rows * hidden * _NODE_TENSORS // 2
        values += drawn[min(after + 1, hops)] * config.heads * _EDGE_TENSORS
    values += entry.num_nodes * entry.num_features + 2 * edges
    if entry.target is not None:
        # At most all nodes have learned vectors, with two moments and the best epoch's.
        values += 4 * entry.num_nodes * (config.shared_channels or hidden)
    values += _WEIGHT_COPIES * hidden**2 * config.num_layers
    return FLOAT_BYTES * values


def sampled_seconds(
    entry: Entry, config: RunConfig, device: torch.device
) -> tuple[float, str]:
    """The time of one run, and what it is estimated from."""
    # Where the counts are not known: half of the nodes, 70 % of them for training.
    labelled, train = _LABELLED.get(
        entry.name, (entry.num_nodes // 2, int(0.35 * entry.num_nodes))
    )
    step = _forward_operations(entry, config, int(config.batch_size or 1))
    work = _PARTS_OF_A_STEP * step * train / int(config.batch_size or 1)
    scored = int(config.eval_batch_size or config.batch_size or 1)
    # After every epoch all nodes with labels are scored.
    work += _forward_operations(entry, config, scored) * labelled / scored
    speed, where = _SPEEDS["cuda" if device.type == "cuda" else "cpu"]
    threads = 1 if device.type == "cuda" else torch.get_num_threads()
    graph = "ogbn-products' size"
    if device.type == "cuda" and config.hidden_channels >= _WIDE:
        speed, graph = _WIDE_SPEED, "the typed datasets' sizes"
    source = (
        f"from the arithmetic of a step, at the speed of steps on {graph} measured "
        f"{where.format(threads=threads)}"
    )
    return config.epochs * work / (speed * threads), source


def _forward_operations(entry: Entry, config: RunConfig, batch_size: int) -> float:
    """Multiplications and additions of a forward pass on a batch."""
    nodes, drawn = batch_sizes(entry, config, batch_size)
    hidden, hops = config.hidden_channels, len(nodes) - 1
    first = config.shared_channels or entry.num_features
    # The maps of node types into the shared space.
    total = 0.0
    if entry.target is not None:
        total += 2.0 * nodes[-1] * entry.num_features * first
    has_gate = METHODS[config.method].gate is not None
    for after in range(config.num_layers):
        width = first if after == config.num_layers - 1 else hidden
        rows = nodes[min(after + 1, hops)]
        if has_gate:
            rows += nodes[min(after, hops)]
        total += 2.0 * rows * width * hidden
        total += 4.0 * drawn[min(after + 1, hops)] * hidden
    return total
