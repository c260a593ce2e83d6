"""Downloads files, and unpacks zip archives.

Only https is used; plain http is accepted for loopback addresses, which never leave the
machine. A broken transfer is resumed where it ended, if the server still has the same
file. A file gets its final name only when it is complete and checked.
"""

import hashlib
import http.client
import ipaddress
import os
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from http.client import HTTPMessage
from pathlib import Path, PurePosixPath
from typing import IO

from tempergat.base import UserError, explain_full_disk, is_system_error, write_into
from tempergat.data.catalog.entries import RemoteFile
from tempergat.data.formats.errors import DamagedFile

Progress = Callable[[str, int, int | None], None]

_BLOCK = 1 << 18
_TIMEOUT_S = 60.0
# The transfer fails after this many attempts in a row without a new byte.
_FRUITLESS_ATTEMPTS = 4
_PAUSE_S = 0.5


class DownloadError(Exception):
    """The file could not be downloaded."""


def download(file: RemoteFile, path: Path, progress: Progress | None = None) -> None:
    """Downloads a file, resuming an earlier attempt.

    Args:
        file: The file.
        path: The final name.
        progress: Called with file name, bytes done and bytes in all.

    Raises:
        DownloadError: The network or the server failed.
        UserError: The file is not what it should be, or the disk is full.
    """
    require_safe_url(file.url)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    fruitless = 0
    while True:
        before = _length(part)
        try:
            with explain_full_disk(path.parent):
                whole = _transfer(file, part, progress)
            if whole:
                break
            reason = "the connection ended early"
        except (urllib.error.HTTPError, urllib.error.URLError) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise DownloadError(f"{file.url}: HTTP {error.code}") from error
            reason = str(getattr(error, "reason", error))
        except (http.client.HTTPException, OSError) as error:
            reason = str(error) or type(error).__name__
        except UserError:
            _forget(part)
            raise
        fruitless = 0 if _length(part) > before else fruitless + 1
        if fruitless == _FRUITLESS_ATTEMPTS:
            raise DownloadError(f"{file.url}: {reason}")
        if fruitless:
            time.sleep(_PAUSE_S * fruitless)
    problem = difference(part, file)
    if problem:
        _forget(part)
        raise UserError(
            f"{file.url} sent {problem}; the published file was cut short, was "
            "damaged or has changed, so get it from elsewhere"
        )
    os.replace(part, path)
    _validator(part).unlink(missing_ok=True)


def require_safe_url(url: str) -> None:
    """Refuses an address whose answer could be changed by others.

    Raises:
        UserError: The address is neither https nor http to a loopback address.
    """
    address = urllib.parse.urlsplit(url)
    if address.scheme == "https":
        return
    if address.scheme == "http" and _is_loopback(address.hostname or ""):
        return
    raise UserError(f"{url} is not an https address; only https is used")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        require_safe_url(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _transfer(file: RemoteFile, part: Path, progress: Progress | None) -> bool:
    """One attempt; True when the server sent all it announced."""
    done = _length(part)
    headers = {"User-Agent": "tempergat", "Accept-Encoding": "identity"}
    if done and _validator(part).exists():
        headers["Range"] = f"bytes={done}-"
        headers["If-Range"] = _validator(part).read_text()
    opener = urllib.request.build_opener(_SafeRedirects)
    request = urllib.request.Request(file.url, headers=headers)
    try:
        response = opener.open(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:
            # The part is longer than the file: start from the beginning.
            _forget(part)
            return False
        raise
    with response:
        place = response.headers.get("Content-Range") or ""
        resumed = response.status == 206 and place.startswith(f"bytes {done}-")
        if not resumed:
            done = 0
            _forget(part)
            tag = response.headers.get("ETag") or response.headers.get("Last-Modified")
            # The next attempt knows by it that the file is the same; a weak tag does
            # not promise the same bytes.
            if tag and not tag.startswith("W/"):
                write_into(part.parent, _validator(part).name, tag)
        announced = response.headers.get("Content-Length")
        total = done + int(announced) if announced is not None else file.size
        _require_disk(file, part, None if total is None else total - done)
        with open(part, "r+b" if resumed else "wb") as stream:
            stream.seek(done)
            stream.truncate()
            while block := response.read(_BLOCK):
                stream.write(block)
                done += len(block)
                if progress is not None:
                    progress(file.name, done, total)
            stream.flush()
            os.fsync(stream.fileno())
    return total is None or done >= total


def _validator(part: Path) -> Path:
    return part.with_name(part.name + ".etag")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator(part).unlink(missing_ok=True)


def _length(part: Path) -> int:
    # A link is not continued, but replaced.
    return part.stat().st_size if part.is_file() and not part.is_symlink() else 0


def _require_disk(file: RemoteFile, part: Path, needed: int | None) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed is not None and needed > free:
        _forget(part)
        raise UserError(
            f"{file.name} needs {needed} more bytes, but {part.parent} has {free} "
            "free; free some space or move the data root with TEMPERGAT_DATA"
        )


def difference(path: Path, file: RemoteFile) -> str:
    """What the size or the checksum of a file should be; empty where they fit.

    It begins with what was seen, like `7 bytes, but a.npz has 9`.
    """
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"{size} bytes, but {file.name} has {file.size}"
    if file.sha256 is None:
        return ""
    with open(path, "rb") as stream:
        seen = hashlib.file_digest(stream, "sha256").hexdigest()
    if seen == file.sha256:
        return ""
    return f"sha256 {seen}, but {file.name} has {file.sha256}"


def unpack(archive: Path, folder: Path, members: tuple[str, ...]) -> None:
    """Unpacks the named members; the top folder that holds them, if any, is dropped.

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
                infos = _by_member_name(archive, opened, members)
                for member in members:
                    if member not in infos:
                        raise DamagedFile(
                            archive,
                            f"has no {member}; it is not the archive this dataset is "
                            "published in",
                        )
                    _extract(opened, infos[member], staging / member)
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
    archive: Path, opened: zipfile.ZipFile, members: tuple[str, ...]
) -> dict[str, zipfile.ZipInfo]:
    """The files of an archive, without the top folder that holds the members.

    Other files at the top, like a README or the `__MACOSX` of another system, do not
    matter.
    """
    files = {}
    for info in opened.infolist():
        path = PurePosixPath(info.filename)
        is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
        if info.is_dir():
            continue
        if path.is_absolute() or ".." in path.parts or is_link or "\\" in str(path):
            raise UserError(
                f"{archive} holds {info.filename!r}, which would be written outside "
                "its folder; the archive is hostile, so delete it"
            )
        files[str(path)] = info
    tops = dict.fromkeys(["", *(f"{PurePosixPath(name).parts[0]}/" for name in files)])
    top = max(tops, key=lambda folder: sum(folder + name in files for name in members))
    return {n.removeprefix(top): i for n, i in files.items() if n.startswith(top)}


def _extract(opened: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if info.file_size > free:
        raise UserError(
            f"{info.filename} unpacks to {info.file_size} bytes, but {path.parent} has "
            f"{free} free; free some space or move the data root with TEMPERGAT_DATA"
        )
    with opened.open(info) as source, open(path, "xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
        target.flush()
        os.fsync(target.fileno())
