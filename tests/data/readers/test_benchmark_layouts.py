"""Benchmark graphs that must be downloaded, from small files, beside PyG's readers."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import (
    HeterophilousGraphDataset,
    WebKB,
    WikiCS,
)
from torch_geometric.utils import sort_edge_index

from tempergat.base.errors import UserError
from tempergat.data import Dataset
from tempergat.data.catalog.entries import CATALOG, Entry
from tests.data.conftest import Server, made_up, served
from tests.support import raw_layouts
from tests.support.entries import load_entry

pytestmark = pytest.mark.usefixtures("no_mirror")

MASKS = ("train_mask", "val_mask", "test_mask")
NODES = 12
EDGES = [(0, 1), (2, 1), (1, 2), (3, 3), (4, 11), (5, 6), (7, 8), (9, 10)]
LABELS = np.arange(NODES) % 2
WORDS = (np.arange(NODES * 5).reshape(NODES, 5) % 3 == 0).astype(np.int64)


def split_masks(count: int) -> dict[str, np.ndarray]:
    parts = np.stack([np.roll(np.arange(NODES) % 3, at) for at in range(count)])
    return {mask: parts == part for part, mask in enumerate(MASKS)}


def from_server(
    server: Server, name: str, files: dict[str, bytes], classes: int = 2
) -> Entry:
    assert [file.name for file in CATALOG[name].files] == list(files)
    return served(server, name, NODES, classes, *files.values())


def assert_same(dataset: Dataset, expected: Data) -> None:
    data = dataset.data
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.y, expected.y)
    assert torch.equal(data.edge_index, sort_edge_index(expected.edge_index))


def put(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_minesweeper_is_read_as_pyg_reads_it(server: Server, tmp_path: Path) -> None:
    content = raw_layouts.heterophilous(
        EDGES, WORDS.astype(np.float32), LABELS, split_masks(10)
    )
    files = {"minesweeper.npz": content}
    entry = from_server(server, "minesweeper", files)
    put(tmp_path / "pyg/minesweeper/raw", files)
    expected = HeterophilousGraphDataset(str(tmp_path / "pyg"), "Minesweeper")[0]
    for number in (0, 9):
        dataset = load_entry(entry, tmp_path, split=number, sparse=False)
        assert_same(dataset, expected)
        for mask in MASKS:
            assert torch.equal(dataset.data[mask], expected[mask][:, number])
    assert dataset.metric == "roc_auc"


def test_webkb_is_read_as_pyg_reads_it(server: Server, tmp_path: Path) -> None:
    files = raw_layouts.webkb("texas", EDGES, WORDS, LABELS, split_masks(10))
    entry = from_server(server, "webkb-texas", files)
    put(tmp_path / "pyg/texas/raw", files)
    expected = WebKB(str(tmp_path / "pyg"), "Texas")[0]
    dataset = load_entry(entry, tmp_path, split=3, sparse=False)
    assert_same(dataset, expected)
    for mask in MASKS:
        assert torch.equal(dataset.data[mask], expected[mask][:, 3])


def test_wikics_is_read_as_pyg_reads_it(server: Server, tmp_path: Path) -> None:
    links: list[list[int]] = [[] for _ in range(NODES)]
    for source, target in EDGES:
        links[source].append(target)
    masks = split_masks(20)
    masks["test_mask"] = masks["test_mask"][0]
    for name in ("train_mask", "val_mask"):
        masks[name] &= ~masks["test_mask"]
    features = WORDS / np.float32(7)
    content = raw_layouts.wikics(links, features, LABELS, masks)
    entry = from_server(server, "wikics", {"data.json": content})
    put(tmp_path / "pyg/raw", {"data.json": content})
    expected = WikiCS(str(tmp_path / "pyg"), is_undirected=True)[0]
    dataset = load_entry(entry, tmp_path, split=19, sparse=False)
    assert_same(dataset, expected)
    assert torch.equal(dataset.data.train_mask, expected.train_mask[:, 19])
    assert torch.equal(dataset.data.val_mask, expected.val_mask[:, 19])
    assert torch.equal(dataset.data.test_mask, expected.test_mask)
    assert dataset.num_splits == 20


def test_blogcatalog_keeps_counts_and_numbers_classes_from_0(
    server: Server, tmp_path: Path
) -> None:
    edges = sorted({edge for a, b in EDGES for edge in ((a, b), (b, a))})
    counts = (WORDS * np.arange(1, 6)).astype(np.float64)
    archive = raw_layouts.attributed("blogcatalog", edges, counts, LABELS)
    entry = from_server(server, "blogcatalog", {"blogcatalog.attr.zip": archive})
    data = load_entry(entry, tmp_path, sparse=False).data
    assert torch.equal(data.x, torch.from_numpy(counts).float())
    assert data.y.tolist() == LABELS.tolist()
    assert data.edge_index.T.tolist() == [[a, b] for a, b in edges if a != b]


KINDS = ("company", "government", "politician", "tvshow")
TWITCH = ("DE", "ENGB", "ES", "FR", "PTBR", "RU")


def twitch_archive() -> bytes:
    """An archive with six graphs, whose edges differ by language."""
    members = {}
    for at, folder in enumerate(TWITCH):
        files = raw_layouts.musae(
            f"twitch/{folder}/musae_{folder}",
            [(0, at + 1), (at + 1, 9)],
            # The order of the nodes in the file is no matter, and a word counts once.
            {node: [at, at, 7] for node in reversed(range(NODES))},
            ("id", "days", "mature", "views", "partner", "new_id"),
            [(900 - n, 5, n % 3 == 0, 10, False, n) for n in range(NODES)],
            "" if folder == "DE" else "_features",
        )
        members |= files
    return raw_layouts.zipped(members)


def test_one_download_gives_the_twitch_graphs_of_all_languages(
    server: Server, tmp_path: Path
) -> None:
    files = {"twitch.zip": twitch_archive()}
    for at, language in enumerate(("de", "en", "es", "fr", "pt", "ru")):
        dataset = load_entry(from_server(server, f"twitch_{language}", files), tmp_path)
        ends = dataset.data.edge_index.T.tolist()
        assert ends == sorted([[0, at + 1], [at + 1, 0], [at + 1, 9], [9, at + 1]])
        assert dataset.data.y.tolist() == [int(n % 3 == 0) for n in range(NODES)]
        x = dataset.data.x.to_dense()
        assert x.shape == (NODES, 3170)
        assert x.sum(dim=1).eq(2).all()
        assert x[:, at].eq(1).all()
        assert dataset.split == "made: 60/20/20 with seed 0, by class"
    assert len(server.requests) == 1


def test_facebook_has_a_class_for_every_kind_of_page(
    server: Server, tmp_path: Path
) -> None:
    rows = [(n, 70 + n, f'"page, {n}"', KINDS[n % 4]) for n in range(NODES)]
    archive = raw_layouts.zipped(
        raw_layouts.musae(
            "facebook_large/musae_facebook",
            EDGES,
            {node: [node] for node in range(NODES)},
            ("id", "facebook_id", "page_name", "page_type"),
            rows,
        )
    )
    entry = from_server(server, "facebook", {"facebook_large.zip": archive}, 4)
    data = load_entry(entry, tmp_path).data
    assert data.y.tolist() == [node % 4 for node in range(NODES)]
    assert torch.equal(data.x.to_dense(), torch.eye(NODES))
    both = {edge for a, b in EDGES for edge in ((a, b), (b, a))}
    assert data.edge_index.T.tolist() == sorted(map(list, both))


def test_github_is_read_from_its_archive(server: Server, tmp_path: Path) -> None:
    archive = raw_layouts.zipped(
        raw_layouts.musae(
            "git_web_ml/musae_git",
            EDGES,
            {node: [node] for node in range(NODES)},
            ("id", "name", "ml_target"),
            [(n, f"user{n}", n % 2) for n in range(NODES)],
        )
    )
    entry = from_server(server, "github", {"git_web_ml.zip": archive})
    assert load_entry(entry, tmp_path).data.y.tolist() == LABELS.tolist()


def test_class_of_no_split_is_left_out(server: Server, tmp_path: Path) -> None:
    masks = split_masks(10)
    labels = np.where(LABELS == 0, 0, 2)
    labels[5] = 1
    for mask in masks.values():
        mask[:, 5] = False
    content = raw_layouts.heterophilous(EDGES, WORDS, labels, masks)
    entry = from_server(server, "texas_4_classes", {"texas_4_classes.npz": content})
    data = load_entry(entry, tmp_path).data
    assert data.y.tolist() == [-1 if n == 5 else n % 2 for n in range(NODES)]


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("wikics", {"data.json": b"{}"}, "is not JSON with features"),
        ("wikics", {"data.json": b"[" * 100_000}, "is not JSON with features"),
        (
            "cornell",
            {"cornell.npz": raw_layouts.npz(edges=np.array([None]))},
            "has no array node_labels, only edges; replace it by a good copy",
        ),
        (
            "facebook",
            {
                "facebook_large.zip": raw_layouts.zipped(
                    raw_layouts.musae(
                        "facebook_large/musae_facebook",
                        [(0, 1)],
                        {0: [1], 1: [1]},
                        ("id", "page_type"),
                        [(0, "company"), (1, "choir")],
                    )
                )
            },
            "has the classes choir, company, not company, government, politician",
        ),
    ],
)
def test_damaged_file_is_one_line(
    name: str, files: dict[str, bytes], message: str, server: Server, tmp_path: Path
) -> None:
    entry = from_server(server, name, files)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match=message) as caught:
            load_entry(entry, tmp_path)
    assert "\n" not in str(caught.value)


def test_copies_are_found_in_the_folder_of_the_dataset_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = raw_layouts.musae(
        "x",
        EDGES,
        {node: [node] for node in range(NODES)},
        ("id", "page_type"),
        [(n, KINDS[n % 4]) for n in range(NODES)],
    )
    renamed = dict(
        zip(("edges.csv", "features.json", "target.csv"), files.values(), strict=True)
    )
    entry = made_up("facebook", NODES, 4)
    closed = tuple(replace(f, url="http://127.0.0.1:9/none") for f in entry.files)
    entry = replace(entry, files=closed)
    mirror = tmp_path / "mirror"
    put(mirror, renamed)
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(mirror))
    with pytest.raises(UserError, match="could not be found or downloaded"):
        load_entry(entry, tmp_path)
    put(mirror / "facebook", renamed)
    assert load_entry(entry, tmp_path).data.num_nodes == NODES


@pytest.mark.parametrize("known", [lambda entry: entry.name, lambda e: e.name.upper()])
def test_every_dataset_is_found_by_its_name(known: Callable[[Entry], str]) -> None:
    from tempergat.data import find_entry

    for entry in CATALOG.values():
        assert find_entry(known(entry)) is entry
        assert find_entry(known(entry).replace("_", "-")) is entry
        assert (entry.num_splits == 0) == entry.split.startswith("made")
