"""Which nodes of a graph are in the page: all, or some with all that they depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_SEED = 0
_MOST_TARGETS = 400
# A node may take this share of what fits.
_SHARE_OF_ONE = 0.1
# After so many nodes in a row that did not fit, the page is full.
_PATIENCE = 200


@dataclass(frozen=True)
class NodeSample:
    """The nodes and edges that a page holds.

    Attributes:
        nodes: The numbers of the nodes in the graph, ascending, int64.
        shown: Which of them can be looked at: all that they depend on is there.
        has_edges: Which of them have their incoming edges there; others have none.
        edges: The columns of ``edge_index`` that are there, int64.
        is_whole: Whether it is the whole graph.
        left_out: How many nodes were left out because too many nodes are near them.
    """

    nodes: Tensor
    shown: Tensor
    has_edges: Tensor
    edges: Tensor
    is_whole: bool
    left_out: int = 0


def sample_nodes(
    edge_index: Tensor,
    wrong: Tensor,
    hops: int,
    *,
    node_size: float,
    edge_size: float,
    most: float,
) -> NodeSample:
    """The whole graph if it fits, or nodes drawn at random with all within some hops.

    Nodes that are classified wrongly and others are drawn in turn.

    Args:
        edge_index: All edges.
        wrong: Whether each node is classified wrongly.
        hops: How far a node's prediction looks: the number of layers.
        node_size: How much of the page a node takes.
        edge_size: How much of it an edge takes.
        most: How much there may be.
    """
    num_nodes, num_edges = wrong.size(0), edge_index.size(1)
    if num_nodes * node_size + (num_edges + num_nodes) * edge_size <= most:
        every = torch.arange(num_nodes)
        shown = torch.ones(num_nodes, dtype=torch.bool)
        return NodeSample(every, shown, shown, torch.arange(num_edges), is_whole=True)
    graph = _IncomingEdges(edge_index, num_nodes)
    targets: set[int] = set()
    nodes: set[int] = set()
    expanded: set[int] = set()
    spent, failed, left_out = 0.0, 0, 0
    for node in _in_turn(wrong.numpy()):
        near = _near(graph, node, hops, _SHARE_OF_ONE * most / node_size)
        if near is None:
            left_out += 1
            continue
        inner, all_near = near
        new_edges = sum(len(graph.edges(n)) + 1 for n in inner - expanded)
        size = len(all_near - nodes) * node_size + new_edges * edge_size
        if size > _SHARE_OF_ONE * most or spent + size > most:
            failed += 1
            left_out += size > _SHARE_OF_ONE * most
            if failed >= _PATIENCE:
                break
            continue
        failed = 0
        spent += size
        targets.add(node)
        nodes |= all_near
        expanded |= inner
        if len(targets) >= _MOST_TARGETS:
            break
    in_page, ends = np.array(sorted(nodes)), np.array(sorted(expanded))
    edges = np.concatenate([graph.edges(n) for n in ends] or [graph.order[:0]])
    return NodeSample(
        torch.from_numpy(in_page),
        torch.from_numpy(np.isin(in_page, sorted(targets))),
        torch.from_numpy(np.isin(in_page, ends)),
        torch.from_numpy(np.sort(edges)),
        is_whole=False,
        left_out=left_out,
    )


class _IncomingEdges:
    """The edges of a graph by the node that they lead to."""

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        self.source, target = edge_index.numpy()
        self.order = np.argsort(target, kind="stable")
        counts = np.bincount(target, minlength=num_nodes)
        self._pointer = np.concatenate([[0], np.cumsum(counts)])

    def edges(self, node: int) -> np.ndarray:
        """The columns of the edges that lead to a node."""
        return self.order[self._pointer[node] : self._pointer[node + 1]]


def _in_turn(wrong: np.ndarray) -> list[int]:
    """All nodes in random order, wrong ones and others in turn."""
    order = np.random.default_rng(_SEED).permutation(len(wrong))
    first, second = order[wrong[order]], order[~wrong[order]]
    both = min(len(first), len(second))
    turns = np.stack([first[:both], second[:both]], axis=1).reshape(-1)
    nodes: list[int] = np.concatenate([turns, first[both:], second[both:]]).tolist()
    return nodes


def _near(
    graph: _IncomingEdges, node: int, hops: int, most: float
) -> tuple[set[int], set[int]] | None:
    """The nodes fewer than `hops` away, and all within; None if they are too many."""
    inner: set[int] = set()
    within, frontier = {node}, [node]
    for _ in range(hops):
        inner |= set(frontier)
        reached: set[int] = set()
        for one in frontier:
            reached.update(graph.source[graph.edges(one)].tolist())
            if len(within) + len(reached) > most:
                return None
        frontier = sorted(reached - within)
        within |= reached
    return inner, within
