"""The edges of a user graph: which columns are used, and which way they lead."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, counted, listed, suggest_one_of
from tempergat.data.user.options import ReadOptions, in_python, option_flag
from tempergat.data.user.reading import Question, Reading, UserGraph
from tempergat.data.user.splits import is_split_array

_OF_NODES = ("x", "y")
# Below this share of edges with a reverse edge, each edge was listed once.
_FEW = 0.2


def with_edge_columns(
    graph: UserGraph,
    source: str,
    names: Sequence[str],
    read: Callable[[str], np.ndarray],
    reading: Reading,
    names_within: Mapping[str, Sequence[str]] | None = None,
) -> UserGraph:
    """Sets `edge_attr` and `edge_weight` where the options name columns for them.

    Args:
        graph: The graph; its data are changed in place.
        source: The file, for errors.
        names: The columns there are, besides the two ends.
        read: Returns a column: one value for each edge, or one row of values.
        reading: Which of them are used. It receives a note on the others.
        names_within: What the values of a column's row are called.

    Returns:
        The graph with the names of these columns.

    Raises:
        UserError: A column asked for is missing or does not hold finite numbers, or a
            weight is negative.
    """
    options = reading.options
    features: list[np.ndarray] = []
    feature_names: list[str] = []
    for name in options.edge_features:
        _require_column(source, name, names, "edge_features")
        column = _finite(source, name, read(name))
        features.append(column)
        if names_within and name in names_within:
            feature_names += names_within[name]
        elif column.shape[1] == 1:
            feature_names.append(name)
        else:
            feature_names += [f"{name}[{at}]" for at in range(column.shape[1])]
    if options.edge_weight is not None:
        _require_column(source, options.edge_weight, names, "edge_weight")
        column = _finite(source, options.edge_weight, read(options.edge_weight))
        weight = _one_weight_per_edge(source, options.edge_weight, column)
        graph.data.edge_weight = weight
    if features:
        graph.data.edge_attr = torch.from_numpy(np.concatenate(features, axis=1))
    unused = [name for name in names if name not in reading.edge_columns]
    python = in_python("edge_weight", "edge_features")
    # Said once: in a note with the remedy, and not among what is not read.
    if len(unused) == 1:
        name, word = unused[0], shlex.quote(unused[0])
        reading.notes.append(
            f"{source}: the edge column {name} is not used; to use it, add "
            f"--edge-weight {word} or --edge-features {word} {python}"
        )
    elif unused:
        reading.notes.append(
            f"{source}: the edge columns {listed(unused)} are not used; to use some, "
            f"name them with --edge-features or --edge-weight {python}"
        )
    return replace(
        graph,
        edge_feature_names=tuple(feature_names),
        edge_weight_name=options.edge_weight,
    )


def without_edge_columns(source: str, unused: Sequence[str], reading: Reading) -> None:
    """Notes edge columns of a graph with node types, where none is used.

    Raises:
        UserError: The options name some.
    """
    if reading.options.edge_features or reading.options.edge_weight:
        raise UserError(
            f"{source} has node types, where edge features and weights are not used; "
            "leave --edge-features and --edge-weight out "
            f"{in_python('edge_features', 'edge_weight')}"
        )
    if unused:
        reading.notes.append(
            f"{source}: {listed(unused)} not used, because edge features and weights "
            "are not used in typed graphs"
        )


def _require_column(source: str, name: str, names: Sequence[str], option: str) -> None:
    if name not in names:
        remedy = suggest_one_of(name, names) if names else "leave the option out"
        raise UserError(
            f"{option_flag(option)} names {name!r}, but the edges of {source} have "
            f"{'no such column' if names else 'no columns'}; {remedy}"
        )


def _finite(source: str, name: str, column: np.ndarray) -> np.ndarray:
    """The column as a matrix of float32."""
    if column.dtype.kind not in "iufb":
        raise UserError(
            f"{source}: {name} of the edges has type {column.dtype}; save it as numbers"
        )
    with np.errstate(over="ignore"):
        values = column.astype(np.float32)
    if values.ndim == 1:
        values = values[:, None]
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        edge = int(wrong[0][0])
        raise UserError(
            f"{source}: {name} of edge {edge} is {values[tuple(wrong[0])]}, which is "
            "not a finite number; fill it or drop the edge"
        )
    return np.ascontiguousarray(values)


def _one_weight_per_edge(source: str, name: str, column: np.ndarray) -> Tensor:
    if column.shape[1] != 1:
        raise UserError(
            f"{source}: {name} has {column.shape[1]} values per edge, but a weight is "
            f"one; use them as --edge-features {shlex.quote(name)} "
            f"{in_python('edge_features')}"
        )
    negative = np.flatnonzero(column[:, 0] < 0)
    if len(negative):
        edge = int(negative[0])
        raise UserError(
            f"{source}: {name} of edge {edge} is {column[edge, 0]:g}, but a weight "
            f"cannot be negative; use it as --edge-features {shlex.quote(name)} "
            f"{in_python('edge_features')}"
        )
    return torch.from_numpy(column[:, 0].copy())


def edge_attributes(store: BaseStorage) -> list[str]:
    """The attributes of a PyG object that have one row for each edge.

    PyG also counts `neg_edge_index` and other indices of as many columns among the
    edge attributes; they are not about the edges of the graph.
    """
    count = store.edge_index.shape[1]
    # With as many nodes as edges, PyG decides by the name.
    is_unclear = store._key is None and _rows(store.get("x", store.get("y"))) == count
    return [
        name
        for name, value in store.items()
        if name not in _OF_NODES
        and not is_split_array(name)
        and "index" not in name
        and name != "face"
        and _rows(value) == count
        and ("edge" in name or not is_unclear)
    ]


def _rows(value: object) -> int | None:
    if isinstance(value, Tensor):
        return value.shape[0] if value.dim() else None
    return len(value) if isinstance(value, list | tuple) else None


def merge_edges(name: str, store: BaseStorage, bound: int, notes: list[str]) -> None:
    """Sorts edges and merges repeated ones; the first one's attributes are kept.

    Args:
        name: What the note calls the edges.
        store: The edges.
        bound: More than the number of any node.
        notes: Receives a note where some were merged.
    """
    source, target = store.edge_index.numpy()
    _, kept = np.unique(source * bound + target, return_index=True)
    _choose_edges(store, store.edge_index[:, torch.from_numpy(kept)], kept)
    merged = len(source) - len(kept)
    if merged:
        verbs = ("repeats", "is") if merged == 1 else ("repeat", "are")
        notes.append(
            f"{counted(merged, 'edge')} of {name} {verbs[0]} an earlier edge and "
            f"{verbs[1]} left out; the columns of the first one are kept"
        )


def reverse_share(edge_index: np.ndarray, bound: int) -> float:
    """The share of edges whose reverse edge is there too, without self-loops.

    Args:
        edge_index: The edges, none repeated.
        bound: More than the number of any node.
    """
    source, target = edge_index[:, edge_index[0] != edge_index[1]].astype(np.int64)
    if not len(source):
        return 1.0
    has_reverse = np.isin(target * bound + source, source * bound + target)
    return float(has_reverse.mean())


def decide_direction(
    share: float, read: UserGraph, options: ReadOptions
) -> tuple[bool | None, str]:
    """Decides whether edges without a reverse edge get one.

    Args:
        share: What `reverse_share` returned.
        read: The graph as its files give it.
        options: How it is read.

    Returns:
        The decision, None where the edges do not show it, and the same in words.
    """
    directed = options.directed
    if directed is None and read.undirected is not None:
        directed = not read.undirected
    if directed:
        return False, "followed one way"
    if directed is None and read.keeps_direction:
        return False, "followed as given; --undirected adds the reverse edges"
    if directed is None and share >= _FEW:
        return None, "refused as unclear: choose --directed or --undirected"
    return True, "the reverse edges are added; --directed follows them one way"


def set_direction(
    store: BaseStorage, bound: int, read: UserGraph, reading: Reading
) -> bool:
    """Adds reverse edges where `decide_direction` says so, with a note on a guess.

    Args:
        store: The edges, sorted and none repeated.
        bound: More than the number of any node.
        read: The graph as its files give it.
        reading: How it is read.

    Returns:
        Whether every edge is there in both directions now.

    Raises:
        UserError: The edges do not show whether the graph is directed.
    """
    name, options = reading.name, reading.options
    share = reverse_share(store.edge_index.numpy(), bound)
    if share == 1.0:
        return True
    is_added, _ = decide_direction(share, read, options)
    shown = f"{share:.0%}" if share >= 0.005 or share == 0 else "under 1%"
    if is_added is None:
        raise Question(
            f"{shown} of the edges of {name} have a reverse edge, so it is not clear "
            "whether the graph is directed; choose --directed or --undirected (in "
            "Python: ReadOptions(directed=...))",
            directed=False,
        )
    how = (
        "and edges are followed as given, from source to target; --undirected "
        "(in Python: ReadOptions(directed=False)) adds the reverse edges"
    )
    if is_added:
        _add_reverse_edges(store, bound)
        how = (
            "so it is read as an undirected graph that lists each edge once; "
            "--directed (in Python: ReadOptions(directed=True)) follows edges from "
            "source to target only"
        )
    is_said = options.directed is not None or read.undirected is not None
    if not is_said and share < _FEW:
        reading.notes.append(
            f"{shown} of the edges of {name} have a reverse edge, {how}"
        )
    return is_added


def note_one_way_types(data: HeteroData, target: str, reading: Reading) -> None:
    """Notes edge types along which nothing flows back.

    Args:
        data: The graph; edges are sorted and none repeated.
        target: The node type to classify.
        reading: Receives the note.
    """
    ends = [(a, b) for a, _, b in data.edge_types]

    def is_one_way(kind: tuple[str, str, str]) -> bool:
        start, _, end = kind
        if start != end:
            return (end, start) not in ends
        edges = data[kind].edge_index.numpy()
        is_alone = ends.count((start, end)) == 1
        return is_alone and reverse_share(edges, data[end].num_nodes) < _FEW

    one_way = ["__".join(kind) for kind in data.edge_types if is_one_way(kind)]
    remedy = "add the reverse edges, in PyG with transforms.ToUndirected"
    if all(end != target for _, end in ends):
        what = f"no edge leads to {target}, so no method uses the edges"
        reading.notes.append(f"{reading.name}: {what}; {remedy}")
    elif one_way:
        reading.notes.append(
            f"{reading.name}: no edges lead back along {listed(one_way)}; {remedy}, or "
            f"give --directed {in_python('directed')} where that is meant"
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
