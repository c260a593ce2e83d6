"""Files over loopback http: broken transfers, wrong content, full disks."""

import hashlib
import http.server
import threading
from pathlib import Path

import pytest

from tempergat.base.errors import UserError
from tempergat.data.catalog.entries import RemoteFile
from tempergat.data.fetch import download as download_module
from tempergat.data.fetch.download import DownloadError, download, require_safe_url
from tests.data.conftest import Server
from tests.support.full_disk import full_above

CONTENT = bytes(range(256)) * 4096


def remote(server: Server, content: bytes = CONTENT, **known: object) -> RemoteFile:
    server.files["file.bin"] = content
    server.tags["file.bin"] = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    return RemoteFile("file.bin", f"{server.url}/file.bin", **known)  # type: ignore[arg-type]


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_arrives_whole_and_progress_reaches_its_size(
    server: Server, tmp_path: Path
) -> None:
    seen: list[tuple[str, int, int | None]] = []
    digest = hashlib.sha256(CONTENT).hexdigest()
    file = remote(server, size=len(CONTENT), sha256=digest)
    download(file, tmp_path / "file.bin", lambda *step: seen.append(step))
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert leftovers(tmp_path) == ["file.bin"]
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))


def test_broken_transfer_is_resumed_where_it_ended(
    server: Server, tmp_path: Path
) -> None:
    file = remote(server, size=len(CONTENT))
    server.cuts["file.bin"] = [300_000, 500_000]
    download(file, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    ranges = [asked for _, asked in server.requests]
    assert ranges[0] is None
    assert ranges[1] == "bytes=300000-"
    assert ranges[2] == "bytes=800000-"


def test_part_left_by_a_dead_process_is_resumed(server: Server, tmp_path: Path) -> None:
    file = remote(server)
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    (tmp_path / "file.bin.part.etag").write_text(server.tags["file.bin"])
    download(file, tmp_path / "file.bin")
    assert server.requests == [("file.bin", "bytes=1000-")]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert leftovers(tmp_path) == ["file.bin"]


@pytest.mark.parametrize(
    ("part", "tag", "asked"),
    [
        (b"older content", '"older"', "bytes=13-"),
        (b"x" * 1000, None, None),
        (CONTENT + b"more", "the same", f"bytes={len(CONTENT) + 4}-"),
    ],
    ids=["of another version", "without a validator", "longer than the file"],
)
def test_a_part_that_cannot_be_continued_is_fetched_again(
    server: Server, tmp_path: Path, part: bytes, tag: str | None, asked: str | None
) -> None:
    file = remote(server)
    (tmp_path / "file.bin.part").write_bytes(part)
    if tag is not None:
        tag = server.tags["file.bin"] if tag == "the same" else tag
        (tmp_path / "file.bin.part.etag").write_text(tag)
    download(file, tmp_path / "file.bin")
    assert server.requests[0] == ("file.bin", asked)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_transfer_without_progress_is_given_up(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_module, "_PAUSE_S", 0.0)
    file = remote(server)
    server.cuts["file.bin"] = [0] * 20
    with pytest.raises(DownloadError, match=r"file\.bin"):
        download(file, tmp_path / "file.bin")
    assert not (tmp_path / "file.bin").exists()


def test_silent_truncation_is_caught_by_the_known_size(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_module, "_PAUSE_S", 0.0)
    file = remote(server, size=len(CONTENT))
    server.silent_cuts["file.bin"] = 1000
    server.tags.clear()
    with pytest.raises((UserError, DownloadError)) as caught:
        download(file, tmp_path / "file.bin")
    assert "file.bin" in str(caught.value)
    assert not (tmp_path / "file.bin").exists()


def test_wrong_checksum_names_both_and_leaves_nothing(
    server: Server, tmp_path: Path
) -> None:
    file = remote(server, sha256="0" * 64)
    with pytest.raises(UserError) as caught:
        download(file, tmp_path / "file.bin")
    assert "0" * 64 in str(caught.value)
    assert hashlib.sha256(CONTENT).hexdigest() in str(caught.value)
    assert leftovers(tmp_path) == []


def test_wrong_size_names_both_and_leaves_nothing(
    server: Server, tmp_path: Path
) -> None:
    file = remote(server, size=17)
    with pytest.raises(UserError, match=rf"{len(CONTENT)} bytes.*has 17"):
        download(file, tmp_path / "file.bin")
    assert leftovers(tmp_path) == []


def test_missing_file_is_reported_at_once(server: Server, tmp_path: Path) -> None:
    file = RemoteFile("gone.bin", f"{server.url}/gone.bin")
    with pytest.raises(DownloadError, match="404"):
        download(file, tmp_path / "gone.bin")
    assert len(server.requests) == 1


def test_more_than_the_disk_holds_is_refused_before_a_byte_is_written(
    tmp_path: Path,
) -> None:
    class Boast(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(10**18))
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Boast) as listening:
        thread = threading.Thread(target=listening.handle_request, daemon=True)
        thread.start()
        file = RemoteFile("big.bin", f"http://127.0.0.1:{listening.server_port}/big")
        with pytest.raises(UserError, match=r"big.bin needs 10{18} more bytes.*free"):
            download(file, tmp_path / "big.bin")
        thread.join()
    assert leftovers(tmp_path) == []


def test_disk_that_fills_up_midway_is_an_error_and_leaves_no_file(
    server: Server, tmp_path: Path
) -> None:
    file = remote(server)
    with full_above(100_000), pytest.raises(UserError, match=r"disk under .* is full"):
        download(file, tmp_path / "file.bin")
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/file",
        "ftp://example.org/file",
        "file:///etc/passwd",
        "http://localhost.example.org/file",
        "http://127.0.0.1.example.org/file",
    ],
)
def test_only_https_is_fetched(url: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="https"):
        download(RemoteFile("file", url), tmp_path / "file")
    require_safe_url("https://example.org/file")


def test_redirect_away_from_https_is_refused(server: Server, tmp_path: Path) -> None:
    server.redirects["moved"] = "http://example.org/file"
    with pytest.raises(UserError, match=r"http://example.org/file.*https"):
        download(RemoteFile("moved", f"{server.url}/moved"), tmp_path / "moved")
    assert leftovers(tmp_path) == []
