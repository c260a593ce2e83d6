"""Grouped edges in a folder, which open in a moment at any size.

The folder holds ``pointer.npy``, ``source.npy``, ``edge_id.npy`` unless the edges have
the order of ``edge_index``, and ``topology.json`` with their lengths.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tempergat.base import UserError, explain_full_disk, write_array, write_into
from tempergat.sampling.storage.array_files import open_array
from tempergat.sampling.storage.topology import Topology

_VERSION = 1
_INDEX = "topology.json"


def save_topology(topology: Topology, folder: str | os.PathLike[str]) -> None:
    """Writes grouped edges into a folder, which is complete or absent afterwards.

    Raises:
        UserError: The folder cannot be written, or the disk is full.
    """
    target = Path(folder)
    staging = target.with_name(f".{target.name}.{os.getpid()}")
    arrays = {"pointer": topology.pointer, "source": topology.source}
    if topology.edge_id is not None:
        arrays["edge_id"] = topology.edge_id
    facts = {
        "version": _VERSION,
        "num_src": topology.num_src,
        "num_dst": topology.num_dst,
        "num_edges": topology.num_edges,
        "arrays": list(arrays),
    }
    try:
        with explain_full_disk(target.parent):
            staging.mkdir(parents=True)
            for name, tensor in arrays.items():
                write_array(staging / f"{name}.npy", tensor.cpu().numpy())
            write_into(staging, _INDEX, json.dumps(facts, indent=1))
            if target.is_dir():
                _require_topology(target)
                shutil.rmtree(target)
            os.rename(staging, target)
    except OSError as error:
        raise UserError(
            f"cannot write {target}: {error.strerror}; choose a folder you may write to"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def open_topology(folder: str | os.PathLike[str]) -> Topology:
    """Maps grouped edges from a folder; their lengths are checked, not their values.

    Raises:
        UserError: The folder is not one of grouped edges, or a file is damaged.
    """
    source = Path(folder)
    facts = _read_facts(source)
    counts = facts["num_src"], facts["num_dst"], facts["num_edges"]
    lengths = {"pointer": counts[1] + 1, "source": counts[2], "edge_id": counts[2]}
    tensors: dict[str, Tensor | None] = {"edge_id": None}
    for name in facts["arrays"]:
        path = source / f"{name}.npy"
        tensor = open_array(path)
        if tensor.dtype not in (torch.int32, torch.int64):
            raise _damaged(path, f"holds {tensor.dtype}")
        if list(tensor.shape) != [lengths[name]]:
            raise _damaged(
                path, f"has shape {list(tensor.shape)} and not [{lengths[name]}]"
            )
        tensors[name] = tensor
    pointer, ends = tensors["pointer"], tensors["source"]
    assert pointer is not None
    assert ends is not None
    if (int(pointer[0]), int(pointer[-1])) != (0, counts[2]):
        raise _damaged(source / "pointer.npy", "does not span all edges")
    return Topology(pointer, ends, tensors["edge_id"], counts[0])


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


def _require_topology(folder: Path) -> None:
    """Refuses to replace a folder that holds anything else."""
    if any(folder.iterdir()) and not (folder / _INDEX).exists():
        raise UserError(
            f"{folder} is a folder with other files; choose another one, or remove it"
        )


def _damaged(path: Path, what: str) -> UserError:
    return UserError(f"{path} is damaged: it {what}; save the edges again")
