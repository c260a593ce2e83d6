"""A folder of arrays that are mapped into memory."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tempergat.base import UserError
from tempergat.data import ReadOptions, check_graph, csbm, load
from tempergat.data.dataset import MASKS
from tempergat.data.layouts import array_folder
from tempergat.training import train

COUNT = 80


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = csbm(n=COUNT, a=10.0, b=4.0, d=8, mu=2.0).data
    folder = tmp_path / "large"
    folder.mkdir()
    np.save(folder / "edge_index.npy", data.edge_index.numpy().astype(np.int32))
    for name in ("x", "y", *MASKS):
        np.save(folder / f"{name}.npy", data[name].numpy())
    return folder


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of any size are large, so that what was checked is noted."""
    monkeypatch.setattr(array_folder, "_LARGE", 0)


def array(folder: Path, name: str) -> np.ndarray:
    found: np.ndarray = np.load(folder / f"{name}.npy")
    return found


def save(folder: Path, **arrays: Any) -> None:
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)


def without_masks(folder: Path) -> None:
    for name in MASKS:
        (folder / f"{name}.npy").unlink()


def refusal(folder: Path) -> str:
    """What `load` says; a check of the folder must refuse it with the same words."""
    with pytest.raises(UserError) as found:
        load(folder)
    with pytest.raises(UserError) as checked:
        check_graph(folder)
    assert str(checked.value) == str(found.value)
    assert "\n" not in str(found.value)
    return str(found.value)


def test_it_is_a_graph_like_any_other(folder: Path) -> None:
    graph = load(folder)
    expected = csbm(n=COUNT, a=10.0, b=4.0, d=8, mu=2.0).data
    assert torch.equal(graph.data.edge_index.long(), expected.edge_index)
    assert torch.equal(graph.data.x, expected.x)
    assert torch.equal(graph.data.train_mask, expected.train_mask)
    sampled = {"training": "sampled", "fanout": [3, 3], "batch_size": 20, "epochs": 2}
    model = train(folder, "temp_gated", settings=sampled, device="cpu", progress=False)
    assert model.run.status == "done"
    with pytest.warns(UserWarning, match="in the order in which they come"):
        predicted = model.predict(folder)
    assert predicted.shape == (COUNT,)


def test_its_fingerprint_is_that_of_earlier_versions(folder: Path) -> None:
    assert load(folder).fingerprint.startswith("aa05ce1fa7b33d24")


@pytest.mark.usefixtures("noted")
def test_it_is_read_once_and_again_only_after_a_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(folder)

    def refuse(*_: object) -> None:
        raise AssertionError("was read again")

    monkeypatch.setattr(array_folder, "check_edges", refuse)
    assert load(folder).fingerprint == first.fingerprint
    # A copy that keeps size and time, like those of `cp -p` and `rsync -t`.
    before = (folder / "x.npy").stat()
    save(folder, x=-array(folder, "x"))
    os.utime(folder / "x.npy", ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(AssertionError, match="read again"):
        load(folder)
    monkeypatch.undo()
    assert load(folder).fingerprint != first.fingerprint


@pytest.mark.usefixtures("noted")
def test_labels_and_masks_are_checked_whatever_was_noted(folder: Path) -> None:
    load(folder)
    labels = array(folder, "y")
    labels[0] = -7
    save(folder, y=labels)
    assert "y[0] is -7" in refusal(folder)
    save(folder, y=np.abs(labels), test_mask=array(folder, "train_mask"))
    assert "is in train_mask and in test_mask" in refusal(folder)


def test_a_forged_note_leads_to_no_wrong_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = array(folder, "edge_index")
    edges[0, 3] = COUNT
    save(folder, edge_index=edges)
    notes = {
        "version": array_folder._VERSION,
        "files": array_folder._times(folder),
        "hashes": {".x": "0" * 64, ".edge_index": "0" * 64},
    }
    (folder / "tempergat.json").write_text(json.dumps(notes))
    assert "edge_index[0, 3] is 80, but there are 80 nodes" in refusal(folder)
    # Not read again, a large folder fails when its edges are used.
    monkeypatch.setattr(array_folder, "_LARGE", 0)
    with pytest.raises(UserError, match="edge_index refers to source node 80"):
        train(folder, "gat", device="cpu", progress=False)


@pytest.mark.usefixtures("noted")
def test_a_note_that_is_a_link_is_replaced_and_not_followed(
    folder: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    note = folder / "tempergat.json"
    note.symlink_to(victim)
    check_graph(folder)
    assert victim.read_text() == "precious"
    assert note.is_file()
    assert not note.is_symlink()


@pytest.mark.usefixtures("noted")
def test_a_folder_that_cannot_be_written_is_checked_every_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UserError("read-only")

    monkeypatch.setattr(array_folder, "write_into", refuse)
    checked = []
    original = array_folder.check_edges
    monkeypatch.setattr(
        array_folder, "check_edges", lambda *a: checked.append(original(*a))
    )
    assert load(folder).fingerprint == load(folder).fingerprint
    assert len(checked) == 2


def test_without_masks_a_split_is_made(folder: Path) -> None:
    for name in MASKS[1:]:
        (folder / f"{name}.npy").unlink()
    assert refusal(folder).endswith("has masks, but no val_mask.npy; add it")
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
    assert f"{name}.npy was cut short" in refusal(folder)
    path.unlink()
    with pytest.raises(UserError, match=f"has no {name}.npy; add it"):
        load(folder)


def test_an_array_beside_tables_does_not_make_them_arrays(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("label,size\n" + "0,1\n1,2\n" * 5)
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,0\n")
    np.save(tmp_path / "x.npy", np.zeros(3))
    assert load(tmp_path).data.num_nodes == 10


def test_impossible_values_are_refused(folder: Path) -> None:
    edges = array(folder, "edge_index")
    edges[0, 3] = COUNT
    save(folder, edge_index=edges)
    message = refusal(folder)
    assert f"[0, 3] is {COUNT}, but there are {COUNT} nodes" in message
    # The files are the user's: nothing to download.
    assert "the 80 rows of x.npy" in message
    assert "download" not in message


def test_a_split_that_contradicts_itself_is_refused(folder: Path) -> None:
    train_mask = array(folder, "train_mask")
    save(folder, val_mask=train_mask)
    assert "is in train_mask and in val_mask" in refusal(folder)
    save(folder, val_mask=2 * array(folder, "test_mask").astype(np.int8))
    assert "val_mask holds 2" in refusal(folder)
    save(folder, val_mask=np.zeros(COUNT - 1, dtype=bool))
    assert "val_mask.npy has shape (79,), but x.npy has 80 rows" in refusal(folder)
    save(folder, train_mask=np.zeros(COUNT), val_mask=train_mask)
    assert "has no node in train_mask" in refusal(folder)
    labels = array(folder, "y")
    labels[np.flatnonzero(train_mask)[0]] = -1
    save(folder, y=labels, train_mask=train_mask, val_mask=np.zeros(COUNT))
    assert "is in train_mask but has no label" in refusal(folder)


def test_masks_with_columns_are_several_splits(folder: Path) -> None:
    masks = {name: array(folder, name) for name in MASKS}
    both = {name: np.stack([mask, mask[::-1]], axis=1) for name, mask in masks.items()}
    save(folder, **both)
    second = load(folder, split=1)
    assert second.num_splits == 2
    assert second.data.test_mask.tolist() == masks["test_mask"][::-1].tolist()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("x", ">f4"),
        ("x", "longdouble"),
        ("edge_index", ">i8"),
        ("edge_index", "u2"),
        ("y", "u1"),
        ("y", "u8"),
        ("y", ">f8"),
        ("train_mask", "u2"),
    ],
)
def test_numbers_of_every_type_are_read(folder: Path, name: str, dtype: str) -> None:
    expected = load(folder).data.clone()
    save(folder, **{name: array(folder, name).astype(dtype)})
    found = load(folder).data
    for attribute in ("x", "y", "edge_index", *MASKS):
        assert torch.equal(found[attribute].double(), expected[attribute].double())


def test_whole_numbers_are_features(folder: Path) -> None:
    x = np.arange(COUNT * 2).reshape(COUNT, 2)
    save(folder, x=x)
    assert torch.equal(load(folder).data.x, torch.from_numpy(x).float())


def test_years_are_classes_in_their_order(folder: Path) -> None:
    labels = array(folder, "y")
    save(folder, y=labels + 2000)
    graph = load(folder)
    assert graph.predicted.width == 2
    assert graph.predicted.names == ("2000", "2001")
    assert graph.data.y.tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("x", np.array(3.0), "x.npy is float64 of shape ()"),
        ("x", np.zeros(COUNT), "save numbers of shape (nodes, features)"),
        ("x", np.zeros((COUNT, 2), dtype="c8"), "x.npy is complex64"),
        ("x", np.zeros((COUNT, 2), dtype="U3"), "x.npy is <U3"),
        ("x", np.zeros((COUNT, 2), dtype=[("a", "f4")]), "save numbers of shape"),
        ("x", np.array([[None]] * COUNT), "is no .npy file of numbers"),
        ("x", np.full((COUNT, 2), 1e300), "x holds 1e+300 at [0, 0]; correct"),
        ("x", np.full((COUNT, 2), np.nan), "x holds nan at [0, 0]; correct"),
        ("x", np.zeros((0, 2)), "but there are 0 nodes"),
        ("edge_index", np.zeros((4, 2), dtype=int), "of shape (2, edges)"),
        ("edge_index", np.zeros((2, 4)), "save whole numbers of shape (2, edges)"),
        ("y", np.array(1), "y.npy has shape ()"),
        ("y", np.zeros(COUNT, dtype="U3"), "y.npy has type <U3; save it as numbers"),
        ("y", np.full(COUNT, 0.5), "y holds fractions"),
        ("y", np.zeros((COUNT, 3), dtype=int), "y has shape (80, 3)"),
        ("y", np.full(COUNT, 2**64 - 1, dtype="u8"), "too large for a 64-bit integer"),
        ("train_mask", np.full(COUNT, np.nan), "train_mask holds nan"),
    ],
)
def test_arrays_of_something_else_are_refused_in_one_line(
    folder: Path, name: str, values: np.ndarray, words: str
) -> None:
    save(folder, **{name: values})
    assert words in refusal(folder)


def test_a_damaged_header_is_refused_in_one_line(folder: Path) -> None:
    path = folder / "x.npy"
    content = path.read_bytes()
    # numpy's parser raises tokenize.TokenError for a bracket without its partner.
    path.write_bytes(content.replace(b"(80, 8)", b"(80, 8 "))
    assert "is no .npy file of numbers" in refusal(folder)


@pytest.mark.parametrize("name", ["x", "y", "train_mask"])
def test_a_pipe_is_refused_before_it_is_opened(folder: Path, name: str) -> None:
    (folder / f"{name}.npy").unlink()
    os.mkfifo(folder / f"{name}.npy")
    assert f"{name}.npy is a pipe, but an array is a file" in refusal(folder)


def test_what_is_not_read_is_said(folder: Path) -> None:
    save(folder, edge_attr=np.zeros(3), train_idx=np.arange(9))
    with pytest.warns(
        UserWarning, match=r"large: edge_attr.npy, train_idx.npy are not"
    ):
        load(folder)
    assert (
        "edge_attr.npy" in {f.subject: f.value for f in check_graph(folder)}["not read"]
    )
    # Without masks, the numbers of training nodes may be meant as the split.
    without_masks(folder)
    assert "has train_idx.npy, which is called like a split" in refusal(folder)
    with pytest.warns(UserWarning, match="not read"):
        load(folder, labelled=False)


@pytest.mark.usefixtures("noted")
def test_a_check_says_what_the_folder_holds_and_verifies_it_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(folder)
    verified = []
    original = array_folder.check_edges
    monkeypatch.setattr(
        array_folder, "check_edges", lambda *a: verified.append(original(*a))
    )
    values = {finding.subject: finding.value for finding in check_graph(folder)}
    assert verified
    assert values["nodes"] == COUNT
    assert values["features"] == 8
    assert values["classes"] == 2
    assert values["split"]["val"] == int(array(folder, "val_mask").sum())
    (folder / "y.npy").unlink()
    values = {finding.subject: finding.value for finding in check_graph(folder)}
    assert values["labels"] == "none"


def test_options_about_tables_are_refused(folder: Path) -> None:
    with pytest.raises(UserError, match="--label does not apply"):
        load(folder, options=ReadOptions(label="y"))
