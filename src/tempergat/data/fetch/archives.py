"""Unpacking zip archives from the network."""

import os
import shutil
import zipfile
from pathlib import Path, PurePosixPath

from tempergat.base import UserError, explain_full_disk, is_system_error
from tempergat.data.formats.errors import DamagedFile

_BLOCK = 1 << 20


def unpack(archive: Path, folder: Path, members: tuple[str, ...]) -> None:
    """Unpacks the named members; the archive's single top folder, if any, is dropped.

    Every member is checked against its checksum in the archive. The members get their
    final names only when all of them are complete. Nothing else is written, and an
    archive with a name that leads outside the folder is refused.

    Args:
        archive: The zip file.
        folder: Where the members go.
        members: Their names, relative to `folder`. The caller holds the lock.

    Raises:
        UserError: The archive is damaged, hostile, or lacks a member.
    """
    staging = folder / ".unpacking"
    # A killed process may have left it. Nobody uses it: the caller holds the lock.
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        try:
            with explain_full_disk(folder), zipfile.ZipFile(archive) as opened:
                found = _by_member_name(archive, opened)
                for member in members:
                    if member not in found:
                        raise DamagedFile(
                            archive,
                            f"has no {member}; it is not the archive this dataset is "
                            "published in",
                        )
                    _extract(opened, found[member], staging / member)
        except UserError:
            raise
        except Exception as error:
            # A damaged archive can raise almost any exception in zipfile.
            if is_system_error(error):
                raise
            raise DamagedFile(archive, f"is a damaged archive ({error})") from error
        for member in members:
            (folder / member).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staging / member, folder / member)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _by_member_name(
    archive: Path, opened: zipfile.ZipFile
) -> dict[str, zipfile.ZipInfo]:
    files = [info for info in opened.infolist() if not info.is_dir()]
    for info in files:
        path = PurePosixPath(info.filename)
        is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
        if path.is_absolute() or ".." in path.parts or is_link or "\\" in str(path):
            raise UserError(
                f"{archive} holds {info.filename!r}, which would be written outside "
                "its folder; the archive is hostile, so delete it"
            )
    tops = {PurePosixPath(info.filename).parts[0] for info in files}
    nested = all(len(PurePosixPath(info.filename).parts) > 1 for info in files)
    drop = 1 if len(tops) == 1 and nested else 0
    names = {}
    for info in files:
        parts = PurePosixPath(info.filename).parts[drop:]
        names[str(PurePosixPath(*parts))] = info
    return names


def _extract(opened: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if info.file_size > free:
        raise UserError(
            f"{info.filename} unpacks to {info.file_size} bytes, but {path.parent} has "
            f"{free} free; free some space or move the data root with TEMPERGAT_DATA"
        )
    with opened.open(info) as source, open(path, "xb") as target:
        shutil.copyfileobj(source, target, _BLOCK)
        target.flush()
        os.fsync(target.fileno())
