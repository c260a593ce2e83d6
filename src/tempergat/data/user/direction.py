"""Which way the edges of a user graph are followed."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, counted
from tempergat.data.user.edge_columns import edge_attributes
from tempergat.data.user.options import ReadOptions
from tempergat.data.user.user_graph import UserGraph

# Below this share of edges with a reverse edge, each edge was listed once.
_FEW = 0.2


def order_edges(store: BaseStorage, bound: int) -> int:
    """Sorts edges and merges repeated ones; the first one's attributes are kept.

    Args:
        store: The edges.
        bound: More than the number of any node.

    Returns:
        How many edges were merged into others.
    """
    source, target = store.edge_index.numpy()
    _, kept = np.unique(source * bound + target, return_index=True)
    _choose_edges(store, store.edge_index[:, torch.from_numpy(kept)], kept)
    return len(source) - len(kept)


def reverse_share(edge_index: np.ndarray, bound: int) -> float:
    """The share of edges whose reverse edge is there too, without self-loops.

    Args:
        edge_index: The edges, none repeated.
        bound: More than the number of any node.
    """
    source, target = edge_index[:, edge_index[0] != edge_index[1]].astype(np.int64)
    if not len(source):
        return 1.0
    found = np.isin(target * bound + source, source * bound + target)
    return float(found.mean())


def set_direction(
    name: str, store: BaseStorage, bound: int, read: UserGraph, options: ReadOptions
) -> tuple[bool, tuple[str, ...]]:
    """Decides which way edges are followed, and adds reverse edges where needed.

    Args:
        name: Name of the graph, for errors and notes.
        store: The edges, sorted and none repeated.
        bound: More than the number of any node.
        read: The graph as its files give it.
        options: How it is read.

    Returns:
        Whether every edge is there in both directions now, and a note on what was
        decided.

    Raises:
        UserError: The edges do not show whether the graph is directed.
    """
    share = reverse_share(store.edge_index.numpy(), bound)
    if share == 1.0:
        return True, ()
    directed = options.directed
    if directed is None and read.undirected is not None:
        directed = not read.undirected
    if directed is not None:
        if not directed:
            _add_reverse_edges(store, bound)
        return not directed, ()
    shown = f"{share:.0%}" if share >= 0.005 or share == 0 else "under 1%"
    if read.keeps_direction:
        if share >= _FEW:
            return False, ()
        note = (
            f"{shown} of the edges of {name} have a reverse edge, and edges are "
            "followed as given, from source to target; --undirected (in Python: "
            "ReadOptions(directed=False)) adds the reverse edges"
        )
        return False, (note,)
    if share < _FEW:
        _add_reverse_edges(store, bound)
        note = (
            f"{shown} of the edges of {name} have a reverse edge, so it is read as an "
            "undirected graph that lists each edge once; --directed (in Python: "
            "ReadOptions(directed=True)) follows edges from source to target only"
        )
        return True, (note,)
    raise UserError(
        f"{shown} of the edges of {name} have a reverse edge, so it is not clear "
        "whether the graph is directed; choose --directed or --undirected (in Python: "
        "ReadOptions(directed=...))"
    )


def planned_direction(share: float, read: UserGraph, options: ReadOptions) -> str:
    """What `set_direction` will do about edges without a reverse edge, in words.

    Args:
        share: What `reverse_share` returned.
        read: The graph as its files give it.
        options: How it is read.
    """
    directed = options.directed
    if directed is None and read.undirected is not None:
        directed = not read.undirected
    if directed is None and read.keeps_direction:
        return "followed as given; --undirected adds the reverse edges"
    if directed is None and share >= _FEW:
        return "refused as unclear: choose --directed or --undirected"
    if directed:
        return "followed one way"
    return "the reverse edges are added; --directed follows them one way"


def merged_note(name: str, merged: int) -> tuple[str, ...]:
    """A note on repeated edges; none where there were none."""
    if not merged:
        return ()
    verbs = (
        "repeats an earlier edge and is"
        if merged == 1
        else ("repeat an earlier edge and are")
    )
    return (
        f"{counted(merged, 'edge')} of {name} {verbs} left out; the columns of the "
        "first one are kept",
    )


def _add_reverse_edges(store: BaseStorage, bound: int) -> None:
    """Adds the reverse of every edge; it gets the attributes of the edge."""
    source, target = store.edge_index.numpy()
    keys = np.concatenate([source * bound + target, target * bound + source])
    # The first of equal keys is the edge itself, not a reversed one.
    keys, first = np.unique(keys, return_index=True)
    ends = np.stack([keys // bound, keys % bound])
    _choose_edges(store, torch.from_numpy(ends), first % len(source))


def _choose_edges(store: BaseStorage, edge_index: Tensor, origin: np.ndarray) -> None:
    """Replaces the edges; edge `i` gets the attributes of the old edge `origin[i]`."""
    chosen = torch.from_numpy(origin)
    for name in edge_attributes(store):
        value = store[name]
        if isinstance(value, Tensor):
            store[name] = value[chosen]
        else:
            store[name] = [value[edge] for edge in origin]
    store.edge_index = edge_index
