"""Files that appear whole or not at all."""

import os
import re
import tempfile
from pathlib import Path

from tempergat.base.errors import UserError

# File systems take 255 bytes; room is left for what is put before and after.
_LONGEST_STEM = 150


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, flushed and renamed.

    Args:
        path: Where the file goes; missing folders are made.
        content: The whole file.

    Raises:
        UserError: The folder cannot be made or written to, or the path is one.
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
    """Write text as UTF-8, whole or not at all."""
    write_bytes(path, content.encode())


def file_stem(name: str) -> str:
    """A name as part of a file's: without spaces and separators, and not too long."""
    plain = re.sub(r"[^\w.-]+", "-", name).encode(errors="replace")[:_LONGEST_STEM]
    # Letters that the system cannot name files with go through as bytes.
    return os.fsdecode(plain.decode(errors="ignore").encode())
