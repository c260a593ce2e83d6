"""The edges of a large graph, grouped by target, as samplers read them.

`Topology.save` writes a folder with ``pointer.npy``, ``source.npy``, ``edge_id.npy``
unless the edges have the order of ``edge_index``, and ``topology.json`` with their
lengths. Such a folder opens in a moment at any size.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from tempergat.base import UserError, explain_full_disk, write_array, write_into
from tempergat.ops import Relation, group_by_target
from tempergat.sampling.features import open_array

_VERSION = 1
_INDEX = "topology.json"


@dataclass(frozen=True, eq=False)
class Topology:
    """Edges grouped by target.

    Target ``i`` owns the slots ``pointer[i]`` to ``pointer[i + 1]``. Its edges keep
    their order in ``edge_index``. All tensors may be mapped from files.

    Attributes:
        pointer: Where the slots of each target begin and end, [targets + 1], int64.
        source: The source of the edge in each slot, int32 or int64.
        edge_id: The number of the edge in ``edge_index``, int32 or int64; None if
            ``edge_index`` was grouped by target already.
        num_src: Number of source nodes.

    Raises:
        UserError: A part is not a list of whole numbers.
    """

    pointer: Tensor
    source: Tensor
    edge_id: Tensor | None
    num_src: int

    def __post_init__(self) -> None:
        for name in ("pointer", "source", "edge_id"):
            part = getattr(self, name)
            if part is None and name == "edge_id":
                continue
            # Engines read the memory of these tensors.
            if part.dtype not in (torch.int32, torch.int64) or part.dim() != 1:
                raise UserError(
                    f"{name} of a topology must be a list of int32 or int64 numbers, "
                    f"got {part.dtype} of shape {list(part.shape)}"
                )
            object.__setattr__(self, name, part.contiguous())

    def __repr__(self) -> str:
        return (
            f"Topology(sources={self.num_src}, targets={self.num_dst}, "
            f"edges={self.source.size(0)})"
        )

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int | tuple[int, int]) -> Topology:
        """Groups the edges of an ``edge_index`` by target.

        Args:
            edge_index: Source and target of every edge, [2, E].
            num_nodes: Number of nodes, or a pair (sources, targets) if bipartite.

        Raises:
            UserError: An edge refers to a node that does not exist.
        """
        sizes = (num_nodes, num_nodes) if isinstance(num_nodes, int) else num_nodes
        if isinstance(edge_index, EdgeIndex):
            edge_index = edge_index.as_tensor()
        _check_form(edge_index)
        if edge_index.is_cpu and max(*sizes, edge_index.size(1)) < 2**31:
            grouped = group_by_target(edge_index, sizes)
            if grouped is not None:
                return cls(*grouped, sizes[0])
        _check_range(edge_index, sizes)
        source, target = edge_index
        dtype = torch.int32 if sizes[0] < 2**31 else torch.int64
        edge_id = None
        if edge_index.size(1) > 1 and not bool((target[1:] >= target[:-1]).all()):
            target, edge_id = torch.sort(target, stable=True)
            source = source.index_select(0, edge_id)
            if edge_index.size(1) < 2**31:
                edge_id = edge_id.to(torch.int32)
        rows = torch.arange(sizes[1] + 1, device=target.device, dtype=target.dtype)
        pointer = torch.searchsorted(target.contiguous(), rows)
        return cls(pointer, source.to(dtype).contiguous(), edge_id, sizes[0])

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Topology:
        """Maps the edges that `save` wrote, in under a second at any size.

        Their lengths are checked, not their values.

        Raises:
            UserError: The folder does not hold grouped edges, or a file is cut short.
        """
        facts = _read_facts(Path(folder))
        num_edges: int = facts["num_edges"]
        lengths = {"pointer": facts["num_dst"] + 1}
        tensors: dict[str, Any] = {"edge_id": None}
        for name in facts["arrays"]:
            path, length = Path(folder, f"{name}.npy"), lengths.get(name, num_edges)
            tensor = open_array(path)
            if tensor.dtype not in (torch.int32, torch.int64):
                raise _damaged(path, f"holds {tensor.dtype}")
            if list(tensor.shape) != [length]:
                shape = list(tensor.shape)
                raise _damaged(path, f"has shape {shape} and not [{length}]")
            tensors[name] = tensor
        pointer = tensors["pointer"]
        if (int(pointer[0]), int(pointer[-1])) != (0, num_edges):
            raise _damaged(Path(folder, "pointer.npy"), "does not span all edges")
        return cls(**tensors, num_src=facts["num_src"])

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the edges into a folder, replacing edges that were saved there.

        The folder is complete afterwards, or as it was before.

        Raises:
            UserError: The folder cannot be written, or holds other files.
        """
        target = Path(folder)
        staging = target.with_name(f".{target.name}.{os.getpid()}")
        arrays = {"pointer": self.pointer, "source": self.source}
        if self.edge_id is not None:
            arrays["edge_id"] = self.edge_id
        facts = {
            "version": _VERSION,
            "num_src": self.num_src,
            "num_dst": self.num_dst,
            "num_edges": self.num_edges,
            "arrays": list(arrays),
        }
        try:
            with explain_full_disk(target.parent):
                staging.mkdir(parents=True)
                for name, tensor in arrays.items():
                    write_array(staging / f"{name}.npy", tensor.cpu().numpy())
                write_into(staging, _INDEX, json.dumps(facts, indent=1))
                if target.is_dir():
                    if any(target.iterdir()) and not (target / _INDEX).exists():
                        raise UserError(
                            f"{target} is a folder with other files; choose another "
                            "one, or remove it"
                        )
                    shutil.rmtree(target)
                os.rename(staging, target)
        except OSError as error:
            raise UserError(
                f"cannot write {target}: {error.strerror}; choose a folder you may "
                "write to"
            ) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    @property
    def num_dst(self) -> int:
        """Number of target nodes."""
        return self.pointer.size(0) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.source.size(0)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.pointer.device

    def relation(self, source_type: int = 0, target_type: int = 0) -> Relation:
        """The edges as engines take them, between node types of these numbers."""
        return Relation(self.pointer, self.source, source_type, target_type)

    def edges_of(self, slots: Tensor) -> Tensor:
        """The numbers in ``edge_index`` of the edges in some slots, int64."""
        if self.edge_id is None:
            return slots
        return self.edge_id.index_select(0, slots).long()

    def to(self, device: torch.device | str) -> Topology:
        """The same edges on another device."""
        edge_id = self.edge_id if self.edge_id is None else self.edge_id.to(device)
        tensors = self.pointer.to(device), self.source.to(device), edge_id
        return Topology(*tensors, self.num_src)


def _check_form(edge_index: Tensor) -> None:
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise UserError(
            f"edge_index must have shape [2, num_edges], got "
            f"{list(edge_index.shape)}; row 0 holds sources, row 1 targets"
        )
    if edge_index.dtype not in (torch.int32, torch.int64):
        raise UserError(
            f"edge_index must hold int64 or int32 node numbers, got "
            f"{edge_index.dtype}; convert it with edge_index.long()"
        )


def _check_range(edge_index: Tensor, sizes: tuple[int, int]) -> None:
    for side, ends, count in zip(("source", "target"), edge_index, sizes, strict=True):
        if ends.numel() == 0:
            continue
        low, high = (int(x) for x in torch.aminmax(ends))
        if low < 0 or high >= count:
            raise UserError(
                f"edge_index refers to {side} node {low if low < 0 else high}, but "
                f"there are {count} {side} nodes (0..{count - 1}); set num_nodes of "
                "the data to the number of nodes"
            )


def _read_facts(folder: Path) -> dict[str, Any]:
    path = folder / _INDEX
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
        numbers = [facts[name] for name in ("num_src", "num_dst", "num_edges")]
        arrays, usual = facts["arrays"], ["pointer", "source"]
        known = arrays == usual or arrays == [*usual, "edge_id"]
        if not (known and all(type(n) is int and n >= 0 for n in numbers)):
            raise ValueError("a number is missing")
    except OSError as error:
        raise UserError(
            f"cannot open {folder} as grouped edges: {_INDEX}: {error.strerror}; make "
            "the folder with Topology.save"
        ) from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise _damaged(
            path, "does not say how many nodes and edges there are"
        ) from error
    if facts["version"] != _VERSION:
        raise UserError(
            f"{folder} was written by another version of tempergat (format "
            f"{facts['version']!r}, this one reads {_VERSION}); save the edges again"
        )
    return facts


def _damaged(path: Path, what: str) -> UserError:
    return UserError(f"{path} is damaged: it {what}; save the edges again")
