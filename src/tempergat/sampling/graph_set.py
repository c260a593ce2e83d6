"""Many small graphs with the same attributes, concatenated once."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex, Index
from torch_geometric.data import Batch, Data, Dataset, InMemoryDataset
from torch_geometric.data.collate import collate
from torch_geometric.data.separate import separate
from torch_geometric.utils import is_sparse

from tempergat.base import UserError, is_out_of_memory, listed, require_memory
from tempergat.sampling.gather import Column, Gatherer

# What gives the number of nodes, in PyG's order of preference.
_NODE_KEYS = {"x", "feat", "pos", "batch", "node_type", "n_id", "tf"}


class Members(NamedTuple):
    """The graphs of a data set: one object that holds all, and where each begins.

    Attributes:
        data: The concatenated graphs, in the form of PyG's ``InMemoryDataset``.
        slices: Where each graph begins in each attribute, by name.
        chosen: The numbers of the graphs that the data set consists of.
    """

    data: Data
    slices: dict[str, Tensor]
    chosen: np.ndarray


def members_of(dataset: Any) -> Members:
    """The graphs of a list, of a ``Dataset``, or of a ``Subset`` of one.

    An ``InMemoryDataset`` is used as it is, without a copy.

    Raises:
        UserError: It is something else, it is empty, or the graphs do not fit together.
    """
    if isinstance(dataset, torch.utils.data.Subset):
        members = members_of(dataset.dataset)
        return members._replace(chosen=members.chosen[np.array(dataset.indices)])
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise UserError(
            f"dataset must be a list of Data or a Dataset, got {type(dataset).__name__}"
        )
    if len(dataset) == 0:
        raise UserError("the dataset has no graphs; give at least one")
    if isinstance(dataset, Dataset) and dataset.transform is not None:
        raise UserError(
            "the dataset has a transform, which batches of ready-made graphs would "
            "leave out; use pre_transform, or pass [data for data in dataset] if it "
            "makes the same graph every time"
        )
    # A class that makes its graphs otherwise is read graph by graph.
    is_ready = getattr(type(dataset), "get", None) is InMemoryDataset.get
    if is_ready and dataset.slices is not None:
        _check_class(dataset._data)
        chosen = np.array(list(dataset.indices()), np.int64)
        return Members(dataset._data, dict(dataset.slices), chosen)
    graphs = [dataset[k] for k in range(len(dataset))]
    _check_alike(graphs)
    tensors = [x for x in graphs[0].to_dict().values() if isinstance(x, Tensor)]
    one = sum(x.numel() * x.element_size() for x in tensors)
    require_memory(
        one * len(graphs),
        f"a concatenated set of {len(graphs)} graphs",
        "pass an InMemoryDataset, whose tensors are used as they are",
    )
    data, slices, _ = collate(
        type(graphs[0]), data_list=graphs, increment=False, add_batch=False
    )
    return Members(data, slices, np.arange(len(graphs)))


def _check_class(data: Any) -> None:
    if not isinstance(data, Data) or isinstance(data, Batch):
        raise UserError(
            f"the dataset holds {type(data).__name__}; batches are made of Data"
        )


def _check_alike(graphs: Sequence[Any]) -> None:
    """Raises UserError, by the graph's number, unless all have the same attributes."""
    first = graphs[0]
    for k, graph in enumerate(graphs):
        _check_class(graph)
        names, expected = set(graph.keys()), set(first.keys())
        if names != expected:
            raise UserError(
                f"graph {k} has the attributes {listed(sorted(names))}, but graph 0 "
                f"has {listed(sorted(expected))}; give all graphs the same ones, or "
                "leave the others out with exclude_keys"
            )
        for name in names:
            one, other = _form(first, name), _form(graph, name)
            if one != other:
                raise UserError(
                    f"'{name}' of graph {k} is {_text(other)}, but that of graph 0 is "
                    f"{_text(one)}; only the number of rows may differ"
                )


def _form(graph: Data, name: str) -> tuple[Any, ...]:
    """What must be the same for all graphs: a tensor's type, width and device."""
    value = graph[name]
    if not isinstance(value, Tensor) or is_sparse(value):
        # PyG makes one tensor of the numbers of all graphs.
        kind = type(value)
        return (float if kind in (bool, int) else kind,)
    dim, sizes = graph.__cat_dim__(name, value), [str(size) for size in value.shape]
    if isinstance(dim, int) and sizes:
        sizes[dim] = "*"
    return value.dtype, value.device, ", ".join(sizes)


def _text(form: tuple[Any, ...]) -> str:
    if len(form) == 1:
        return f"of type {form[0].__name__}"
    dtype, device, sizes = form
    return f"a {dtype} tensor of shape [{sizes}] on {device}"


class GraphSet:
    """The attributes of a data set's graphs, ready to be gathered into batches.

    Args:
        members: The graphs.
        device: Where batches are made; None for where the graphs are.
        exclude_keys: Attributes to leave out.
        follow_batch: Attributes whose items get a batch vector of their own.

    Attributes:
        nodes: Where the nodes of each graph begin; None if the graphs have none.
        edges: Where the edges of each graph begin; None without ``edge_index``.
        edge_index: All edges, by the numbers that nodes have in their graphs; None if
            they do not count nodes in PyG's way.
        columns: The attributes that are tensors.
        device: Where batches are made.
    """

    def __init__(
        self,
        members: Members,
        device: torch.device | None,
        exclude_keys: Iterable[str],
        follow_batch: Iterable[str],
    ) -> None:
        self._members = members
        data, excluded = members.data, set(exclude_keys)
        self._counts = self._node_counts()
        self.nodes = None if self._counts is None else _starts_of(self._counts)
        names = [name for name in members.slices if name not in excluded]
        self._lists = {n: data[n] for n in names if isinstance(data[n], list)}
        self.columns: dict[str, Column] = {}
        for name in names:
            if name == "ptr":
                continue
            self._check_value(name)
            starts = np.ascontiguousarray(members.slices[name].numpy(), np.int64)
            if name not in self._lists:
                self.columns[name] = self._column(name, starts)
            if name in set(follow_batch):
                self.columns[f"{name}_batch"] = Column(None, 0, starts)
        if self.nodes is not None:
            self.columns["batch"] = Column(None, 0, self.nodes)
        self.device = self._move(device)
        self.has_num_nodes = "num_nodes" in data and "num_nodes" not in excluded
        edges = self.columns.get("edge_index")
        self.edges = None if edges is None else edges.starts
        self.edge_index = None if edges is None else edges.data
        if edges is not None and (
            self._counts is None
            or edges.rise is None
            or not np.array_equal(edges.rise, self._counts[None])
        ):
            self.edge_index = None
        self._gather = Gatherer(self.columns, self.device)
        self._template = Batch(_base_cls=type(data)).stores_as(data)

    def __len__(self) -> int:
        return len(next(iter(self._members.slices.values()))) - 1

    def _move(self, device: torch.device | None) -> torch.device:
        """Moves all columns to one device, and returns it."""
        tensors = [c.data for c in self.columns.values() if c.data is not None]
        places = {x.device for x in tensors} or {torch.device("cpu")}
        if len(places) > 1:
            raise UserError(
                "the graphs have tensors on "
                f"{listed(sorted(map(str, places)))}; move all to one device"
            )
        if device is None:
            return places.pop()
        try:
            for name, column in self.columns.items():
                if column.data is not None:
                    moved = column.data.to(device)
                    self.columns[name] = column._replace(data=moved)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            size = sum(x.numel() * x.element_size() for x in tensors) / 2**30
            raise UserError(
                f"the graphs need {size:.1f} GiB, which {device} does not have; leave "
                "device=None and move each batch with batch.to(device)"
            ) from None
        return device

    def _check_value(self, name: str) -> None:
        """Raises UserError if an attribute of all graphs cannot be stacked."""
        value, remedy = self._members.data[name], ""
        kind = type(value).__name__
        if isinstance(value, list) and is_sparse(value[0]):
            value, kind = value[0], f"a list of {type(value[0]).__name__}"
        if isinstance(value, (EdgeIndex, Index)):
            remedy = "give value.as_tensor()"
        elif is_sparse(value):
            remedy = "give its edges as edge_index"
        elif isinstance(value, Tensor) and value.is_nested:
            remedy = "give a padded tensor"
        elif not isinstance(value, (Tensor, list)) or not isinstance(
            self._members.slices[name], Tensor
        ):
            remedy = "give each of its tensors a name of its own"
        if remedy:
            raise UserError(
                f"the graphs' attribute '{name}' ({kind}) cannot be stacked; {remedy}, "
                f"or leave it out with exclude_keys=['{name}']"
            )

    def graph(self, number: int) -> Any:
        """One graph of the set, with all its attributes."""
        members = self._members
        return separate(
            type(members.data),
            members.data,
            number,
            slice_dict=members.slices,
            decrement=False,
        )

    def _node_counts(self) -> np.ndarray | None:
        """The number of nodes of each graph; None if PyG counts none."""
        data, slices = self._members.data, self._members.slices
        if not data._store.can_infer_num_nodes:
            return None
        counts: Any = None
        if hasattr(data._store, "_num_nodes"):
            counts = data._store._num_nodes
        elif "num_nodes" not in data:
            for name, value in data._store.items():
                if isinstance(value, Tensor) and name in _NODE_KEYS:
                    return np.diff(slices[name].numpy())
        if counts is None:
            counts = [self.graph(k).num_nodes or 0 for k in range(len(self))]
        return np.array(counts, np.int64)

    def _column(self, name: str, starts: np.ndarray) -> Column:
        """An attribute, with what PyG adds to its values from graph to graph."""
        data: Data = self._members.data
        value: Tensor = data[name]
        dim = data.__cat_dim__(name, value) or 0
        column = Column(value, dim % max(value.dim(), 1), starts)
        counts: Any
        if type(data).__inc__ is Data.__inc__ and "batch" not in name:
            counts = self._counts if "index" in name or name == "face" else None
            if counts is None:
                return column
        else:
            graphs = (self.graph(k) for k in range(len(self)))
            counts = [graph.__inc__(name, graph[name]) for graph in graphs]
            if isinstance(counts[0], Tensor):
                counts, value = self._of_each_number(name, column, counts)
                column = column._replace(data=value)
        rise = np.array(counts, np.int64).reshape(len(self), -1).T
        if not rise.any():
            return column
        if value.dtype not in (torch.int32, torch.int64):
            raise UserError(
                f"'{name}' holds {value.dtype}, but PyG adds the number of nodes to "
                "attributes of this name; give int64 numbers, or another name"
            )
        return column._replace(rise=np.ascontiguousarray(rise))

    def _of_each_number(
        self, name: str, column: Column, counts: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The tensors of ``__inc__`` for every number of an item, and the values."""
        assert column.data is not None
        value, stacked = column.data, torch.stack(list(counts))
        value = value.to(torch.result_type(value, counts[0]))
        if stacked.dim() == 1:
            return stacked, value
        missing = value.dim() + 1 - stacked.dim()
        shape = list(value.shape)
        shape[column.dim] = 1
        try:
            stacked = stacked.view(len(self), *[1] * missing, *stacked.shape[1:])
            return stacked.expand(-1, *shape), value
        except RuntimeError:
            raise UserError(
                f"__inc__ gives numbers of shape {list(counts[0].shape)} for '{name}', "
                f"which do not fit its shape {list(value.shape)}"
            ) from None

    def batch(self, graphs: np.ndarray, room: dict[str, int] | None = None) -> Any:
        """A batch of some graphs, equal to PyG's.

        Args:
            graphs: Their numbers in the set.
            room: For how many more items there is memory in an attribute.
        """
        gathered, count = self._gather(graphs, room), len(graphs)
        batch = copy.copy(self._template)
        slices: dict[str, Tensor] = {}
        rises: dict[str, Tensor | None] = {}
        none = torch.zeros(count, dtype=torch.int64)
        for name, value in gathered.values.items():
            batch[name] = value
            starts = torch.from_numpy(gathered.starts[name])
            if self.columns[name].data is None:
                of = name.removesuffix("batch")
                batch[f"{of}ptr"] = starts.to(self.device, copy=True)
                continue
            slices[name], rises[name] = starts, none
            rise = gathered.rises[name]
            if rise is not None:
                risen = torch.from_numpy(rise[:, :-1])
                shape = list(value.shape)
                shape[self.columns[name].dim] = 1
                rises[name] = (
                    risen[0] if len(risen) == 1 else risen.T.reshape(-1, *shape)
                )
        for name, values in self._lists.items():
            batch[name] = [values[k] for k in graphs]
            slices[name], rises[name] = torch.arange(count + 1), None
        if self.has_num_nodes:
            assert self._counts is not None
            numbers = self._counts[graphs]
            batch["num_nodes"] = int(numbers.sum())
            batch._store._num_nodes = numbers.tolist()
        batch._num_graphs = count
        batch._slice_dict, batch._inc_dict = slices, rises
        return batch


def _starts_of(sizes: np.ndarray) -> np.ndarray:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts
