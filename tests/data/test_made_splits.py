"""Splits that are made for user graphs divide every class alike."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tempergat.base import UserError
from tempergat.data import as_dataset, load, load_splits
from tempergat.data.dataset import MASKS
from tempergat.data.splits import make_split
from tests.support.tiny_graph import write_graph_of_splits


def graph(labels: list[int]) -> Data:
    n = len(labels)
    ring = torch.arange(n)
    edges = torch.stack([ring, ring.roll(1)])
    return Data(
        x=torch.randn(n, 3),
        y=torch.tensor(labels),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_class_is_divided_by_the_percentages() -> None:
    dataset = as_dataset(graph([0] * 80 + [1] * 15 + [2] * 5), split="60/20/20")
    counts = {
        mask: Counter(dataset.store.y[dataset.store[mask]].tolist()) for mask in MASKS
    }
    assert counts["train_mask"] == {0: 48, 1: 9, 2: 3}
    assert counts["val_mask"] == {0: 16, 1: 3, 2: 1}
    assert counts["test_mask"] == {0: 16, 1: 3, 2: 1}
    assert "by class" in dataset.split


@pytest.mark.parametrize(
    ("count", "parts"),
    [(1, (1, 0, 0)), (2, (1, 0, 1)), (3, (1, 1, 1)), (4, (2, 1, 1)), (7, (4, 1, 2))],
)
def test_small_classes_have_training_nodes_first_and_then_test_nodes(
    count: int, parts: tuple[int, int, int]
) -> None:
    labels = np.array([0] * 50 + [1] * count + [-1] * 3)
    for seed in range(5):
        masks = make_split(labels, "60/20/20", seed, stratified=True)
        found = tuple(int((masks[mask] & (labels == 1)).sum()) for mask in MASKS)
        assert found[0] >= 1
        assert sum(found) == count
        assert all(abs(a - b) <= 1 for a, b in zip(found, parts, strict=True))
        assert count < 3 or min(found) >= 1


def test_unused_shares_stay_unused() -> None:
    labels = np.repeat([0, 1], 100)
    masks = make_split(labels, "10/20/30", 0, stratified=True)
    sizes = [int(masks[mask].sum()) for mask in MASKS]
    assert sizes == [20, 40, 60]
    assert not (masks["train_mask"] & masks["test_mask"]).any()


def test_datasets_by_name_keep_the_split_of_0_1_0() -> None:
    made = load("csbm", split="60/20/20", n=100)
    plain = make_split(made.store.y.numpy(), "60/20/20", 0)
    for mask in MASKS:
        assert np.array_equal(made.store[mask].numpy(), plain[mask])
    assert "by class" not in made.split


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_several_splits_are_made_with_their_numbers_as_seeds() -> None:
    data = graph([0, 1, 2] * 20)
    found = load_splits(data, made_splits=4)
    assert list(found) == [0, 1, 2, 3]
    for number, dataset in found.items():
        alone = as_dataset(data, split="60/20/20", split_seed=number)
        assert dataset.fingerprint == alone.fingerprint
        assert (dataset.split_number, dataset.num_splits) == (number, 4)
    assert len({dataset.fingerprint for dataset in found.values()}) == 4
    assert len({dataset.graph_fingerprint for dataset in found.values()}) == 1
    assert list(load_splits(data, made_splits=4, max_splits=2)) == [0, 1]
    shares = load_splits(data, split="80/10/10", made_splits=2)
    assert int(shares[1].store.train_mask.sum()) == 48


def test_a_graph_with_splits_is_not_given_others_unasked(tmp_path: Path) -> None:
    path = write_graph_of_splits(tmp_path / "graph.npz", 3)
    with pytest.raises(UserError, match=r"comes with 3 splits; leave --splits out"):
        load_splits(path, made_splits=5)
    assert len(load_splits(path, split="60/20/20", made_splits=5)) == 5


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"made_splits": 1}, "splits is 1; give 2 to 1000"),
        ({"made_splits": 0}, "splits is 0; give 2 to 1000"),
        ({"made_splits": 3, "split_seed": 1}, "split_seed is 1, a single seed"),
        ({"made_splits": 3, "split": 1}, "split is 1, which is one split"),
    ],
)
def test_contradictions_are_refused(arguments: dict[str, int], words: str) -> None:
    with pytest.raises(UserError, match=words):
        load_splits(graph([0, 1] * 20), **arguments)  # type: ignore[arg-type]


def test_unlabelled_nodes_are_in_no_made_split() -> None:
    labels = np.where(np.arange(1000) % 2 == 0, 3, -1)
    masks = make_split(labels, "50/30/20", seed=0)
    assert [int(masks[mask].sum()) for mask in MASKS] == [250, 150, 100]
    assert not np.any([masks[mask][1::2] for mask in MASKS])


@pytest.mark.parametrize("split", ["60/20", "a/b/c", "0/50/50", "80/20/20", "-1/1/1"])
def test_senseless_percentages_are_refused(split: str) -> None:
    with pytest.raises(UserError, match="split"):
        load("csbm", n=100, split=split)
