"""Files and what is written to them: text, arrays, CSV and JSON values.

Writes are atomic: a reader sees the old file or the new one, never a part of it.
"""

from __future__ import annotations

import csv
import errno
import io
import math
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from tempergat.base.errors import UserError

if TYPE_CHECKING:
    import numpy as np

# File systems allow names of 255 bytes. Callers add prefixes and suffixes.
_LONGEST_STEM = 150
# What the system follows before it takes links for a loop.
_MOST_LINKS = 40
_STANDARD_OUTPUT = Path("-")


def write_text(path: Path, content: str) -> None:
    """Writes text as UTF-8 to a path that the user gave, as `write_bytes` does.

    Raises:
        UserError: The path cannot be written, as `write_bytes` says.
    """
    write_bytes(path, content.encode(errors="replace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically to a path that the user gave.

    What exists and is neither a regular file nor a folder is written into: a FIFO, a
    device like `/dev/null`, `/dev/stdout`. The path `-` is standard output. Where the
    path is a link, the file that it names is written, and the link stays. All other
    files are written to a temporary file, flushed to disk, then renamed.

    Args:
        path: Where the file goes; missing folders are created.
        content: The whole content.

    Raises:
        UserError: The folder cannot be created or written to, the disk is full, the
            path is a folder, or its link leads to itself.
    """
    if path == _STANDARD_OUTPUT:
        _write_into_stream(sys.stdout, content)
    elif path.is_dir():
        raise _is_folder(path)
    elif (descriptor := _own_descriptor(path)) is not None or _is_special(path):
        _write_into_open(path, descriptor, content)
    else:
        _replace(_target(path), content)


def write_into(folder: Path, name: str, content: str | bytes) -> Path:
    """Writes a file atomically under a name that the user did not give.

    Whatever has that name is replaced, a link, FIFO or device too: nobody can direct
    the content elsewhere by planting one.

    Args:
        folder: The folder; it is created where it is missing.
        name: The name of the file in it.
        content: The whole content; text is written as UTF-8.

    Returns:
        The path of the file.

    Raises:
        UserError: The folder cannot be created or written to, the disk is full, or a
            folder has that name.
    """
    path = folder / name
    if path.parent != folder:
        raise ValueError(f"{name!r} is not the name of a file in {folder}")
    if path.is_dir() and not path.is_symlink():
        raise _is_folder(path)
    if isinstance(content, str):
        content = content.encode(errors="replace")
    _replace(path, content)
    return path


def is_standard_output(path: Path) -> bool:
    """Whether what `write_text` writes to a path comes out of standard output."""
    return path == _STANDARD_OUTPUT or _own_descriptor(path) == 1


def _is_folder(path: Path) -> UserError:
    return UserError(f"cannot write {path}: it is a folder; give the name of a file")


def _own_descriptor(path: Path) -> int | None:
    """The number of the open file of this process that a path names, if it does.

    `/dev/stdout` is such a path. Where the shell has opened a regular file for it, that
    file must not be replaced: what this process prints would be lost with the old one.
    """
    for _ in range(_MOST_LINKS):
        if os.path.realpath(path.parent) == f"/proc/{os.getpid()}/fd":
            return int(path.name) if path.name.isdigit() else None
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _is_special(path: Path) -> bool:
    """Whether something is there that must be written into, not replaced."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def refuse_pipe(path: object) -> None:
    """Raises OSError for a pipe or a device, where reading may wait or never end."""
    if isinstance(path, Path) and _is_special(path) and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")


def _target(path: Path) -> Path:
    """The path that a link leads to, whether or not anything is there."""
    try:
        return path.resolve() if path.is_symlink() else path
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"cannot write {path}: it is a link that leads to itself; remove it"
        ) from error


def _write_into_open(path: Path, descriptor: int | None, content: bytes) -> None:
    """Writes into an open file of this process, or into what is no regular file."""
    try:
        if descriptor is None:
            # Not created: where it has just vanished, that is an error.
            with os.fdopen(os.open(path, os.O_WRONLY), "wb", buffering=0) as file:
                _write_all(file.fileno(), content)
        elif descriptor == sys.stdout.fileno():
            _write_into_stream(sys.stdout, content)
        else:
            _write_all(descriptor, content)
    except OSError as error:
        raise UserError(
            f"cannot write into {path}: {error.strerror}; give the name of a file"
        ) from error


def _write_into_stream(stream: TextIO, content: bytes) -> None:
    stream.flush()
    # A standard output that a notebook or a test has replaced may take text alone.
    binary = getattr(stream, "buffer", None)
    if binary is None:
        stream.write(content.decode(errors="replace"))
    else:
        binary.write(content)
    stream.flush()


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def refuse_windows() -> None:
    """Raises UserError on Windows, which lacks calls that files and locks need."""
    if sys.platform == "win32":
        raise UserError(
            "on Windows layers and sampling run alone; to store datasets, models and "
            "runs use the Windows Subsystem for Linux (WSL)"
        )


def _replace(path: Path, content: bytes) -> None:
    refuse_windows()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(
            f"cannot write {path}: a file is where its folder should be; choose "
            "another folder"
        ) from error
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}; choose a folder you may write to"
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UserError(
                f"cannot write {path}: {error.strerror}; free space or choose another "
                "folder"
            ) from error
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def file_stem(name: str) -> str:
    """Turns a name into a part of a file name, without spaces and separators.

    Dots in front are left out: `.` and `..` are folders, and other files that begin
    with one are hidden.
    """
    words = re.sub(r"[^\w.-]+", "-", name).lstrip(".") or "graph"
    plain = words.encode(errors="replace")[:_LONGEST_STEM]
    # Characters outside the encoding of file names are passed on as bytes.
    return os.fsdecode(plain.decode(errors="ignore").encode())


def write_array(path: Path, array: np.ndarray) -> None:
    """Writes an array as a new ``.npy`` file, through to the disk.

    Raises:
        OSError: The file cannot be written. Its number says why; that of `numpy.save`
            has no number when the disk is full.
    """
    # Imported here: commands that answer at once do not wait for it.
    from numpy import ascontiguousarray
    from numpy.lib import format as npy

    with open(path, "xb") as stream:
        npy.write_array(_Plain(stream), ascontiguousarray(array), allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())


class _Plain:
    """A stream that numpy writes to as to any other, and not by its descriptor."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:
        return self._stream.write(content)


def csv_text(lines: Sequence[dict[str, Any]]) -> str:
    """CSV with the first line's keys as headings; None is an empty cell."""
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer, list(lines[0]) if lines else [], lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def replace_non_finite(
    value: Any, replacement: Callable[[float], Any] = lambda number: None
) -> Any:
    """A copy of nested dicts, lists and tuples with NaN and infinities replaced.

    Args:
        value: A plain value; tuples become lists, as in JSON.
        replacement: What to put in place of a number; null without it.
    """
    if isinstance(value, dict):
        return {key: replace_non_finite(v, replacement) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [replace_non_finite(item, replacement) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return replacement(value)
    return value
