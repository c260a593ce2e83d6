"""Collects what belongs to some graphs from tables that hold a whole set of graphs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tempergat.ops import can_gather, gather_graphs


class Column(NamedTuple):
    """One attribute of all graphs of a set, concatenated along one dimension.

    An item is an index of that dimension: a node of ``x``, an edge of ``edge_index``.

    Attributes:
        data: The values. None for a batch vector: each item then gets the place of its
            graph in the batch.
        dim: The dimension.
        starts: Where the items of each graph begin, and the end, [set + 1].
        rise: What PyG's ``__inc__`` gives for each graph, like its number of nodes for
            ``edge_index``. In a batch, the sum over the graphs before is added to the
            values. [1, set], or [rows, set] with a row for each number of an item. None
            if values are copied as they are.
    """

    data: Tensor | None
    dim: int
    starts: np.ndarray
    rise: np.ndarray | None = None

    @property
    def outer(self) -> int:
        """How often the items of a graph occur: the size before ``dim``."""
        return 1 if self.data is None else math.prod(self.data.shape[: self.dim])

    @property
    def inner(self) -> int:
        """How many values an item has: the size after ``dim``."""
        return 1 if self.data is None else math.prod(self.data.shape[self.dim + 1 :])


class Gathered(NamedTuple):
    """The items of a batch.

    Attributes:
        values: By column.
        starts: Where the items of each graph begin in them, and the end, [batch + 1].
        rises: What was added to each graph's values, [rows, batch + 1] with the total;
            None where nothing was.
    """

    values: dict[str, Tensor]
    starts: dict[str, np.ndarray]
    rises: dict[str, np.ndarray | None]


class Gatherer:
    """Collects the items of some graphs from all columns in one call.

    On the CPU it is one C++ call; elsewhere, and without the library, torch's
    indexing, which does not wait for the device.

    Args:
        columns: The columns, by name.
        device: Where they are.
    """

    def __init__(self, columns: Mapping[str, Column], device: torch.device) -> None:
        self.device = device
        self._columns = columns = {
            name: c if c.data is None else c._replace(data=c.data.contiguous())
            for name, c in columns.items()
        }
        # The numbers of items of each kind of segments, then what values rise by.
        rows: list[np.ndarray] = []
        starts: list[np.ndarray] = []
        known: dict[bytes, int] = {}
        for column in columns.values():
            sizes = np.diff(column.starts)
            if known.setdefault(sizes.tobytes(), len(rows)) == len(rows):
                rows.append(sizes)
                starts.append(column.starts)
        self._starts = np.ascontiguousarray(np.stack(starts), dtype=np.int64)
        self._row_of = {
            name: known[np.diff(c.starts).tobytes()] for name, c in columns.items()
        }
        self._rise_of: dict[str, slice] = {}
        for name, column in columns.items():
            if column.rise is None:
                continue
            first = len(rows)
            if len(column.rise) == 1:
                first = known.setdefault(column.rise.tobytes(), first)
            if first == len(rows):
                rows.extend(column.rise)
            self._rise_of[name] = slice(first, first + len(column.rise))
        self._rows = np.ascontiguousarray(np.stack(rows), dtype=np.int64)
        self._in_one_call = device.type == "cpu" and can_gather()
        self._table = np.array([self._fields(name) for name in columns], np.int64)

    def _fields(self, name: str) -> list[int]:
        """The fields of a column for the C++ function, without its addresses."""
        column, rises = self._columns[name], self._rise_of.get(name, slice(0, 0))
        data = column.data
        size = 8 if data is None else data.element_size()
        item = size * column.inner
        count = int(column.starts[-1])
        return [
            *(0, column.outer, count * item, item),
            *(self._row_of[name], size if name in self._rise_of else 0),
            *(rises.start, rises.stop - rises.start, 0, 0),
        ]

    def __call__(
        self, graphs: np.ndarray, room: Mapping[str, int] | None = None
    ) -> Gathered:
        """The items of some graphs, in this order.

        Args:
            graphs: The numbers of the graphs in the set, int64.
            room: For how many more items there is memory after those of a column, which
                is not written.
        """
        sums = np.zeros((len(self._rows), len(graphs) + 1), np.int64)
        np.cumsum(self._rows[:, graphs], axis=1, out=sums[:, 1:])
        values, room = {}, room or {}
        for name, column in self._columns.items():
            count = int(sums[self._row_of[name], -1]) + room.get(name, 0)
            shape, dtype = [count], torch.int64
            if column.data is not None:
                shape, dtype = list(column.data.shape), column.data.dtype
                shape[column.dim] = count
            values[name] = torch.empty(shape, dtype=dtype, device=self.device)
        if self._in_one_call:
            self._write_in_one_call(values, graphs, sums)
        else:
            self._write_by_index(values, graphs, sums)
        starts = {name: sums[row] for name, row in self._row_of.items()}
        rises = {
            name: sums[self._rise_of[name]] if name in self._rise_of else None
            for name in values
        }
        return Gathered(values, starts, rises)

    def _write_in_one_call(
        self, values: dict[str, Tensor], graphs: np.ndarray, sums: np.ndarray
    ) -> None:
        table = self._table.copy()
        for k, (name, column) in enumerate(self._columns.items()):
            out, item = values[name], table[k, 3]
            # Addresses are others in a copy of the loader, and in shared memory.
            if column.data is not None:
                table[k, 0] = column.data.data_ptr()
            table[k, 8:] = out.data_ptr(), out.size(column.dim) * item
        gather_graphs(table, self._starts, sums, np.ascontiguousarray(graphs))

    def _write_by_index(
        self, values: dict[str, Tensor], graphs: np.ndarray, sums: np.ndarray
    ) -> None:
        indices: dict[int, tuple[Tensor, Tensor]] = {}
        before = self._on_device(sums)
        for name, column in self._columns.items():
            row = self._row_of[name]
            if row not in indices:
                shift = self._on_device(self._starts[row, graphs] - sums[row, :-1])
                count = int(sums[row, -1])
                of_graph = torch.arange(len(graphs), device=self.device)
                sizes = before[row].diff()
                number = of_graph.repeat_interleave(sizes, output_size=count)
                place = torch.arange(count, device=self.device)
                indices[row] = number, place + shift[number]
            number, place = indices[row]
            out = values[name].narrow(column.dim, 0, place.size(0))
            if column.data is None:
                out.copy_(number)
                continue
            found = column.data.index_select(column.dim, place)
            if name in self._rise_of:
                rise = before[self._rise_of[name], :-1][:, number]
                if len(rise) > 1:
                    rise = rise.view(column.outer, column.inner, -1).transpose(1, 2)
                else:
                    rise = rise.view(1, -1, 1)
                risen = found.view(column.outer, -1, column.inner) + rise
                found = risen.view(found.shape)
            out.copy_(found)

    def _on_device(self, numbers: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers)).to(self.device)
