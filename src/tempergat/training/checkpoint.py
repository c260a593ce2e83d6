"""Checkpoints: one safetensors file that is whole, or refused.

The file holds tensors and, in its header, facts as JSON text and a sha256 over both,
since safetensors itself notices a cut file but not a flipped bit. Reading one runs no
code.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from tempergat.base import UserError

_FORMAT = "tempergat checkpoint 1"
_LENGTH_BYTES = 8


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds.

    Attributes:
        tensors: By name.
        facts: Plain JSON values by name.
    """

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def write(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Writes a checkpoint so that the path holds the old file or the new one, whole.

    Raises:
        UserError: The folder cannot be written to.
    """
    stored = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    header = {"format": _FORMAT, "facts": json.dumps(facts, sort_keys=True)}
    unsigned = safetensors.torch.save(stored, {**header, "sha256": ""})
    digest = _digest(unsigned)
    content = safetensors.torch.save(stored, {**header, "sha256": digest})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(
            f"cannot write {path}: a file is where its folder should be; choose "
            "another folder"
        ) from error
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}; free space or choose a folder "
            f"you may write to"
        ) from error


_REMEDY = "give the path of a file that `tempergat train` made"


def read(path: Path, remedy: str = _REMEDY) -> Checkpoint:
    """Reads a checkpoint.

    Args:
        path: The file.
        remedy: What to do where it is none.

    Raises:
        UserError: There is none, or it is damaged, or of a later version.
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
            f"{path} is a {about['format']!r}, this version reads {_FORMAT!r}; use "
            f"the version of tempergat that made it"
        )
    return Checkpoint(tensors, facts)


def require_tensors(
    path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]
) -> None:
    """Refuses a checkpoint whose tensors are not those that are wanted.

    Args:
        path: The file.
        found: What it holds.
        wanted: Tensors of the names, shapes and types that it should hold.

    Raises:
        UserError: One is missing or another.
    """
    for name, like in wanted.items():
        value = found.get(name)
        expected = _in_words(like)
        seen = "nothing" if value is None else _in_words(value)
        if seen != expected:
            raise UserError(
                f"{path} holds {seen} in the place of {name}, not {expected}; train "
                "again with --no-resume"
            )


def _in_words(tensor: Tensor) -> str:
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


def _replace(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
