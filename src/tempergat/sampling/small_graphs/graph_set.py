"""Many small graphs with the same attributes, concatenated once."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex, Index
from torch_geometric.data import Batch, Data
from torch_geometric.data.separate import separate
from torch_geometric.utils import is_sparse

from tempergat.base import UserError, counted, is_out_of_memory, listed
from tempergat.sampling.small_graphs.gather import Column, Gatherer
from tempergat.sampling.small_graphs.members import NODE_KEYS, Members

# How many graphs' edges are checked at once.
_CHECKED = 4096


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
        # A user may have taken an attribute out of the concatenated graphs.
        unused = excluded | {"ptr"}
        names = [n for n in members.slices if n in data and n not in unused]
        for name in names:
            self._check_value(name)
        self._lists = {n: data[n] for n in names if isinstance(data[n], list)}
        tensors = [name for name in names if name not in self._lists]
        increments = self._increments(tensors)
        self.columns: dict[str, Column] = {}
        for name in names:
            starts = np.ascontiguousarray(members.slices[name].numpy(), np.int64)
            if name not in self._lists:
                self.columns[name] = self._column(name, starts, increments.get(name))
            if name in set(follow_batch):
                self.columns[f"{name}_batch"] = Column(None, 0, starts)
        if self.nodes is None and not self.columns:
            raise UserError("the graphs have no tensors; give each what it consists of")
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
            or edges.dim != 1
        ):
            self.edge_index = None
        self._check_edges()
        self._gather = Gatherer(self.columns, self.device)
        self._template = Batch(_base_cls=type(data)).stores_as(data)

    def __len__(self) -> int:
        return self._members.total

    def _check_edges(self) -> None:
        """Raises UserError if an edge joins a node that its graph does not have."""
        if self.edge_index is None or self.edge_index.is_meta:
            return
        assert self._counts is not None
        assert self.edges is not None
        for first in range(0, len(self), _CHECKED):
            starts = self.edges[first : first + _CHECKED + 1]
            ends = self.edge_index[:, starts[0] : starts[-1]]
            graph = np.arange(len(starts) - 1).repeat(np.diff(starts))
            limit = torch.from_numpy(self._counts[first + graph]).to(self.device)
            wrong = ((ends < 0) | (ends >= limit)).any(0)
            if wrong.any():
                number = first + graph[int(wrong.nonzero()[0])]
                raise UserError(
                    f"an edge of graph {number} joins a node that it does not have: it "
                    f"has {counted(int(self._counts[number]), 'node')}; correct its "
                    "edge_index, or set num_nodes"
                )

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
        elif isinstance(value, Tensor) and value.requires_grad:
            remedy = "batches carry no gradient to it: give value.detach()"
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
                is_counted = name in NODE_KEYS and name in slices
                if isinstance(value, Tensor) and is_counted:
                    return np.diff(slices[name].numpy())
        if counts is None:
            counts = [self.graph(k).num_nodes or 0 for k in range(len(self))]
        return np.array(counts, np.int64)

    def _increments(self, names: Iterable[str]) -> dict[str, Any]:
        """What PyG adds for each graph to the values of those after it."""
        data, numbers = self._members.data, self._members.numbers
        is_usual = type(data).__inc__ is Data.__inc__
        found: dict[str, Any] = {}
        asked: dict[str, list[Any]] = {}
        for name in names:
            if not is_usual or "batch" in name:
                asked[name] = []
            elif "index" in name or name == "face":
                if self._counts is None:
                    raise UserError(
                        f"PyG adds the number of nodes to '{name}', but the graphs do "
                        "not say how many they have; set num_nodes of each"
                    )
                found[name] = self._counts
        for k in range(len(self) if asked else 0):
            graph = self.graph(k)
            for name, increments in asked.items():
                value = graph[name].item() if name in numbers else graph[name]
                increments.append(graph.__inc__(name, value))
        return found | asked

    def _column(self, name: str, starts: np.ndarray, counts: Any) -> Column:
        """An attribute, with what PyG adds to its values from graph to graph."""
        data: Data = self._members.data
        value: Tensor = data[name]
        dim = data.__cat_dim__(name, value) or 0
        column = Column(value, dim % max(value.dim(), 1), starts)
        if counts is None:
            return column
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
    ) -> tuple[np.ndarray, Tensor]:
        """The tensors of ``__inc__`` for every number of an item, and the values."""
        assert column.data is not None
        value, stacked = column.data, torch.stack(list(counts))
        value = value.to(torch.result_type(value, counts[0]))
        if stacked.dim() == 1:
            return stacked.cpu().numpy(), value
        missing = value.dim() + 1 - stacked.dim()
        shape = list(value.shape)
        shape[column.dim] = 1
        try:
            stacked = stacked.view(len(self), *[1] * missing, *stacked.shape[1:])
            return stacked.expand(-1, *shape).cpu().numpy(), value
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
