"""Atomic writes: a reader sees the old file or the new one, never a part of it."""

import os
import re
import tempfile
from pathlib import Path

from tempergat.base.errors import UserError

# File systems allow names of 255 bytes. Callers add prefixes and suffixes.
_LONGEST_STEM = 150


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically: to a temporary file, flushed to disk, then renamed.

    Args:
        path: Where the file goes; missing folders are created.
        content: The whole content.

    Raises:
        UserError: The folder cannot be created or written to, the disk is full, or the
            path is a folder.
    """
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder; give the name of a file")
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


def write_text(path: Path, content: str) -> None:
    """Writes text as UTF-8, atomically.

    Raises:
        UserError: As for `write_bytes`.
    """
    write_bytes(path, content.encode())


def file_stem(name: str) -> str:
    """Turns a name into a part of a file name, without spaces and separators."""
    plain = re.sub(r"[^\w.-]+", "-", name).encode(errors="replace")[:_LONGEST_STEM]
    # Characters outside the encoding of file names are passed on as bytes.
    return os.fsdecode(plain.decode(errors="ignore").encode())
