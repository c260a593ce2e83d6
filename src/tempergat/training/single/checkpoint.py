"""Checkpoints: safetensors files with a checksum.

A file holds tensors and, in its header, metadata as JSON text and a sha256 of both:
safetensors itself notices a truncated file but not a flipped bit. The same tensors and
metadata always make the same bytes. Reading a file runs no code from it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from tempergat.base import UserError, refuse_pipe, write_into
from tempergat.training.examples import SPLITS
from tempergat.training.loop import COLUMNS
from tempergat.training.runs.models import tensors_of
from tempergat.training.settings.config import RunConfig

CHECKPOINT_NAME = "checkpoint.safetensors"
_OURS = "tempergat checkpoint "
_FORMAT = f"{_OURS}1"
_LENGTH_BYTES = 8
# safetensors starts the tensors at a multiple of this.
_ALIGNMENT = 8
_REMEDY = "give the path of a file that `tempergat train` made"
# What a checkpoint that cannot be continued needs.
TRAIN_AGAIN = "train again with --no-resume (resume=False in Python)"


class Checkpoint(NamedTuple):
    """The content of a checkpoint file: tensors, and plain JSON values, by name."""

    tensors: dict[str, Tensor]
    metadata: dict[str, Any]


def file_at(path: str | os.PathLike[str]) -> Path:
    """The checkpoint at a path: the file itself, or the one in a folder."""
    path = Path(path)
    return path / CHECKPOINT_NAME if path.is_dir() else path


def write(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]
) -> None:
    """Writes a checkpoint atomically into its folder.

    Raises:
        UserError: The folder cannot be written to.
    """
    write_into(path.parent, path.name, to_bytes(tensors, metadata))


def to_bytes(tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> bytes:
    """The content of a checkpoint file."""
    stored = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    about = {"format": _FORMAT, "facts": json.dumps(metadata, sort_keys=True)}
    unsigned = safetensors.torch.save(stored, {**about, "sha256": ""})
    about["sha256"] = _digest(unsigned)
    # safetensors itself writes the metadata in another order each time.
    header = {**_header(unsigned), "__metadata__": about}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    length = len(text).to_bytes(_LENGTH_BYTES, "little")
    return b"".join((length, text, _body(unsigned)))


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
        refuse_pipe(path)
        content = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read checkpoint {path}: {error.strerror}; {remedy}"
        ) from error
    try:
        about = _header(content).get("__metadata__", {})
        tensors = safetensors.torch.load(content)
        intact = about.get("sha256") == _digest(content)
        metadata = json.loads(about.get("facts", "{}"))
    except (SafetensorError, ValueError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{path} is not a checkpoint of tempergat, or a damaged one; {remedy}"
        ) from error
    version = str(about.get("format", ""))
    if not version.startswith(_OURS) or not isinstance(metadata, dict):
        raise UserError(f"{path} is not a checkpoint of tempergat; {remedy}")
    if version != _FORMAT:
        raise UserError(
            f"{path} has the format {version[:80]!r}, which a later version of "
            f"tempergat writes; this version reads {_FORMAT!r}, so update tempergat"
        )
    if not intact:
        raise UserError(
            f"{path} is damaged: its content does not match its checksum; delete it "
            "and train again, or restore it from a copy"
        )
    return Checkpoint(tensors, metadata)


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """A module's parameters and buffers, by their names in a checkpoint."""
    return {f"best.{name}": v.unsqueeze(0) for name, v in tensors_of(module).items()}


def require_tensors(
    path: Path, tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]
) -> None:
    """Refuses a checkpoint that lacks a tensor or has one of another shape or type.

    Raises:
        UserError: A tensor is missing, or has another shape or type.
    """
    for name, like in wanted.items():
        value = tensors.get(name)
        expected = _describe(like)
        seen = "nothing" if value is None else _describe(value)
        if seen != expected:
            raise UserError(
                f"{path} holds {seen} in place of {name}, not {expected}; {TRAIN_AGAIN}"
            )


def require_progress(
    path: Path, tensors: Mapping[str, Tensor], config: RunConfig
) -> None:
    """Refuses a checkpoint whose record of the epochs cannot be that of a run.

    Raises:
        UserError: A tensor is missing, has another shape or type, counts epochs that
            the run does not have, or holds scores that are not fractions.
    """
    shape = (config.epochs, 1, len(COLUMNS))
    progress = {
        "failed_epoch": torch.zeros(1, dtype=torch.int64),
        "epoch": torch.zeros((), dtype=torch.int64),
        "history": torch.empty(shape, dtype=torch.float64, device="meta"),
    }
    require_tensors(path, tensors, progress)
    epoch, failed_epoch = int(tensors["epoch"]), int(tensors["failed_epoch"])
    for name, value, most in (
        ("epoch", epoch, config.epochs),
        ("failed_epoch", failed_epoch, epoch),
    ):
        if not 0 <= value <= most:
            raise UserError(
                f"{path} says that its {name} is {value}, which is not from 0 to "
                f"{most}; {TRAIN_AGAIN}"
            )
    first_score = COLUMNS.index(SPLITS[0])
    scores = tensors["history"][:epoch, 0, first_score:]
    if not failed_epoch and not ((scores >= 0.0) & (scores <= 1.0)).all():
        raise UserError(f"{path} holds scores that are not from 0 to 1; {TRAIN_AGAIN}")


def refuse_failed(what: str, failed_epoch: int | None) -> None:
    """Refuses to use a run, named in words, that failed at an epoch; 0 for none."""
    if failed_epoch:
        raise UserError(
            f"{what} failed at epoch {failed_epoch}, where its loss was not a finite "
            "number; train it again with a lower learning rate"
        )


def _describe(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


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
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    digest.update(_body(content))
    return digest.hexdigest()


def _body(content: bytes) -> memoryview:
    """The bytes of the tensors."""
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    return memoryview(content)[_LENGTH_BYTES + length :]
