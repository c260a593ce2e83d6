"""Values computed from a tensor, kept for as long as the tensor lives unchanged."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempergat.ops.cpu.edges import checksum
from tempergat.ops.torch_internals import (
    edit_count,
    has_data,
    is_tracing,
    ordinary_tensors,
    sparse_parts,
)

# Minimum number of tensors kept, however large; also the maximum of keys per tensor.
_MINIMUM_ENTRIES = 16


class _Entry(NamedTuple):
    tensor: weakref.ref[Tensor]
    version: tuple[int, ...]
    # How many elements the tensor has.
    numbers: int
    values: OrderedDict[Hashable, Any]


class TensorCache:
    """Values by the tensor they were computed from.

    A value is served only while the very same tensor object is alive and unchanged: its
    version counter, address and shape are compared, and on the CPU a checksum of its
    contents, because memory can be written without torch (through NumPy, for example).
    When there are too many tensors, or too large ones, the oldest are dropped.

    Args:
        limit: How many tensors may have values.
        numbers: How many elements these tensors may have together; the last 16 tensors
            are kept in any case.
    """

    def __init__(self, limit: int = 4096, numbers: int = 1 << 22) -> None:
        self.limit = limit
        self.numbers = numbers
        # Upper bound: not lowered when a tensor dies.
        self._numbers = 0
        # By `id(tensor)`, which a later tensor can have again.
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        tensor: Tensor,
        key: Hashable,
        build: Callable[[], Any],
        data: Tensor | None = None,
        traced: bool | None = None,
    ) -> Any:
        """The value for the tensor and key; ``build()`` makes it the first time.

        Args:
            tensor: The tensor.
            key: What is computed from it.
            build: Computes it.
            data: The tensor that holds the contents, if it is another one.
            traced: Whether the call is being traced; None where it is not known.
        """
        if is_tracing() if traced is None else traced:
            return build()
        if tensor.is_inference() or not has_data(tensor):
            # Without a version counter or memory, an edit would go unnoticed.
            with ordinary_tensors(tensor):
                return build()
        # Before building: an edit in the meantime must be noticed.
        version = version_of(tensor)
        if data is not None:
            version += version_of(data)
        value = self._find(tensor, version, key)
        if value is None:
            with ordinary_tensors(tensor):
                value = build()
            self._store(tensor, version, key, value)
        return value

    def find(self, tensor: Tensor, key: Hashable) -> Any:
        """The value for the tensor and key, or None."""
        return self._find(tensor, version_of(tensor), key)

    def _find(self, tensor: Tensor, version: tuple[int, ...], key: Hashable) -> Any:
        with self._lock:
            entry = self._entry_of(tensor, version)
            return None if entry is None else entry.values.get(key)

    def _entry_of(self, tensor: Tensor, version: tuple[int, ...]) -> _Entry | None:
        entry = self._entries.get(id(tensor))
        if entry is None or entry.version != version or entry.tensor() is not tensor:
            return None
        return entry

    def keep(self, tensor: Tensor, key: Hashable, value: Any) -> None:
        """Stores a value until the tensor is changed or freed."""
        self._store(tensor, version_of(tensor), key, value)

    def _store(
        self, tensor: Tensor, version: tuple[int, ...], key: Hashable, value: Any
    ) -> None:
        with self._lock:
            entry = self._entry_of(tensor, version)
            if entry is None:
                self._make_room(tensor.numel())
                # Python calls this when the tensor ends.
                forget = functools.partial(self._forget, id(tensor))
                alive = weakref.ref(tensor, forget)
                entry = _Entry(alive, version, tensor.numel(), OrderedDict())
                self._entries[id(tensor)] = entry
            entry.values[key] = value
            while len(entry.values) > min(self.limit, _MINIMUM_ENTRIES):
                entry.values.popitem(last=False)

    def _forget(self, identity: int, tensor: weakref.ref[Tensor]) -> None:
        # Without the lock: this may run at any time, also while this thread has it.
        entry = self._entries.get(identity)
        if entry is not None and entry.tensor is tensor:
            # Another thread may have dropped it meanwhile.
            self._entries.pop(identity, None)

    def _make_room(self, numbers: int) -> None:
        while len(self._entries) >= self.limit:
            self._drop_oldest()
        self._numbers += numbers
        if self._numbers > self.numbers and len(self._entries) >= _MINIMUM_ENTRIES:
            held = sum(entry.numbers for entry in list(self._entries.values()))
            self._numbers = held + numbers
            while (
                self._numbers > self.numbers and len(self._entries) >= _MINIMUM_ENTRIES
            ):
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, oldest = self._entries.popitem(last=False)
        self._numbers -= oldest.numbers

    def clear(self) -> None:
        """Drops all values."""
        with self._lock:
            self._entries.clear()
            self._numbers = 0

    def __len__(self) -> int:
        return len(self._entries)


def version_of(tensor: Tensor) -> tuple[int, ...]:
    """Numbers that change when the tensor is edited or its data is replaced.

    On the CPU a checksum is among them, for edits that torch does not count.
    """
    if tensor.layout != torch.strided:
        with ordinary_tensors(tensor):
            parts = [version_of(part) for part in sparse_parts(tensor)]
        return (edit_count(tensor), *tensor.shape, *itertools.chain(*parts))
    address = tensor.data_ptr()
    facts = (edit_count(tensor), address, *tensor.shape)
    # A type that handles every operation itself may have no memory at that address.
    handles_all = type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__
    if tensor.is_cpu and address and not handles_all:
        return (*facts, checksum(tensor))
    return facts


tensor_cache = TensorCache()
