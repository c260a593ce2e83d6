"""Raw files without a known checksum, and the processed cache, are not trusted."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tempergat.base.errors import UserError
from tempergat.data.catalog.entries import RemoteFile
from tempergat.data.dataset import hash_array
from tests.data.conftest import made_up
from tests.support.entries import load_entry
from tests.support.full_disk import full_above

NODES = 6
RING = [[(node + 1) % NODES, (node - 1) % NODES] for node in range(NODES)]
ENTRY = made_up(
    "amazon_photo",
    NODES,
    2,
    files=(RemoteFile("g.npz", "https://example.invalid/g.npz"),),
    keep_processed=True,
)


def arrays() -> dict[str, Any]:
    """A ring in the layout of the file."""
    return {
        "adj_data": np.ones(2 * NODES, np.float32),
        "adj_indices": np.sort(RING, axis=1).reshape(-1),
        "adj_indptr": np.arange(0, 2 * NODES + 1, 2),
        "adj_shape": np.array([NODES, NODES]),
        "attr_data": np.ones(NODES, np.float32),
        "attr_indices": np.arange(NODES) % 3,
        "attr_indptr": np.arange(NODES + 1),
        "attr_shape": np.array([NODES, 3]),
        "labels": np.arange(NODES) % 2,
    }


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TEMPERGAT_MIRROR", raising=False)
    raw = tmp_path / ENTRY.raw_folder
    raw.mkdir(parents=True)
    np.savez(raw / "g.npz", **arrays())
    return tmp_path


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("labels", np.array([0, 1, 0, 99, 0, 1]), "node 3 the label 99, .* 2 classes"),
        ("labels", np.array([0, 1, 0, -7, 0, 1]), "node 3 the label -7"),
        ("labels", np.array(["a"] * NODES), "labels has type <U1"),
        ("labels", np.zeros((NODES, 2), int), r"shape \(6, 2\)"),
        ("labels", np.array([np.nan] * NODES), "label nan.*not a whole number"),
        ("labels", np.array([0.5] * NODES), "label 0.5.*not a whole number"),
        ("labels", np.array([None] * NODES), "pickled Python objects"),
        ("adj_shape", np.array([NODES]), r"adj_shape is \[6\]"),
        ("adj_shape", np.array(["a", "b"]), "adj_shape has type <U1"),
        ("adj_data", np.array(["1"] * 2 * NODES), "adj_data has type <U1"),
        ("adj_indices", np.full(2 * NODES, 99), "are not a sparse matrix"),
        ("adj_indptr", np.ones((2, 2)), "adj_indptr has type float64"),
        ("attr_data", np.array(["1"] * NODES), "attr_data has type <U1"),
    ],
)
def test_wrong_raw_file_is_one_line(
    name: str, value: np.ndarray, named: str, root: Path
) -> None:
    path = root / ENTRY.raw_folder / "g.npz"
    np.savez(path, **arrays() | {name: value})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match=named) as caught:
            load_entry(ENTRY, root)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "good copy" in str(caught.value)


def cache(root: Path) -> Path:
    return root / ENTRY.name / "processed"


def test_a_disk_that_fills_up_while_a_graph_is_prepared_leaves_no_part_of_it(
    root: Path,
) -> None:
    before = load_entry(ENTRY, root).data
    shutil.rmtree(cache(root))
    with (
        full_above(150),
        pytest.raises(
            UserError, match=r"the disk under .* is full; free some"
        ) as found,
    ):
        load_entry(ENTRY, root)
    assert "\n" not in str(found.value)
    assert not cache(root).exists()
    assert not list(cache(root).parent.glob(".processed/*"))
    # With room again, the same graph is prepared.
    assert load_entry(ENTRY, root).data.edge_index.equal(before.edge_index)
    assert cache(root).is_dir()


def change_index(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def forge(folder: Path) -> None:
        index = json.loads((folder / "graph.json").read_text())
        change(index)
        (folder / "graph.json").write_text(json.dumps(index))

    return forge


def change_array(name: str, value: Any) -> Callable[[Path], None]:
    """Replaces an array and leaves its recorded checksum as it is."""

    def forge(folder: Path) -> None:
        index = json.loads((folder / "graph.json").read_text())
        np.save(folder / index["arrays"][name]["file"], value)

    return forge


def flip_a_bit(folder: Path) -> None:
    path = folder / "00.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


FORGED = {
    "zero hash": change_index(
        lambda index: index["arrays"][".y"].update(sha256="0" * 64)
    ),
    "another size": change_index(lambda index: index["num_nodes"].update({"": 50})),
    "no labels": change_index(lambda index: index["arrays"].pop(".y")),
    "no features": change_index(lambda index: index["arrays"].pop(".x.values")),
    "words for sizes": change_index(
        lambda index: index["num_nodes"].update({"": "many"})
    ),
    "list for arrays": change_index(lambda index: index.update(arrays=[])),
    "name without a dot": change_index(
        lambda index: index["arrays"].update(y=index["arrays"].pop(".y"))
    ),
    "file elsewhere": change_index(
        lambda index: index["arrays"][".y"].update(file="../raw/g.npz")
    ),
    "no file": change_index(lambda index: index["arrays"][".y"].pop("file")),
    "deep": lambda folder: (folder / "graph.json").write_text("[" * 99_999),
    "short labels": change_array(".y", np.zeros(2, int)),
    "labels out of range": change_array(".y", np.full(NODES, 99)),
    "objects": change_array(".y", np.array([None] * NODES)),
    "edges out of range": change_array(".edge_index", np.full((2, 4), 99)),
    "one bit": flip_a_bit,
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_damaged_cache_is_built_again(
    forge: Callable[[Path], object], root: Path
) -> None:
    expected = load_entry(ENTRY, root).fingerprint
    assert (cache(root) / "graph.json").exists()
    forge(cache(root))
    assert load_entry(ENTRY, root).fingerprint == expected
    # Built again, and taken from then on.
    shutil.rmtree(root / ENTRY.raw_folder)
    assert load_entry(ENTRY, root).fingerprint == expected


def test_damaged_cache_without_raw_files_is_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_entry(ENTRY, root)
    shutil.rmtree(root / ENTRY.raw_folder)
    flip_a_bit(cache(root))
    with pytest.raises(UserError, match="processed is damaged, and the raw files"):
        load_entry(ENTRY, root)


def test_fingerprint_of_a_cache_is_that_of_its_arrays(root: Path) -> None:
    """Also where someone wrote other arrays with checksums that fit them."""
    before = load_entry(ENTRY, root).fingerprint
    index = json.loads((cache(root) / "graph.json").read_text())
    other = np.ones(NODES, np.int64)
    np.save(cache(root) / index["arrays"][".y"]["file"], other)
    index["arrays"][".y"]["sha256"] = hash_array(other)
    (cache(root) / "graph.json").write_text(json.dumps(index))
    assert load_entry(ENTRY, root).fingerprint != before
