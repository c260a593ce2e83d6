"""A folder of arrays that are mapped into memory."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tempergat.base import UserError
from tempergat.data import ReadOptions, check_graph, csbm, load
from tempergat.data.dataset import MASKS
from tempergat.data.user.layouts import array_folder
from tempergat.training import train


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = csbm(n=80, a=10.0, b=4.0, d=8, mu=2.0).data
    folder = tmp_path / "large"
    folder.mkdir()
    np.save(folder / "edge_index.npy", data.edge_index.numpy().astype(np.int32))
    for name in ("x", "y", *MASKS):
        np.save(folder / f"{name}.npy", data[name].numpy())
    return folder


def test_it_is_a_graph_like_any_other(folder: Path) -> None:
    graph = load(folder)
    expected = csbm(n=80, a=10.0, b=4.0, d=8, mu=2.0).data
    assert torch.equal(graph.data.edge_index.long(), expected.edge_index)
    assert torch.equal(graph.data.x, expected.x)
    assert torch.equal(graph.data.train_mask, expected.train_mask)
    sampled = {"training": "sampled", "fanout": [3, 3], "batch_size": 20, "epochs": 2}
    model = train(folder, "temp_gated", settings=sampled, device="cpu", progress=False)
    assert model.run.status == "done"
    with pytest.warns(UserWarning, match="in the order in which they come"):
        predicted = model.predict(folder)
    assert predicted.shape == (80,)


def test_it_is_read_once_and_again_only_after_a_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(folder)
    path = "tempergat.data.user.layouts.array_folder.check_arrays"

    def refuse(*_: object) -> None:
        raise AssertionError("was read again")

    monkeypatch.setattr(path, refuse)
    assert load(folder).fingerprint == first.fingerprint
    np.save(folder / "y.npy", 1 - np.load(folder / "y.npy"))
    with pytest.raises(AssertionError, match="read again"):
        load(folder)
    monkeypatch.undo()
    assert load(folder).fingerprint != first.fingerprint


def test_without_masks_a_split_is_made(folder: Path) -> None:
    for name in MASKS[1:]:
        (folder / f"{name}.npy").unlink()
    with pytest.raises(UserError, match=r"has masks, but no val_mask.npy; add it"):
        load(folder)
    (folder / f"{MASKS[0]}.npy").unlink()
    graph = load(folder)
    assert graph.is_split_made
    assert int(graph.data.val_mask.sum()) == 16


@pytest.mark.parametrize("name", ["edge_index", "x", "y"])
def test_a_file_that_was_cut_short_or_is_missing_is_named_in_one_line(
    folder: Path, name: str
) -> None:
    path = folder / f"{name}.npy"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match=f"{name}.npy was cut short"):
        load(folder)
    path.unlink()
    with pytest.raises(UserError, match=f"has no {name}.npy; add it"):
        load(folder)


def test_an_array_beside_tables_does_not_make_them_arrays(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("label,size\n" + "0,1\n1,2\n" * 5)
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,0\n")
    np.save(tmp_path / "x.npy", np.zeros(3))
    assert load(tmp_path).data.num_nodes == 10


def test_impossible_values_are_refused(folder: Path) -> None:
    edges = np.load(folder / "edge_index.npy")
    edges[0, 3] = 80
    np.save(folder / "edge_index.npy", edges)
    with pytest.raises(UserError, match=r"names nodes .* to 80, but there are 80") as e:
        load(folder)
    # The files are the user's: nothing to download.
    assert "the 80 rows of x.npy" in str(e.value)
    assert "download" not in str(e.value)


def test_a_check_says_what_the_folder_holds_and_verifies_it_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(folder)
    verified = []
    original = array_folder.check_arrays
    monkeypatch.setattr(
        array_folder, "check_arrays", lambda *a: verified.append(original(*a))
    )
    found = {finding.subject: finding.value for finding in check_graph(folder)}
    assert verified
    assert found["nodes"] == 80
    assert found["features"] == 8
    assert found["classes"] == 2
    assert found["val mask"] == int(np.load(folder / "val_mask.npy").sum())
    (folder / "y.npy").unlink()
    assert check_graph(folder)[-1].value == "none"


def test_options_about_tables_are_refused(folder: Path) -> None:
    with pytest.raises(UserError, match="--label does not apply"):
        load(folder, options=ReadOptions(label="y"))
