"""Where raw files are found: the data root, mirrors, the network."""

import dataclasses
import hashlib
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.data import load
from tempergat.data.catalog.entries import CATALOG, Entry
from tempergat.data.dataset import hash_array
from tempergat.data.fetch.locate import availability, data_root, is_local, obtain
from tests.data.conftest import Server, made_up, require_raw_files
from tests.support import raw_layouts
from tests.support.entries import load_entry
from tests.support.processes import ProcessStarter

EDGES = [(0, 1), (1, 2), (3, 0), (2, 1)]
PARTS = {"train": [0, 3], "valid": [1], "test": [2]}


def arxiv_archive() -> bytes:
    features = np.ones((4, 3), dtype=np.float32)
    labels = np.array([0, 1, 0, 1])
    return raw_layouts.ogb_homogeneous("arxiv", "time", EDGES, features, labels, PARTS)


def arxiv(url: str, sha256: str | None = None) -> Entry:
    entry = CATALOG["ogbn-arxiv"]
    file = dataclasses.replace(entry.files[0], url=url, sha256=sha256)
    return made_up("ogbn-arxiv", 4, 2, files=(file,))


NOWHERE = "http://127.0.0.1:9/arxiv.zip"


@pytest.mark.parametrize(
    "layout", ["planetoid/Cora/raw", "planetoid/Cora", "cora/raw", "Cora", "."]
)
def test_mirror_may_hold_the_files_in_several_layouts(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_raw_files("cora", tmp_path)
    folder = tmp_path / "mirror" / layout
    folder.mkdir(parents=True)
    for name, path in obtain(CATALOG["cora"], tmp_path).items():
        shutil.copy(path, folder / name)
    monkeypatch.setenv("TEMPERGAT_MIRROR", f"{tmp_path}/none:{tmp_path}/mirror")
    dataset = load("cora", tmp_path / "root")
    assert dataset.data.num_edges == 10_556
    assert dataset.source == f"read from {folder}"
    assert not (tmp_path / "root").exists()


def test_damaged_file_in_a_mirror_is_named_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_raw_files("cora", tmp_path)
    for name, path in obtain(CATALOG["cora"], tmp_path).items():
        shutil.copyfile(path, tmp_path / name)
    damaged = tmp_path / "ind.cora.tx"
    content = bytearray(damaged.read_bytes())
    content[1000] ^= 1
    damaged.write_bytes(content)
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(tmp_path))
    with pytest.raises(UserError, match=r"ind\.cora\.tx has sha256"):
        load("cora", tmp_path / "root")
    damaged.write_bytes(content[:-1])
    with pytest.raises(UserError, match=r"148024 bytes, but ind\.cora\.tx has 148025"):
        load("cora", tmp_path / "root")


@pytest.mark.parametrize("packed", [True, False])
def test_mirror_may_hold_an_archive_packed_or_unpacked(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror" / "ogbn_arxiv"
    mirror.mkdir(parents=True)
    (mirror / "arxiv.zip").write_bytes(arxiv_archive())
    if not packed:
        shutil.unpack_archive(mirror / "arxiv.zip", mirror)
        for part in ("raw", "split"):
            shutil.move(mirror / "arxiv" / part, mirror / part)
        (mirror / "arxiv.zip").unlink()
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(tmp_path / "mirror"))
    entry = arxiv(NOWHERE)
    assert is_local(entry, tmp_path)
    assert availability(entry, tmp_path) == "raw files"
    before = sorted(mirror.rglob("*"))
    assert load_entry(entry, tmp_path).data.num_edges == 6
    assert sorted(mirror.rglob("*")) == before
    assert availability(entry, tmp_path) == "processed"


def test_without_network_the_error_says_what_to_put_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setattr("tempergat.data.fetch.download._PAUSE_S", 0.0)
    with pytest.raises(UserError) as caught:
        load_entry(arxiv(NOWHERE), tmp_path)
    message = str(caught.value)
    assert "arxiv.zip" in message
    assert NOWHERE in message
    assert str(tmp_path / "ogbn-arxiv" / "raw") in message
    assert str(tmp_path / "mirror") in message
    assert "\n" not in message


@pytest.mark.usefixtures("no_mirror")
def test_file_put_where_the_error_says_is_used(tmp_path: Path) -> None:
    raw = tmp_path / "ogbn-arxiv" / "raw"
    raw.mkdir(parents=True)
    (raw / "arxiv.zip").write_bytes(arxiv_archive())
    assert load_entry(arxiv(NOWHERE), tmp_path).data.num_edges == 6


@pytest.mark.usefixtures("no_mirror")
def test_archive_cut_short_on_the_way_is_fetched_again(
    server: Server, tmp_path: Path
) -> None:
    server.files["arxiv.zip"] = arxiv_archive()
    server.silent_cuts["arxiv.zip"] = 700
    entry = arxiv(f"{server.url}/arxiv.zip")
    with pytest.raises(UserError, match=r"arxiv\.zip is a damaged archive"):
        load_entry(entry, tmp_path)
    assert not (tmp_path / "ogbn-arxiv" / "processed").exists()
    server.silent_cuts.clear()
    assert load_entry(entry, tmp_path).data.num_edges == 6


LOAD_ONE = """
import dataclasses, os, sys, time
from pathlib import Path
from tempergat.data.catalog.entries import CATALOG
from tempergat.data.dataset import hash_array
from tests.support.entries import load_entry
from tests.data.conftest import made_up
entry = CATALOG["ogbn-arxiv"]
file = dataclasses.replace(entry.files[0], url=sys.argv[1], sha256=sys.argv[2])
entry = made_up("ogbn-arxiv", 4, 2, files=(file,))
os.environ.pop("TEMPERGAT_MIRROR", None)
print("ready", flush=True)
while not Path(sys.argv[3], "go").exists():
    time.sleep(0.001)
print(load_entry(entry, Path(sys.argv[3])).fingerprint)
"""


@pytest.mark.usefixtures("no_mirror")
def test_two_processes_at_once_fetch_and_process_only_once(
    server: Server, tmp_path: Path, starter: ProcessStarter, python: ProcessStarter
) -> None:
    archive = arxiv_archive()
    server.files["arxiv.zip"] = archive
    digest = hashlib.sha256(archive).hexdigest()
    arguments = [f"{server.url}/arxiv.zip", digest, str(tmp_path)]
    outputs = [tmp_path / "one.txt", tmp_path / "other.txt"]
    for started, output in zip((starter, python), outputs, strict=True):
        output.write_text("")
        started.start(arguments, output, LOAD_ONE)
    while not all("ready" in output.read_text() for output in outputs):
        time.sleep(0.01)
    (tmp_path / "go").touch()
    assert (starter.wait(), python.wait()) == (0, 0)
    here = load_entry(arxiv(*arguments[:2]), tmp_path)
    for output in outputs:
        assert output.read_text().split() == ["ready", here.fingerprint]
    assert len(server.requests) == 1
    names = sorted(path.name for path in (tmp_path / "ogbn-arxiv").iterdir())
    assert names == [".processed.lock", ".raw.lock", "processed", "raw"]


def test_root_is_the_argument_then_the_variable_then_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPERGAT_DATA", str(tmp_path / "variable"))
    assert data_root(tmp_path) == tmp_path
    assert data_root() == tmp_path / "variable"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root("~/data") == tmp_path / "data"
    monkeypatch.setenv("TEMPERGAT_DATA", "~/elsewhere")
    assert data_root() == tmp_path / "elsewhere"
    monkeypatch.delenv("TEMPERGAT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root() == tmp_path / "cache" / "tempergat"
    monkeypatch.delenv("XDG_CACHE_HOME")
    # A user whom the system does not know has no home folder.
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert data_root() == Path("/nonexistent/.cache/tempergat")


def test_second_load_maps_the_processed_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "arxiv.zip").write_bytes(arxiv_archive())
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(mirror))
    first = load_entry(arxiv(NOWHERE), tmp_path)
    shutil.rmtree(mirror)
    shutil.rmtree(tmp_path / "ogbn-arxiv" / "raw")
    second = load_entry(arxiv(NOWHERE), tmp_path)
    assert second.fingerprint == first.fingerprint
    second.data.x.zero_()
    assert load_entry(arxiv(NOWHERE), tmp_path).data.x.all()


def test_a_processed_graph_is_read_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arxiv.zip").write_bytes(arxiv_archive())
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(tmp_path))
    first = load_entry(arxiv(NOWHERE), tmp_path)
    hashed = []

    def hash_and_count(array: np.ndarray) -> str:
        hashed.append(array.nbytes)
        return hash_array(array)

    monkeypatch.setattr("tempergat.data.processed.hash_array", hash_and_count)
    assert load_entry(arxiv(NOWHERE), tmp_path).fingerprint == first.fingerprint
    assert not hashed
    # As long as before, with other numbers.
    array = tmp_path / "ogbn-arxiv" / "processed" / "00.npy"
    content = array.read_bytes()
    array.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    again = load_entry(arxiv(NOWHERE), tmp_path)
    assert hashed
    assert again.fingerprint == first.fingerprint


def test_indices_stay_narrow_only_in_a_large_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arxiv.zip").write_bytes(arxiv_archive())
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(tmp_path))
    small = load_entry(arxiv(NOWHERE), tmp_path)
    monkeypatch.setattr("tempergat.data.formats.graphs._MAX_WIDENED_EDGES", 5)
    large = load_entry(arxiv(NOWHERE), tmp_path)
    assert small.data.edge_index.dtype == torch.int64
    assert large.data.edge_index.dtype == torch.int32
    assert torch.equal(small.data.edge_index, large.data.edge_index.long())
    assert small.fingerprint == large.fingerprint


@pytest.mark.parametrize("damage", ["truncate", "empty", "remove", "garble", "version"])
def test_damaged_processed_graph_is_made_again(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "arxiv.zip").write_bytes(arxiv_archive())
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(mirror))
    first = load_entry(arxiv(NOWHERE), tmp_path)
    processed = tmp_path / "ogbn-arxiv" / "processed"
    if damage == "truncate":
        array = processed / "00.npy"
        array.write_bytes(array.read_bytes()[:-8])
    elif damage == "empty":
        (processed / "00.npy").write_bytes(b"")
    elif damage == "remove":
        (processed / "01.npy").unlink()
    elif damage == "garble":
        (processed / "graph.json").write_text("{")
    else:
        index = processed / "graph.json"
        index.write_text(index.read_text().replace('"version": 1', '"version": 0'))
    assert load_entry(arxiv(NOWHERE), tmp_path).fingerprint == first.fingerprint


def test_interrupted_processing_leaves_no_processed_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "arxiv.zip").write_bytes(arxiv_archive())
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(mirror))

    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tempergat.data.processed.hash_array", interrupt)
        with pytest.raises(KeyboardInterrupt):
            load_entry(arxiv(NOWHERE), tmp_path)
    names = sorted(path.name for path in (tmp_path / "ogbn-arxiv").iterdir())
    assert names == [".processed.lock", ".raw.lock", "raw"]
    assert load_entry(arxiv(NOWHERE), tmp_path).data.num_nodes == 4


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match=r"'coar'.*did you mean cora.*data list"):
        load("coar")
    with pytest.raises(UserError, match="did you mean amazon_photo"):
        load("amazon-foto")
    with pytest.raises(UserError, match="cora takes no option 'colour'"):
        load("cora", colour=1)


@pytest.mark.parametrize("name", ["Cora", "CORA", "ogbn_arxiv", "Amazon-Photo", "DBLP"])
def test_names_are_found_in_any_case_and_with_either_dash(name: str) -> None:
    from tempergat.data.catalog.entries import find_entry

    assert find_entry(name).name.replace("_", "-") == name.lower().replace("_", "-")
