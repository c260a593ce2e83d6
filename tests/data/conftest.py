"""Fixtures of the data tests: a loopback server and small raw files."""

import dataclasses
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

with warnings.catch_warnings():
    # PyG compiles parts of itself with torch.jit.script when it is first imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch_geometric  # noqa: F401

from tempergat.data.catalog.entries import CATALOG, Entry
from tempergat.data.fetch.locate import is_local


class Server:
    """Serves files over loopback http, with faults where asked for.

    Attributes:
        files: Content by name.
        tags: ETag by name; none is sent for a name that is not listed.
        cuts: Bytes after which the next answers for a name break off, in order.
        silent_cuts: Like `cuts`, but the answer does not announce its length.
        requests: Name and Range header of every request, in order.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.cuts: dict[str, list[int]] = {}
        self.silent_cuts: dict[str, int] = {}
        self.redirects: dict[str, str] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.url = ""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            asked = self.headers.get("Range")
            server.requests.append((name, asked))
            if name in server.redirects:
                self.send_response(302)
                self.send_header("Location", server.redirects[name])
                self.end_headers()
                return
            if name not in server.files:
                self.send_error(404)
                return
            content = server.files[name]
            start = 0
            same = self.headers.get("If-Range") == server.tags.get(name)
            if asked is not None and same:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            if start:
                end = f"{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", f"bytes {start}-{end}")
            if name in server.tags:
                self.send_header("ETag", server.tags[name])
            body = content[start:]
            if name in server.silent_cuts:
                body = body[: server.silent_cuts[name]]
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cuts = server.cuts.get(name)
            self.wfile.write(body[: cuts.pop(0)] if cuts else body)

        def log_message(self, format: str, *arguments: object) -> None: ...

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that lives as long as the test."""
    state = Server()
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    state.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield state
    listening.shutdown()
    listening.server_close()
    thread.join()


def require_raw_files(name: str, root: Path) -> None:
    """Skips a test whose dataset is neither in a mirror nor cached."""
    if not is_local(CATALOG[name], root):
        pytest.skip(f"needs the raw files of {name} in a folder of TEMPERGAT_MIRROR")


def made_up(name: str, nodes: int, classes: int, **facts: object) -> Entry:
    """The entry of a dataset that describes a graph made up by a test."""
    counts = ("num_edges", "paper_edges", "num_features", "node_types", "edge_types")
    unknown = dict.fromkeys(counts)
    sizes = {"num_nodes": nodes, "num_classes": classes, "split_sizes": ()}
    return dataclasses.replace(CATALOG[name], **{**unknown, **sizes, **facts})


def served(
    server: Server, name: str, nodes: int, classes: int, *contents: bytes
) -> Entry:
    """The entry of a dataset, its files coming from the test's server."""
    entry = CATALOG[name]
    files = []
    for file, content in zip(entry.files, contents, strict=True):
        server.files[file.name] = content
        # The made-up file has another size and checksum than the published one.
        here = f"{server.url}/{file.name}"
        files.append(dataclasses.replace(file, url=here, size=None, sha256=None))
    return made_up(name, nodes, classes, files=tuple(files))
