"""Checks how many neighbours are drawn in each hop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tempergat.base import UserError, suggest_one_of
from tempergat.sampling.engines.hops import EdgeType


def checked_fanout(fanout: Any) -> list[int]:
    """The fanout of each hop.

    Raises:
        UserError: It is not a list of whole numbers that are -1 or more.
    """
    if isinstance(fanout, Mapping):
        raise UserError(
            "a fanout by edge type needs HeteroData; for a graph without types give a "
            "list, for example [15, 10]"
        )
    if isinstance(fanout, str) or not isinstance(fanout, Sequence) or not fanout:
        raise UserError(
            f"fanout must be a list with one number for each hop, for example "
            f"[15, 10], got {fanout!r}"
        )
    for count in fanout:
        if isinstance(count, bool) or not isinstance(count, int) or count < -1:
            raise UserError(
                f"fanout {list(fanout)} has the entry {count!r}; use a whole number of "
                "neighbours, or -1 for all of them"
            )
    return list(fanout)


def checked_typed_fanout(
    fanout: Any, edge_types: Sequence[EdgeType]
) -> dict[EdgeType, list[int]]:
    """The fanout of each hop, by edge type.

    Args:
        fanout: One list for all edge types, or a list for each.
        edge_types: The edge types of the graph.

    Raises:
        UserError: An edge type is unknown or missing, or a list is wrong.
    """
    if not isinstance(fanout, Mapping):
        return {kind: checked_fanout(fanout) for kind in edge_types}
    for kind in fanout:
        if kind not in edge_types:
            near = suggest_one_of(str(kind), [str(known) for known in edge_types])
            raise UserError(
                f"the graph has no edge type {kind!r} of the fanout; {near}"
            )
    for kind in edge_types:
        if kind not in fanout:
            hops = len(next(iter(fanout.values()), [0]))
            raise UserError(
                f"the fanout has no entry for the edge type {kind!r}; add one, "
                f"{[0] * hops} to draw none of its edges"
            )
    lists = {kind: checked_fanout(fanout[kind]) for kind in edge_types}
    lengths = {len(counts) for counts in lists.values()}
    if len(lengths) > 1:
        raise UserError(
            f"the fanouts have {' and '.join(map(str, sorted(lengths)))} hops; give "
            "every edge type as many (0 draws none)"
        )
    return lists
