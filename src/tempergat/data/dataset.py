"""`Dataset`, a graph with labels and a split, and its fingerprint."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

if TYPE_CHECKING:
    from tempergat.data.features import ColumnScale
    from tempergat.data.user.options import ReadOptions

MASKS = ("train_mask", "val_mask", "test_mask")
UNLABELLED = -1
# What the three arrays of a sparse matrix are called.
SPARSE_PARTS = ("indptr", "indices", "values")
# The descriptions of splits that are made here begin with it.
MADE = "made"
_HASH_BLOCK = 1 << 22


@dataclass(frozen=True)
class TypeNames:
    """What a table calls the features and the nodes of a node type.

    Attributes:
        features: The name of each feature.
        nodes_hash: The sha256 of the ids of all nodes in their order; None where the
            nodes are numbered.
    """

    features: tuple[str, ...]
    nodes_hash: str | None


@dataclass(frozen=True)
class HowRead:
    """What the reader of a user graph took its files for.

    Attributes:
        label: The column or array that holds the classes.
        nodes: The column that names the nodes; None where it is their row number.
        unlabelled: How many nodes have no class, by how that is written.
        split: The columns, files or arrays that hold the split; empty without one.
        not_read: Files, columns and arrays that are not used.
    """

    label: str = "y"
    nodes: str | None = None
    unlabelled: Mapping[str, int] = field(default_factory=dict)
    split: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """What is predicted of a node: one of several classes.

    Attributes:
        width: How many outputs a model has: one for each class.
        names: The words of the classes; None where they are numbers from 0.
    """

    width: int
    names: tuple[str, ...] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The classes as people read them: their words, or their numbers."""
        return self.names or tuple(map(str, range(self.width)))


@dataclass(frozen=True)
class Dataset:
    """A graph with labels, a split and where it came from.

    Attributes:
        name: Name in the catalogue, or the path of a user graph.
        data: The graph. The store of the target node type holds `y` (int64,
            -1 where a label is missing) and `train_mask`, `val_mask`, `test_mask`.
            Edges are int64, or int32 in a memory-mapped graph of over ten million.
        target: Node type that is classified; None in a homogeneous graph.
        predicted: What is predicted of the nodes of the target type.
        metric: What its authors report: `"accuracy"`, `"micro_f1"` or `"roc_auc"`.
        source: Where the graph came from.
        fingerprint: sha256 over structure, features, labels and masks; the same
            on every machine.
        license: Licence of the data, as far as it is stated.
        split: Description of the split.
        num_splits: How many splits the graph comes with; 1 where this one was made.
        split_number: Which of them this is, from 0.
        node_ids: The `id` of each classified node in the user's table; None where
            nodes are numbered.
        feature_names: The name of each feature of the classified nodes; None where
            they have none.
        label_name: The column of the user's table that holds the labels.
        undirected: Whether every edge is there in both directions; None where the
            graph has node types or it is not known.
        edge_feature_names: What the columns of `edge_attr` are; empty where the graph
            has no edge features, or they are not used.
        edge_weight_name: What `edge_weight` is; None where there is none, or it is not
            used.
        notes: A sentence for each guess or omission in reading the graph that changes
            results, naming the option that changes it.
        read_options: How the user graph was read; None for datasets by name.
        type_names: What the user's tables call the features and the nodes of each node
            type; empty where there are no such tables.
        graph_fingerprint: As `fingerprint`, but without the masks; empty where it is
            not known.
        split_name: The column of the user's table that holds the split.
        scaling: How the columns of numbers of tables are scaled for training, by the
            name that `tensors` gives to the features of nodes and edges; empty for
            graphs that are used as given. The features here are not scaled.
        how_read: What the files of a user graph were taken for; None for datasets by
            name.
        shares: Of several splits: whether another one has some of its training nodes,
            and whether another one has its test nodes; None for a single split.
    """

    name: str
    data: Data | HeteroData
    target: str | None
    predicted: Target
    metric: str
    source: str
    fingerprint: str
    license: str = "none stated"
    split: str = ""
    num_splits: int = 1
    split_number: int = 0
    node_ids: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    label_name: str | None = None
    undirected: bool | None = None
    edge_feature_names: tuple[str, ...] = ()
    edge_weight_name: str | None = None
    notes: tuple[str, ...] = ()
    read_options: "ReadOptions | None" = None
    type_names: Mapping[str, TypeNames] = field(default_factory=dict)
    graph_fingerprint: str = ""
    split_name: str | None = None
    scaling: "Mapping[str, ColumnScale]" = field(default_factory=dict)
    how_read: HowRead | None = None
    shares: tuple[bool, bool] | None = None

    @property
    def scaled_columns(self) -> dict[str, tuple[float, float]]:
        """Mean and deviation of the columns that are scaled for training, by name."""
        return {
            self.column_name(tensor, at): (scale.mean[at], scale.deviation[at])
            for tensor, scale in self.scaling.items()
            for at in scale.columns
        }

    def column_name(self, tensor: str, at: int) -> str:
        """A column in words, like `year`, `year of paper` or `since of edges`.

        Args:
            tensor: The features, by the name that `tensors` gives them.
            at: The number of the column.
        """
        owner, _, attribute = tensor.rpartition(".")
        owner = "edges" if attribute.startswith("edge_") else owner
        names = self.column_names(tensor)
        name = names[at] if names else f"number {at}"
        return f"{name} of {owner}" if owner else name

    def column_names(self, tensor: str) -> tuple[str, ...] | None:
        """The names of features or of edge weights; None or empty without."""
        owner, _, attribute = tensor.rpartition(".")
        if attribute == "edge_attr":
            return self.edge_feature_names
        if attribute == "edge_weight":
            return (self.edge_weight_name,) if self.edge_weight_name else ()
        if not owner:
            return self.feature_names if attribute == "x" else None
        known = self.type_names.get(owner)
        return None if known is None or attribute != "x" else known.features

    @property
    def store(self) -> BaseStorage:
        """The storage that holds the labels and the masks."""
        return self.data if self.target is None else self.data[self.target]

    @property
    def is_split_made(self) -> bool:
        """Whether the split was made here; otherwise the graph came with it."""
        return self.split.startswith(MADE)

    def count(self, part: Literal["train", "val", "test"]) -> int:
        """How many labelled nodes a part of the split has."""
        store = self.store
        return int((store[f"{part}_mask"] & (store.y >= 0)).sum())

    @property
    def is_heterogeneous(self) -> bool:
        """Whether the graph has node types."""
        return isinstance(self.data, HeteroData)


def tensors(
    data: Data | HeteroData, in_order: bool = True
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of a graph with a stable name.

    A name is `"<node type>.<attribute>"`, or
    `"<source>/<relation>/<target>.<attribute>"`
    of edges; the types are "" in a homogeneous graph.

    Args:
        data: The graph.
        in_order: Whether they are sorted by name; otherwise they come as stored.
    """
    named: dict[str, Tensor] = {}
    for store in data.stores:
        key = store._key
        prefix = "" if key is None else "/".join(key) if type(key) is tuple else key
        for attribute, value in store.items():
            if isinstance(value, Tensor):
                named[f"{prefix}.{attribute}"] = value
    yield from sorted(named.items()) if in_order else named.items()


def hash_array(array: np.ndarray) -> str:
    """The sha256 of an array's values; integers hash alike in every width."""
    digest = hashlib.sha256()
    flat = np.ascontiguousarray(array).reshape(-1)
    kind = flat.dtype.kind
    wide = np.dtype("<i8") if kind in "iu" else flat.dtype.newbyteorder("<")
    digest.update(f"{kind}:{array.shape}:".encode())
    for start in range(0, len(flat), _HASH_BLOCK):
        digest.update(flat[start : start + _HASH_BLOCK].astype(wide).tobytes())
    return digest.hexdigest()


def tensor_parts(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The arrays that hold a tensor, by name: one, or the three of a sparse matrix."""
    if tensor.layout == torch.sparse_csr:
        parts = (tensor.crow_indices(), tensor.col_indices(), tensor.values())
        for part, values in zip(SPARSE_PARTS, parts, strict=True):
            yield f"{name}.{part}", values
    else:
        yield name, tensor


def hash_tensor(
    name: str, tensor: Tensor, known: Mapping[str, str] | None = None
) -> str:
    """The lines about one tensor that its graph's fingerprint is computed from.

    Args:
        name: Name of the tensor, as `tensors` gives it.
        tensor: The tensor.
        known: Hashes that need not be computed again, by array name.
    """
    lines = []
    for part, values in tensor_parts(name, tensor):
        digest = (known or {}).get(part) or hash_array(values.numpy())
        lines.append(f"{part}={tuple(tensor.shape)}={digest}\n")
    return "".join(lines)


def hash_tensors(
    data: Data | HeteroData, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The lines of `hash_tensor` for every tensor of a graph, by the tensor's name."""
    return {name: hash_tensor(name, value, known) for name, value in tensors(data)}


def fingerprint(
    data: Data | HeteroData, hashed: Mapping[str, str] | None = None
) -> str:
    """The sha256 that identifies a graph's content.

    Args:
        data: The graph.
        hashed: What `hash_tensors` returned for it, where it was called already.
    """
    digest = hashlib.sha256()
    hashed = hash_tensors(data) if hashed is None else hashed
    for name in sorted(hashed):
        digest.update(hashed[name].encode())
    for node_type, count in sorted(node_counts(data).items()):
        digest.update(f"{node_type}#{count}\n".encode())
    return digest.hexdigest()


def node_counts(data: Data | HeteroData) -> dict[str, int]:
    """Number of nodes by type; the type of a homogeneous graph is ""."""
    if isinstance(data, HeteroData):
        return {kind: int(data[kind].num_nodes) for kind in data.node_types}
    return {"": int(data.num_nodes)}
