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
class Choice:
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


@dataclass(frozen=True)
class Costs:
    """How many bytes a node and an edge take, and how many there may be."""

    node: float
    edge: float
    most: float


def choose_nodes(
    edge_index: Tensor, num_nodes: int, hops: int, wrong: Tensor, costs: Costs
) -> Choice:
    """The whole graph if it fits, or nodes drawn at random with all within some hops.

    Nodes that are classified wrongly and others are drawn in turn.

    Args:
        edge_index: All edges.
        num_nodes: Number of nodes.
        hops: How far a node's prediction looks: the number of layers.
        wrong: Whether each node is classified wrongly.
        costs: What fits.
    """
    num_edges = edge_index.size(1)
    if num_nodes * costs.node + (num_edges + num_nodes) * costs.edge <= costs.most:
        every = torch.arange(num_nodes)
        shown = torch.ones(num_nodes, dtype=torch.bool)
        return Choice(every, shown, shown, torch.arange(num_edges), is_whole=True)
    source = edge_index[0].numpy()
    order = np.argsort(edge_index[1].numpy(), kind="stable")
    counts = np.bincount(edge_index[1].numpy(), minlength=num_nodes)
    rows = _Rows(source[order], np.concatenate([[0], np.cumsum(counts)]))
    targets, nodes, expanded, left_out = _draw(rows, wrong.numpy(), hops, costs)
    in_page = np.array(sorted(nodes))
    ends = np.array(sorted(expanded))
    edges = np.concatenate(
        [order[rows.pointer[n] : rows.pointer[n + 1]] for n in ends] or [order[:0]]
    )
    return Choice(
        torch.from_numpy(in_page),
        torch.from_numpy(np.isin(in_page, sorted(targets))),
        torch.from_numpy(np.isin(in_page, ends)),
        torch.from_numpy(np.sort(edges)),
        is_whole=False,
        left_out=left_out,
    )


@dataclass(frozen=True)
class _Rows:
    source: np.ndarray
    pointer: np.ndarray

    def before(self, node: int) -> np.ndarray:
        return self.source[self.pointer[node] : self.pointer[node + 1]]


def _draw(
    rows: _Rows, wrong: np.ndarray, hops: int, costs: Costs
) -> tuple[set[int], set[int], set[int], int]:
    targets: set[int] = set()
    nodes: set[int] = set()
    expanded: set[int] = set()
    spent, failed, left_out = 0.0, 0, 0
    for node in _in_turn(wrong):
        near = _near(rows, node, hops, _SHARE_OF_ONE * costs.most / costs.node)
        if near is None:
            left_out += 1
            continue
        inner, all_near = near
        new_edges = sum(len(rows.before(n)) + 1 for n in inner - expanded)
        cost = len(all_near - nodes) * costs.node + new_edges * costs.edge
        if cost > _SHARE_OF_ONE * costs.most or spent + cost > costs.most:
            failed += 1
            left_out += cost > _SHARE_OF_ONE * costs.most
            if failed >= _PATIENCE:
                break
            continue
        failed = 0
        spent += cost
        targets.add(node)
        nodes |= all_near
        expanded |= inner
        if len(targets) >= _MOST_TARGETS:
            break
    return targets, nodes, expanded, left_out


def _in_turn(wrong: np.ndarray) -> list[int]:
    """All nodes in random order, wrong ones and others in turn."""
    order = np.random.default_rng(_SEED).permutation(len(wrong))
    first, second = order[wrong[order]], order[~wrong[order]]
    both = min(len(first), len(second))
    turns = np.stack([first[:both], second[:both]], axis=1).reshape(-1)
    found: list[int] = np.concatenate([turns, first[both:], second[both:]]).tolist()
    return found


def _near(
    rows: _Rows, node: int, hops: int, most: float
) -> tuple[set[int], set[int]] | None:
    """The nodes fewer than `hops` away, and all within; None if they are too many."""
    inner: set[int] = set()
    found, frontier = {node}, [node]
    for _ in range(hops):
        inner |= set(frontier)
        reached: set[int] = set()
        for one in frontier:
            reached.update(rows.before(one).tolist())
            if len(found) + len(reached) > most:
                return None
        frontier = sorted(reached - found)
        found |= reached
    return inner, found
