"""Checkpoints: safetensors files with a checksum.

A file holds tensors and, in its header, facts as JSON text and a sha256 of both:
safetensors itself notices a truncated file but not a flipped bit. Reading a file runs
no code from it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from tempergat.base import UserError, write_bytes

CHECKPOINT_NAME = "checkpoint.safetensors"
_FORMAT = "tempergat checkpoint 1"
_LENGTH_BYTES = 8


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint file.

    Attributes:
        tensors: Tensors by name.
        facts: Plain JSON values by name.
    """

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def file_at(path: str | os.PathLike[str]) -> Path:
    """The checkpoint at a path: the file itself, or the one in a folder."""
    path = Path(path)
    return path / CHECKPOINT_NAME if path.is_dir() else path


def write(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Writes a checkpoint atomically.

    Raises:
        UserError: The folder cannot be written to.
    """
    stored = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    header = {"format": _FORMAT, "facts": json.dumps(facts, sort_keys=True)}
    unsigned = safetensors.torch.save(stored, {**header, "sha256": ""})
    digest = _digest(unsigned)
    content = safetensors.torch.save(stored, {**header, "sha256": digest})
    write_bytes(path, content)


_REMEDY = "give the path of a file that `tempergat train` made"


def read(path: Path, remedy: str = _REMEDY) -> Checkpoint:
    """Reads a checkpoint.

    Args:
        path: The file.
        remedy: What an error message proposes to do.

    Raises:
        UserError: There is no such file, or it is damaged, not a checkpoint, or of a
            later version.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read checkpoint {path}: {error.strerror}; {remedy}"
        ) from error
    try:
        about = _header(content).get("__metadata__", {})
        tensors = safetensors.torch.load(content)
        intact = about.get("sha256") == _digest(content)
        facts = json.loads(about.get("facts", "{}"))
    except (SafetensorError, ValueError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{path} is not a checkpoint of tempergat, or a damaged one; {remedy}"
        ) from error
    ours = str(about.get("format", "")).startswith("tempergat checkpoint")
    if not ours or not isinstance(facts, dict):
        raise UserError(f"{path} is not a checkpoint of tempergat; {remedy}")
    if not intact:
        raise UserError(_damaged(path))
    if about["format"] != _FORMAT:
        raise UserError(
            f"{path} has the format {about['format']!r}, but this version reads "
            f"{_FORMAT!r}; use the version of tempergat that made it"
        )
    return Checkpoint(tensors, facts)


def require_tensors(
    path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]
) -> None:
    """Refuses a checkpoint that lacks a tensor or has one of another shape or type.

    Args:
        path: The file.
        found: Its tensors.
        wanted: Tensors with the names, shapes and types that it must have.

    Raises:
        UserError: A tensor is missing, or has another shape or type.
    """
    for name, like in wanted.items():
        value = found.get(name)
        expected = _describe(like)
        seen = "nothing" if value is None else _describe(value)
        if seen != expected:
            raise UserError(
                f"{path} holds {seen} in place of {name}, not {expected}; train "
                "again with --no-resume"
            )


def _describe(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


def _damaged(path: Path) -> str:
    return (
        f"{path} is damaged: its content does not match its checksum; delete it and "
        f"train again, or restore it from a copy"
    )


def _header(content: bytes) -> dict[str, Any]:
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    header = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
    if not isinstance(header, dict):
        raise ValueError("the header is not an object")
    return header


def _digest(content: bytes) -> str:
    """The sha256 of a file's header, without the checksum in it, and its tensors."""
    header = _header(content)
    header["__metadata__"] = {**header["__metadata__"], "sha256": ""}
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    digest.update(memoryview(content)[_LENGTH_BYTES + length :])
    return digest.hexdigest()
