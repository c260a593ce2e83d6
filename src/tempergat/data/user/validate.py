"""Checks and normalises user graphs."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, first_line, listed
from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.features import csr_tensor, is_lost_in_float32
from tempergat.data.formats.errors import GraphError
from tempergat.data.user.edges import (
    merged_note,
    note_on_one_way_types,
    order_edges,
    set_direction,
)
from tempergat.data.user.labels import (
    MULTI_LABEL,
    NEGATIVE,
    REGRESSION,
    NoLabels,
    classes_of_numbers,
    unlabelled_note,
)
from tempergat.data.user.node_features import make_features
from tempergat.data.user.options import ReadOptions, in_python
from tempergat.data.user.splits import numbered_splits
from tempergat.data.user.user_graph import UserGraph


def normalise(source: str, read: UserGraph, options: ReadOptions) -> UserGraph:
    """Checks features and edges of a graph and normalises them in place.

    Edges are sorted and repeated ones merged. Features become float32. Features are
    made where the options say so. What is mapped stays as it is.

    Args:
        source: Where the graph came from, for errors.
        read: The graph.
        options: How the graph is read.

    Returns:
        The graph with what was decided about it.

    Raises:
        UserError: The graph contradicts itself.
    """
    data = read.data
    if read.mapped_hashes:
        return read
    check_features(source, data)
    require_finite(source, data)
    undirected = None
    notes = read.notes
    for kind, edges, sizes in edge_stores(source, data):
        bound = max(sizes)
        name = source if kind is None else f"{'__'.join(kind)} in {source}"
        notes += merged_note(name, order_edges(edges, bound))
        if kind is None:
            undirected, decided = set_direction(source, edges, bound, read, options)
            notes += decided
        elif options.directed is False and read.keeps_direction:
            raise UserError(
                f"directed is False, but {source} has the edge type {kind}; add the "
                "reverse edges with torch_geometric.transforms.ToUndirected"
            )
    if read.target is not None and not options.directed:
        notes += note_on_one_way_types(source, data, read.target)
    read = replace(read, undirected=undirected, notes=notes)
    return _with_features(source, read, options)


def _with_features(source: str, read: UserGraph, options: ReadOptions) -> UserGraph:
    data = read.data
    if options.make_features is None:
        return read
    made = in_python("make_features")
    if not isinstance(data, Data):
        raise UserError(f"{source} has node types; leave --make-features out {made}")
    if isinstance(data.get("x"), Tensor):
        raise UserError(
            f"{source} has {data.x.shape[1]} features; leave --make-features out {made}"
        )
    edges = data.edge_index.numpy()
    data.x, names = make_features(options.make_features, source, edges, data.num_nodes)
    return replace(read, feature_names=names)


EdgeStore = tuple[tuple[str, str, str] | None, BaseStorage, tuple[int, int]]


def edge_stores(source: str, data: Data | HeteroData) -> list[EdgeStore]:
    """Checks edges and makes them int64, in place; see `check_edges`."""
    stores = check_edges(source, data)
    for _, store, _ in stores:
        store.edge_index = store.edge_index.long()
    return stores


def check_edges(source: str, data: Data | HeteroData) -> list[EdgeStore]:
    """Checks the edges of a graph, which may be mapped into memory.

    The number of nodes is set on every node type. Otherwise PyG would guess it from the
    edges and miss isolated nodes.

    Returns:
        Every edge type with its storage and the number of nodes at either end.

    Raises:
        GraphError: Edges are missing, of a wrong shape or type, or lead to a node that
            does not exist.
    """
    stores: list[EdgeStore] = []
    if isinstance(data, HeteroData):
        ends = [end for kind in data.edge_types for end in (kind[0], kind[2])]
        for name in {*data.node_types, *ends}:
            data[name].num_nodes = count_nodes(source, data, name)
        for kind in data.edge_types:
            sizes = (data[kind[0]].num_nodes, data[kind[2]].num_nodes)
            stores.append((kind, data[kind], sizes))
        if not stores:
            raise UserError(f"{source} has no edge types; add an edge_index for one")
    else:
        count = data.num_nodes = count_nodes(source, data, None)
        stores.append((None, data, (count, count)))
    for kind, store, sizes in stores:
        _check_edges(source, "" if kind is None else f" of {kind}", store, sizes)
    return stores


def count_nodes(source: str, data: Data | HeteroData, kind: str | None) -> int:
    """The number of nodes of a type; `kind` is None in a homogeneous graph.

    Raises:
        GraphError: It is not known.
    """
    store = data if kind is None else data[kind]
    for name in ("x", "y"):
        value = store.get(name)
        if isinstance(value, Tensor) and value.dim() > 0:
            return int(value.shape[0])
    count = store.get("num_nodes")
    if not isinstance(count, int) or count < 0:
        of_kind = "" if kind is None else f" of {kind}"
        problem = f"the number of nodes{of_kind} is unknown"
        raise GraphError(f"{source}:", problem, "set x or num_nodes")
    return count


def _check_edges(
    source: str, where: str, store: BaseStorage, sizes: tuple[int, int]
) -> None:
    ends = store.get("edge_index")
    if ends is None:
        raise GraphError(
            source,
            f"has no edge_index{where}, only {', '.join(store.keys())}",
            "save the edges as an edge_index of shape (2, edges)",
        )
    name = f"edge_index{where}"
    if not isinstance(ends, Tensor) or ends.dim() != 2 or ends.shape[0] != 2:
        shape = tuple(ends.shape) if isinstance(ends, Tensor) else type(ends).__name__
        problem = f"{name} is {shape}"
        raise GraphError(f"{source}:", problem, "make its shape (2, edges)")
    if ends.is_floating_point() or ends.is_complex() or ends.dtype == torch.bool:
        problem = f"{name} has type {ends.dtype}"
        raise GraphError(f"{source}:", problem, "make it integers")
    for row, (values, size) in enumerate(zip(ends, sizes, strict=True)):
        # The extremes take no memory, which the edges of a mapped graph may exceed.
        if not len(values) or (int(values.min()) >= 0 and int(values.max()) < size):
            continue
        at = int(torch.nonzero((values < 0) | (values >= size))[0])
        remedy = "add the node or drop the edge"
        if _counts_from_one(ends, sizes):
            remedy = "it seems to count nodes from 1: subtract 1 from edge_index"
        raise GraphError(
            f"{source}:",
            f"{name}[{row}, {at}] is {int(values[at])}, but there are {size} nodes "
            f"(0..{size - 1})",
            remedy,
        )


def _counts_from_one(ends: Tensor, sizes: tuple[int, int]) -> bool:
    """Whether the smallest index is 1 and the largest is the number of nodes."""
    past = [int(values.max()) - size for values, size in zip(ends, sizes, strict=True)]
    return int(ends.min()) == 1 and max(past) == 0


def check_labels(source: str, read: UserGraph) -> UserGraph:
    """Checks labels and makes them classes from 0 in int64, in place.

    Returns:
        The graph with the names of its classes.

    Raises:
        UserError: They are missing, or not classes.
    """
    if read.label_name is not None:
        # Those of a table have become classes with it.
        return read
    store = read.store
    labels = store.get("y")
    if not isinstance(labels, Tensor):
        raise NoLabels(f"{source} has no labels y; give every node a class, or -1")
    if labels.dim() == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dim() != 1 or labels.is_complex():
        raise UserError(
            f"{source}: y has shape {tuple(labels.shape)}, but {MULTI_LABEL}, like "
            "y.argmax(1) where each row has a single 1"
        )
    written = {"-1": labels == UNLABELLED, "nan": labels.isnan()}
    counts = {word: int(is_so.sum()) for word, is_so in written.items()}
    notes = unlabelled_note(source, counts["-1"])
    counts = {word: count for word, count in counts.items() if count}
    read = replace(read, how_read=replace(read.how_read, unlabelled=counts))
    if labels.is_floating_point():
        whole = torch.where(labels.isnan(), UNLABELLED, labels)
        if not torch.isfinite(whole).all() or (whole != whole.round()).any():
            raise UserError(f"{source}: y holds fractions, but {REGRESSION}")
        labels = whole
    labels = labels.long()
    known = labels != UNLABELLED
    negative = torch.nonzero(labels < UNLABELLED)
    if len(negative):
        row = int(negative[0])
        raise UserError(f"{source}: y[{row}] is {int(labels[row])}; {NEGATIVE}")
    if not known.any():
        raise NoLabels(f"{source} has no labelled node; label some nodes")
    classes, names, more = classes_of_numbers(
        source, labels.numpy(), known.numpy(), many=False
    )
    store.y = torch.from_numpy(classes)
    return replace(read, class_names=names, notes=(*read.notes, *notes, *more))


def classes_in_splits(labels: np.ndarray, masks: Mapping[str, Tensor]) -> np.ndarray:
    """The classes that have a node in some split, in order."""
    used = np.zeros(len(labels), dtype=bool)
    for mask in masks.values():
        used |= mask.reshape(len(labels), -1).any(dim=1).numpy()
    return np.unique(labels[used & (labels != UNLABELLED)])


def drop_unused_classes(
    source: str, read: UserGraph, masks: Mapping[str, Tensor]
) -> UserGraph:
    """Makes nodes unlabelled whose class is in no split, in place.

    Args:
        source: Where the graph came from, for the note.
        read: The graph, with checked labels.
        masks: The masks of all splits; empty where a split will be made.
    """
    if not masks:
        return read
    labels = read.store.y.numpy()
    kept = classes_in_splits(labels, masks)
    count = int(labels.max()) + 1
    if not len(kept) or len(kept) == count:
        return read
    names = read.class_names or tuple(str(number) for number in range(count))
    dropped = [names[at] for at in range(count) if at not in kept]
    position = np.full(count + 1, UNLABELLED, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    read.store.y = torch.from_numpy(position[labels])
    one = len(dropped) == 1
    note = (
        f"{source}: no split contains {'class' if one else 'classes'} "
        f"{listed(dropped)}, so {'it is' if one else 'they are'} left out; --split "
        "60/20/20 makes a split with all classes"
    )
    kept_names = tuple(names[at] for at in kept)
    return replace(read, class_names=kept_names, notes=(*read.notes, note))


def note_on_unseen_classes(
    source: str, read: UserGraph, masks: Mapping[str, Tensor]
) -> tuple[str, ...]:
    """A note on classes of validation or test nodes without a training node.

    Args:
        source: Where the graph came from, for the note.
        read: The graph, with checked labels.
        masks: The masks of all splits; empty where a split will be made.
    """
    labels = read.store.y.numpy()
    names = read.class_names or tuple(map(str, range(int(labels.max()) + 1)))
    unseen: dict[str, None] = {}
    for split in numbered_splits(masks) or ([dict(masks)] if masks else []):
        known = np.unique(labels[split[MASKS[0]].numpy()])
        other = np.unique(labels[(split[MASKS[1]] | split[MASKS[2]]).numpy()])
        others = np.setdiff1d(other[other != UNLABELLED], known)
        # Training nodes of one class are refused, whatever the others are.
        unseen |= {names[at]: None for at in others if len(known) > 1}
    if not unseen:
        return ()
    word = "class" if len(unseen) == 1 else "classes"
    return (
        f"{source}: no training node is of {word} {listed(list(unseen))}, so no method "
        "can classify those nodes of the test or validation set; --split 60/20/20 "
        "makes a split with all classes",
    )


def check_features(source: str, data: Data | HeteroData) -> None:
    """Checks features and makes them float32, in place.

    Raises:
        GraphError: They are not matrices, or do not fit the labels.
    """
    for store in data.node_stores:
        x = store.get("x")
        if x is None:
            continue
        where = "x" if store._key is None else f"x of {store._key}"
        if not isinstance(x, Tensor) or x.dim() != 2 or x.is_complex():
            shape = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            problem = f"{where} is {shape}"
            raise GraphError(f"{source}:", problem, "make it nodes x features")
        labels = store.get("y")
        if isinstance(labels, Tensor) and labels.shape[0] != x.shape[0]:
            remedy = "give both one row per node"
            if labels.shape[0] == 1:
                remedy += (
                    "; where the label is that of a whole graph, as of a molecule, use "
                    "the layers in a model of your own: here nodes are classified"
                )
            problem = f"{where} has {x.shape[0]} rows, but y has {labels.shape[0]}"
            raise GraphError(f"{source}:", problem, remedy)
        narrow = x.float()
        if x.layout == torch.strided and x.dtype in (torch.float64, torch.int64):
            columns = zip(x.T.numpy(), narrow.T.numpy(), strict=True)
            lost = [at for at, pair in enumerate(columns) if is_lost_in_float32(*pair)]
            if lost:
                raise GraphError(
                    f"{source}:",
                    f"column {lost[0]} of {where} holds numbers like "
                    f"{x[0, lost[0]].item():g}, whose differences are lost in 32 bits",
                    "subtract the smallest of them from all",
                )
        store.x = _checked_sparse(source, where, narrow)


def _checked_sparse(source: str, where: str, x: Tensor) -> Tensor:
    """Refuses a sparse matrix whose indices would lead outside its arrays."""
    if x.layout != torch.sparse_csr:
        return x
    try:
        parts = (x.crow_indices().numpy(), x.col_indices().numpy(), x.values().numpy())
        return csr_tensor(*parts, x.shape[1])
    except RuntimeError as error:
        problem = f"{where} is a broken sparse matrix ({first_line(error)})"
        raise GraphError(f"{source}:", problem, "save it again") from error


def require_finite(source: str, data: Data | HeteroData) -> None:
    """Checks that features, which may be mapped into memory, are finite in float32.

    Raises:
        GraphError: One is not.
    """
    for store in data.node_stores:
        x = store.get("x")
        if x is None:
            continue
        where = "x" if store._key is None else f"x of {store._key}"
        values = x.values() if x.layout == torch.sparse_csr else x
        # NaN is both the least and the greatest of numbers with a NaN.
        extremes = values.aminmax() if values.numel() else ()
        if all(torch.isfinite(extreme.float()) for extreme in extremes):
            continue
        wrong = torch.nonzero(~torch.isfinite(values.float()))[0]
        place = ", ".join(str(int(index)) for index in wrong)
        raise GraphError(
            f"{source}:",
            f"{where} holds {float(values[tuple(wrong)])} at [{place}]",
            "fill or drop values that are not finite",
        )
