"""What a graph of one's own must satisfy, and how it is put in order."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.data.arrays import symmetrize
from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.features import csr_tensor
from tempergat.data.splits import (
    DEFAULT_SPLIT,
    DEFAULT_SPLIT_SEED,
    make_split,
    set_masks,
)
from tempergat.errors import UserError


def normalise(
    path: Path, data: Data | HeteroData, target: str | None, directed: bool
) -> int:
    """Checks a graph and puts it in order, in place.

    Repeated edges are merged and edges sorted; features become float32; labels int64.

    Returns:
        The number of classes.

    Raises:
        UserError: The graph contradicts itself.
    """
    store = data if target is None else data[target]
    num_classes = check_labels(path, store)
    check_features(path, data)
    _require_finite(path, data)
    for kind, edges, sizes in edge_stores(path, data):
        _order_edges(edges, max(sizes))
        if directed:
            continue
        described = [name for name in edges.edge_attrs() if name != "edge_index"]
        if (kind is not None and kind[0] != kind[2]) or described:
            raise UserError(
                f"directed is False, but {path} has "
                + (f"the edge attribute {described[0]}" if described else f"{kind}")
                + "; add the reverse edges with torch_geometric.transforms.ToUndirected"
            )
        ends = symmetrize(edges.edge_index.numpy(), sizes[0])
        edges.edge_index = torch.from_numpy(ends.astype(np.int64))
    return num_classes


def _order_edges(store: BaseStorage, bound: int) -> None:
    """Sorts edges and merges repeated ones; attributes go with the first of them."""
    source, target = store.edge_index.numpy()
    _, kept = np.unique(source * bound + target, return_index=True)
    chosen = torch.from_numpy(kept)
    for name in store.edge_attrs():
        if name == "edge_index":
            store.edge_index = store.edge_index[:, chosen]
        else:
            store[name] = store[name][chosen]


EdgeStore = tuple[tuple[str, str, str] | None, BaseStorage, tuple[int, int]]


def edge_stores(path: Path, data: Data | HeteroData) -> list[EdgeStore]:
    """Every edge type with its storage and the number of nodes at either end.

    Raises:
        UserError: Edges are missing, of a wrong shape or type, or lead to a node that
            does not exist.
    """
    stores: list[EdgeStore] = []
    if isinstance(data, HeteroData):
        for kind in data.edge_types:
            sizes = (_count(path, data, kind[0]), _count(path, data, kind[2]))
            stores.append((kind, data[kind], sizes))
    else:
        count = _count(path, data, None)
        stores.append((None, data, (count, count)))
    for kind, store, sizes in stores:
        _check_edges(path, "" if kind is None else f" of {kind}", store, sizes)
    return stores


def _count(path: Path, data: Data | HeteroData, kind: str | None) -> int:
    store = data if kind is None else data[kind]
    for name in ("x", "y"):
        value = store.get(name)
        if isinstance(value, Tensor) and value.dim() > 0:
            return int(value.shape[0])
    count = store.get("num_nodes")
    if not isinstance(count, int) or count < 0:
        raise UserError(
            f"{path}: the number of nodes{'' if kind is None else ' of ' + kind} is "
            "unknown; set x or num_nodes"
        )
    return count


def _check_edges(
    path: Path, where: str, store: BaseStorage, sizes: tuple[int, int]
) -> None:
    ends = store.get("edge_index")
    if not isinstance(ends, Tensor) or ends.dim() != 2 or ends.shape[0] != 2:
        shape = tuple(ends.shape) if isinstance(ends, Tensor) else type(ends).__name__
        raise UserError(
            f"{path}: edge_index{where} is {shape}; make its shape (2, edges)"
        )
    if ends.is_floating_point() or ends.is_complex() or ends.dtype == torch.bool:
        raise UserError(
            f"{path}: edge_index{where} has type {ends.dtype}; make it integers"
        )
    for row, (values, size) in enumerate(zip(ends, sizes, strict=True)):
        wrong = torch.nonzero((values < 0) | (values >= size))
        if len(wrong):
            position = int(wrong[0])
            raise UserError(
                f"{path}: edge_index{where}[{row}, {position}] is "
                f"{int(values[position])}, but there are {size} nodes "
                f"(0..{size - 1}); add the node or drop the edge"
            )
    store.edge_index = ends.long()


def check_labels(path: Path, store: BaseStorage) -> int:
    """Checks labels and makes them int64, in place.

    Returns:
        The number of classes.

    Raises:
        UserError: They are missing, or not classes.
    """
    labels = store.get("y")
    if not isinstance(labels, Tensor):
        raise UserError(f"{path} has no labels y; give every node a class, or -1")
    if labels.dim() == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dim() != 1 or labels.is_complex():
        raise UserError(
            f"{path}: y has shape {tuple(labels.shape)}; give one class per node"
        )
    if labels.is_floating_point():
        whole = torch.nan_to_num(labels, nan=UNLABELLED)
        if not torch.isfinite(whole).all() or (whole != whole.round()).any():
            raise UserError(f"{path}: y holds fractions; give whole class numbers")
        labels = whole
    labels = labels.long()
    wrong = torch.nonzero((labels < UNLABELLED) | (labels >= len(labels)))
    if len(wrong):
        row = int(wrong[0])
        raise UserError(
            f"{path}: y[{row}] is {int(labels[row])}, which is out of range; number "
            "the classes from 0, with -1 for an unknown one"
        )
    num_classes = int(labels.max()) + 1 if len(labels) else 0
    if num_classes < 1:
        raise UserError(f"{path} has no labelled node; label some nodes")
    store.y = labels
    return num_classes


def check_features(path: Path, data: Data | HeteroData) -> None:
    """Checks features and makes them float32, in place.

    Raises:
        UserError: They are no matrices, or do not fit the labels.
    """
    for store in data.node_stores:
        x = store.get("x")
        if x is None:
            continue
        where = "x" if store._key is None else f"x of {store._key}"
        if not isinstance(x, Tensor) or x.dim() != 2 or x.is_complex():
            shape = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise UserError(f"{path}: {where} is {shape}; make it nodes x features")
        if x.layout not in (torch.strided, torch.sparse_csr):
            raise UserError(
                f"{path}: {where} has layout {x.layout}; make it dense or sparse CSR"
            )
        labels = store.get("y")
        if isinstance(labels, Tensor) and labels.shape[0] != x.shape[0]:
            raise UserError(
                f"{path}: {where} has {x.shape[0]} rows, but y has {labels.shape[0]}; "
                "give both one row per node"
            )
        store.x = _checked_sparse(path, where, x.float())


def _checked_sparse(path: Path, where: str, x: Tensor) -> Tensor:
    """Refuses a sparse matrix whose indices would lead outside its arrays."""
    if x.layout != torch.sparse_csr:
        return x
    try:
        parts = (x.crow_indices().numpy(), x.col_indices().numpy(), x.values().numpy())
        return csr_tensor(*parts, x.shape[1])
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path}: {where} is a broken sparse matrix ({reason}); save it again"
        ) from error


def _require_finite(path: Path, data: Data | HeteroData) -> None:
    for store in data.node_stores:
        x = store.get("x")
        if x is None:
            continue
        where = "x" if store._key is None else f"x of {store._key}"
        values = x.values() if x.layout == torch.sparse_csr else x
        wrong = torch.nonzero(~torch.isfinite(values))
        if len(wrong):
            place = ", ".join(str(int(index)) for index in wrong[0])
            raise UserError(
                f"{path}: {where} holds {float(values[tuple(wrong[0])])} at [{place}]; "
                "fill or drop values that are not finite"
            )


def checked_split(
    path: Path, store: BaseStorage, split: int | str | None, seed: int | None
) -> str:
    """Checks the masks a graph brings, or makes them.

    Returns:
        The split, in words.

    Raises:
        UserError: The masks contradict the labels or one another.
    """
    given = [name for name in MASKS if name in store]
    if isinstance(split, int) or (split is None and _has_several(store)):
        return _choose_numbered(path, store, split, seed)
    if split is not None or not given:
        split = split or DEFAULT_SPLIT
        seed = DEFAULT_SPLIT_SEED if seed is None else seed
        set_masks(store, make_split(store.y.numpy(), split, seed))
        return f"made: {split} with seed {seed}"
    count = len(store.y)
    if MASKS[0] not in given:
        raise UserError(f"{path} has {given[0]} but no train_mask; add one")
    for name in MASKS:
        mask = store.get(name)
        if mask is None:
            store[name] = torch.zeros(count, dtype=torch.bool)
            continue
        if not isinstance(mask, Tensor) or tuple(mask.shape) != (count,):
            shape = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask)
            raise UserError(
                f"{path}: {name} is {shape}; give one value for each of {count} nodes"
            )
        store[name] = mask.bool()
    _check_masks(path, store)
    return "given with the graph"


def _has_several(store: BaseStorage) -> bool:
    mask = store.get(MASKS[0])
    return isinstance(mask, Tensor) and mask.dim() == 2


def _choose_numbered(
    path: Path, store: BaseStorage, split: int | None, seed: int | None
) -> str:
    """Takes one column of masks that hold several splits, as PyG's datasets do."""
    shapes = {tuple(store[name].shape) for name in MASKS if _is_tensor(store, name)}
    count = len(store.y)
    if len(shapes) != 1 or not _has_several(store) or next(iter(shapes))[0] != count:
        raise UserError(
            f"split is {split}, but {path} has no numbered splits; give percentages "
            f"like {DEFAULT_SPLIT}, or masks of shape ({count}, splits)"
        )
    (_, number) = next(iter(shapes))
    chosen = (seed or 0) % number if split is None else split
    if not 0 <= chosen < number:
        raise UserError(f"{path} has no split {chosen}; choose 0 to {number - 1}")
    for name in MASKS:
        if _is_tensor(store, name):
            store[name] = store[name][:, chosen]
    return f"{checked_split(path, store, None, None)}, number {chosen}"


def _is_tensor(store: BaseStorage, name: str) -> bool:
    return isinstance(store.get(name), Tensor)


def _check_masks(path: Path, store: BaseStorage) -> None:
    for first, second in (MASKS[:2], MASKS[1:], (MASKS[0], MASKS[2])):
        both = torch.nonzero(store[first] & store[second])
        if len(both):
            raise UserError(
                f"{path}: node {int(both[0])} is in {first} and in {second}; put it "
                "into one split"
            )
    for name in MASKS:
        unlabelled = torch.nonzero(store[name] & (store.y == UNLABELLED))
        if len(unlabelled):
            raise UserError(
                f"{path}: node {int(unlabelled[0])} is in {name} but has no label; "
                "label it or leave it out of the split"
            )
    if not store[MASKS[0]].any():
        raise UserError(f"{path} has no node in train_mask; put some into it")
