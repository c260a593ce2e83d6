"""Finding raw files: in the data root, in mirror folders, or on the network.

`TEMPERGAT_MIRROR` is a list of folders, separated like PATH, that are searched before
anything is downloaded. A mirror may hold a dataset's files in its own layout
(`planetoid/Cora/raw/ind.cora.x`), in a folder of the dataset's name, or loose; archives
may lie there packed or unpacked. `TEMPERGAT_DATA` moves the data root.
"""

import os
from pathlib import Path

from tempergat.base import FileLock, UserError, explain_unreadable
from tempergat.data.catalog.entries import Entry, RemoteFile
from tempergat.data.fetch.download import (
    DownloadError,
    Progress,
    difference,
    download,
    unpack,
)
from tempergat.data.formats.errors import DamagedFile


def as_path(name: str | os.PathLike[str]) -> Path:
    """A path as the user wrote it; `~` is the home folder."""
    return Path(os.path.expanduser(name))


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder for datasets: the argument, TEMPERGAT_DATA or the user's cache.

    A user without a home folder gets one that cannot be written to, so that what needs
    no files works, and everything else says how to choose a folder.
    """
    if root is not None:
        return as_path(root)
    if os.environ.get("TEMPERGAT_DATA"):
        return as_path(os.environ["TEMPERGAT_DATA"])
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if cache.startswith("~"):
        cache = "/nonexistent/.cache"
    return Path(cache) / "tempergat"


def lock_data(path: Path) -> FileLock:
    """A lock on files under the data root."""
    return FileLock(path, "choose a writable data root with TEMPERGAT_DATA")


def mirror_folders() -> list[Path]:
    """The folders named in TEMPERGAT_MIRROR."""
    listed = os.environ.get("TEMPERGAT_MIRROR", "")
    return [as_path(folder) for folder in listed.split(os.pathsep) if folder]


def obtain(
    entry: Entry, root: Path, progress: Progress | None = None
) -> dict[str, Path]:
    """Finds or downloads the raw files of a dataset.

    Args:
        entry: The dataset.
        root: The data root.
        progress: Called with file name, bytes done and bytes in all.

    Returns:
        The path of every raw file by name; members of archives by their own names.

    Raises:
        UserError: A file can be neither found nor downloaded, or is damaged.
    """
    paths: dict[str, Path] = {}
    for file in entry.files:
        paths.update(_obtain_file(entry, file, root, progress))
    return paths


def find_local(entry: Entry, file: RemoteFile, root: Path) -> dict[str, Path] | None:
    """The paths of a file, or of all members of an archive, without the network."""
    names = file.members or (file.name,)
    places = _places(entry, root)
    # Copies are called like files of other graphs, so they are not looked for loose in
    # a mirror.
    named = [place for place in places if place not in mirror_folders()]
    for wanted, folders in ((names, places), (file.copies, named)):
        for place in folders:
            if wanted and all((place / name).is_file() for name in wanted):
                return {name: place / name for name in wanted}
    return None


def is_local(entry: Entry, root: Path) -> bool:
    """Whether all raw files, or all to try instead, are here, packed or unpacked."""
    return any(
        all(find_local(entry, f, root) or _find_archive(entry, f, root) for f in files)
        for files in (entry.files, entry.swapped_files or entry.files)
    )


def availability(entry: Entry, root: Path) -> str:
    """What this machine has of a dataset: generated, processed, raw files or no."""
    if not entry.files:
        return "generated"
    if entry.keep_processed and any((root / entry.name).glob("processed*/graph.json")):
        return "processed"
    return "raw files" if is_local(entry, root) else "no"


def _places(entry: Entry, root: Path) -> list[Path]:
    """The folders to search, in order. Members of an archive come from one folder."""
    places = [root / entry.raw_folder]
    for mirror in mirror_folders():
        for folder in entry.folders:
            places += [mirror / folder / "raw", mirror / folder]
        places.append(mirror)
    return places


def _find_archive(entry: Entry, file: RemoteFile, root: Path) -> Path | None:
    if not file.members:
        return None
    candidates = (place / file.name for place in _places(entry, root))
    return next((path for path in candidates if path.is_file()), None)


def _obtain_file(
    entry: Entry, file: RemoteFile, root: Path, progress: Progress | None
) -> dict[str, Path]:
    paths = find_local(entry, file, root)
    if paths is None:
        with lock_data((root / entry.raw_folder).parent / ".raw.lock"):
            # Another process may have fetched it while this one waited.
            paths = find_local(entry, file, root)
            if paths is None:
                paths = _fetch(entry, file, root, progress)
    for path in paths.values():
        # Otherwise readers would report a file without read permission as damaged.
        with explain_unreadable(path), open(path, "rb"):
            pass
    if file.name in paths:
        _verify(paths[file.name], file)
    return paths


def _fetch(
    entry: Entry, file: RemoteFile, root: Path, progress: Progress | None
) -> dict[str, Path]:
    raw = root / entry.raw_folder
    packed = _find_archive(entry, file, root)
    is_new = packed is None
    if packed is None:
        packed = raw / file.name
        try:
            download(file, packed, progress)
        except DownloadError as error:
            wanted = ", ".join(f"{file.name} from {file.url}" for file in entry.files)
            mirrors = ", ".join(map(str, mirror_folders())) or "not set"
            raise UserError(
                f"{entry.name} could not be found or downloaded ({error}); put "
                f"{wanted} into {raw}, or into a folder listed in TEMPERGAT_MIRROR "
                f"(now {mirrors})"
            ) from error
    if not file.members:
        return {file.name: packed}
    _verify(packed, file)
    try:
        unpack(packed, raw, file.members)
    except UserError:
        # A truncated download must not be found by the next attempt.
        if is_new:
            packed.unlink()
        raise
    if packed.parent == raw:
        packed.unlink()
    return {name: raw / name for name in file.members}


def _verify(path: Path, file: RemoteFile) -> None:
    """Checks a file against the size and checksum that are known."""
    problem = difference(path, file)
    if problem:
        raise DamagedFile(path, f"has {problem}")
