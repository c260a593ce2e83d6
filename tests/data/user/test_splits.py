"""The split of a user graph: given once, several times, or wrongly."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from tempergat.base.errors import UserError
from tempergat.data import load
from tempergat.data.user.report import check_graph

MASKS = ("train_mask", "val_mask", "test_mask")
TRAIN = [[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]]
VAL = [[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]]
TEST = [[0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]]


def write_graph(path: Path, **masks: torch.Tensor) -> Path:
    """Six nodes, with three splits unless other masks are given."""
    columns = (torch.tensor(part).bool() for part in (TRAIN, VAL, TEST))
    data = Data(
        x=torch.ones(6, 2),
        y=torch.tensor([0, 1, 0, 1, 0, 1]),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]),
        **{**dict(zip(MASKS, columns, strict=True)), **masks},
    )
    torch.save(data, path)
    return path


def test_one_of_several_splits_is_chosen_by_number_or_seed(tmp_path: Path) -> None:
    path = write_graph(tmp_path / "g.pt")
    first, second = (load(path, split=number) for number in (0, 1))
    assert first.data.train_mask.int().tolist() == [row[0] for row in TRAIN]
    assert second.data.train_mask.int().tolist() == [row[1] for row in TRAIN]
    assert second.data.val_mask.int().tolist() == [row[1] for row in VAL]
    assert second.split == "given with the graph, number 1"
    assert load(path).fingerprint == first.fingerprint
    assert load(path, split_seed=4).fingerprint == second.fingerprint
    with pytest.raises(UserError, match="no split 3; choose 0 to 2"):
        load(path, split=3)


def test_dataset_says_how_many_splits_it_comes_with(tmp_path: Path) -> None:
    path = write_graph(tmp_path / "g.pt")
    assert load(path, split=2).num_splits == 3
    assert load(path, split="50/25/25").num_splits == 1
    single = {name: torch.arange(6) == at for at, name in enumerate(MASKS)}
    assert load(write_graph(tmp_path / "one.pt", **single)).num_splits == 1


def test_report_counts_each_of_several_splits_by_itself(tmp_path: Path) -> None:
    path = write_graph(tmp_path / "g.pt")
    found = {finding.subject: finding.value for finding in check_graph(path)}
    assert found["splits"] == 3
    assert found["train nodes per split"] == {"fewest": 3, "most": 3}
    assert found["val nodes per split"] == {"fewest": 1, "most": 2}
    assert found["test nodes per split"] == {"fewest": 1, "most": 2}
    assert "split" not in found


def test_report_counts_a_single_split(tmp_path: Path) -> None:
    masks = {name: torch.arange(6) == at for at, name in enumerate(MASKS)}
    path = write_graph(tmp_path / "g.pt", **masks)
    found = {finding.subject: finding.value for finding in check_graph(path)}
    assert found["split"] == {"train": 1, "val": 1, "test": 1}


def test_report_names_the_split_that_contradicts_itself(tmp_path: Path) -> None:
    val = torch.tensor(VAL).bool()
    val[2, 1] = True
    path = write_graph(tmp_path / "g.pt", val_mask=val)
    with pytest.raises(UserError, match="split 1: node 2 is in train_mask and in val"):
        check_graph(path)


@pytest.mark.parametrize(
    ("masks", "named"),
    [
        (
            {"val_mask": torch.zeros(6, dtype=torch.bool)},
            r"train_mask is \(6, 3\), but val_mask is \(6,\); give all masks the same",
        ),
        (
            {name: torch.zeros(6, 0, dtype=torch.bool) for name in MASKS},
            r"train_mask is \(6, 0\), which holds no split; give it a column",
        ),
        (
            {"test_mask": torch.zeros(5, 3, dtype=torch.bool)},
            r"test_mask is \(5, 3\); give one value for each of 6 nodes, or a column",
        ),
        ({"train_mask": torch.tensor(True)}, r"train_mask is \(\); give one value"),
        ({"train_mask": [True] * 6}, "train_mask is list; give one value"),
        ({"train_mask": None}, "has val_mask but no train_mask; add one"),
        (
            {"train_mask": torch.zeros(6, 3, dtype=torch.bool)},
            "has no node in train_mask",
        ),
    ],
    ids=["mixed", "no columns", "short", "scalar", "list", "no training", "empty"],
)
def test_wrong_masks_are_errors_in_loading_and_in_the_report(
    masks: dict[str, torch.Tensor], named: str, tmp_path: Path
) -> None:
    path = write_graph(tmp_path / "g.pt", **masks)
    for ask in (load, check_graph, lambda path: load(path, split=0)):
        with pytest.raises(UserError, match=named) as caught:
            ask(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_made_split_replaces_masks_however_wrong(tmp_path: Path) -> None:
    empty = {name: torch.zeros(6, 0, dtype=torch.bool) for name in MASKS}
    path = write_graph(tmp_path / "g.pt", **empty)
    assert load(path, split="50/25/25").split == "made: 50/25/25 with seed 0, by class"
    with pytest.raises(UserError, match="split is ''; write percentages"):
        load(path, split="")
