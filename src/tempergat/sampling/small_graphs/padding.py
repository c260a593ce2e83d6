"""Batches of small graphs padded to one size: every step has the same shapes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from tempergat.base import UserError
from tempergat.sampling.small_graphs.graph_set import GraphSet

# How many batches are drawn to choose a size, and the share of them that may be larger
# in nodes, and again in edges: half of what is promised, since these are draws.
_DRAWN, _LARGER = 20_000, 2.5e-4
# Two nodes, so that no edge of the padding is a self-loop.
_LEAST = 2


class PaddedSize(NamedTuple):
    """How many nodes and edges padded batches have."""

    nodes: int
    edges: int


def padded_size(
    graphs: GraphSet, chosen: np.ndarray, batch_size: int, shuffle: bool
) -> PaddedSize:
    """The size that at most one batch in a thousand exceeds.

    Without shuffling it is that of the largest batch.

    Args:
        graphs: The set.
        chosen: The graphs that batches are made of, in their order.
        batch_size: How many graphs a batch has.
        shuffle: Whether batches are drawn.
    """
    assert graphs.nodes is not None
    assert graphs.edges is not None
    largest = []
    for starts in (graphs.nodes, graphs.edges):
        sizes = np.diff(starts)[chosen]
        count = min(batch_size, len(sizes))
        if shuffle and count < len(sizes):
            # With repeats, which makes sums vary a little more than in an epoch.
            draws = np.random.default_rng(0)
            sums = np.concatenate(
                [
                    sizes[draws.integers(len(sizes), size=(part, count))].sum(1)
                    for part in [_DRAWN // 100] * 100
                ]
            )
            size = int(np.quantile(sums, 1 - _LARGER, method="higher"))
        else:
            size = max(
                int(sizes[k : k + count].sum()) for k in range(0, len(sizes), count)
            )
        largest.append(size)
    return PaddedSize(largest[0] + _LEAST, largest[1])


def levels_of(graphs: GraphSet) -> dict[str, str]:
    """Whether each attribute has a row for each "node", "edge" or "graph".

    Raises:
        UserError: One has none of these, or the graphs have no nodes or edges.
    """
    if graphs.nodes is None or graphs.edges is None or graphs.edge_index is None:
        raise UserError(
            "padded=True needs graphs with edge_index and a number of nodes; pass "
            "padded=False"
        )
    one_each = np.arange(len(graphs) + 1)
    starts_of = {"node": graphs.nodes, "edge": graphs.edges, "graph": one_each}
    levels = {}
    for name, column in graphs.columns.items():
        counts_nodes = column.rise is None or np.array_equal(
            column.rise, np.diff(graphs.nodes)[None]
        )
        # Where graphs have one node each, or as many edges as nodes, the name decides.
        order = ("graph", "node", "edge")
        if "edge" in name:
            order = ("edge", "graph", "node")
        elif name in ("x", "pos", "batch"):
            order = ("node", "graph", "edge")
        for level in order:
            if counts_nodes and np.array_equal(column.starts, starts_of[level]):
                levels[name] = level
                break
        else:
            raise UserError(
                f"padded=True cannot pad '{name}', which has no row for each node, "
                "edge or graph, or counts something else than nodes; leave it out with "
                f"exclude_keys=['{name}']"
            )
    return levels


def padded_batch(
    graphs: GraphSet, levels: dict[str, str], numbers: np.ndarray, size: PaddedSize
) -> Any:
    """A batch with padding after its nodes and edges.

    The padding is like one more graph: ``batch`` is ``num_graphs`` in it, and its edges
    join its nodes. Everything else in it is 0. ``num_real_nodes``, 0-d, says how many
    nodes are before it. A batch that is too large is padded by two nodes.

    Args:
        graphs: The set.
        levels: What `levels_of` gives.
        numbers: The numbers of the batch's graphs in the set.
        size: The size to pad to.
    """
    assert graphs.nodes is not None
    assert graphs.edges is not None
    nodes, edges = (
        int(np.diff(x)[numbers].sum()) for x in (graphs.nodes, graphs.edges)
    )
    more = {"node": size.nodes - nodes, "edge": size.edges - edges, "graph": 0}
    if more["node"] < _LEAST or more["edge"] < 0:
        more |= {"node": _LEAST, "edge": 0}
    batch = graphs.batch(numbers, {name: more[level] for name, level in levels.items()})
    for name, level in levels.items():
        column, room = graphs.columns[name], more[level]
        if not room:
            continue
        padding = batch[name].narrow(column.dim, -room, room)
        if column.data is not None:
            # A number of a node is that of the first node of the padding.
            padding.fill_(0 if column.rise is None else nodes)
            continue
        padding.fill_(len(numbers))
        name = f"{name.removesuffix('batch')}ptr"
        batch[name] = torch.cat([batch[name], batch[name][-1:] + room])
    # A ring through the nodes of the padding, as often as there are edges for it.
    ring = torch.arange(more["edge"], device=graphs.device)
    ends = torch.stack([ring, ring + 1]) % more["node"] + nodes
    batch.edge_index[:, edges:] = ends
    batch.num_real_nodes = torch.tensor(nodes, device=graphs.device)
    if graphs.has_num_nodes:
        batch.num_nodes = nodes + more["node"]
    return batch
