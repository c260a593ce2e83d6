"""A store with comparisons on one split and on several gives each of them back."""

from pathlib import Path

import pytest

import tempergat
from tempergat.comparison.results.comparisons import Comparisons
from tempergat.comparison.results.from_store import stored_comparisons
from tempergat.data import csbm

DATA = csbm(n=60, d=8).data
for mask in ("train_mask", "val_mask", "test_mask"):
    del DATA[mask]
# Methods, runs and splits of each comparison that a folder gets, in turn.
PLANS = [
    [("mlp gcn", 3, None), ("mlp gcn", 6, 3)],
    [("mlp gcn", 6, 3), ("mlp gcn", 3, None)],
    [("mlp gcn", 5, None), ("mlp gcn", 5, 3)],
    [("mlp gcn", 9, None), ("mlp gat", 5, 3)],
    [("gcn", 3, None), ("mlp", 3, 3)],
    [("mlp gcn", 4, None), ("mlp gcn", 4, 2), ("mlp gcn", 8, 4)],
]


@pytest.mark.parametrize("plans", PLANS, ids=str)
def test_every_comparison_comes_back_as_it_was(
    plans: list[tuple[str, int, int | None]], tmp_path: Path
) -> None:
    made = [
        tempergat.compare(
            DATA,
            methods.split(),
            runs,
            splits=splits,
            recipe="plain",
            settings={"epochs": 2},
            device="cpu",
            progress=False,
            out=tmp_path,
        )
        for methods, runs, splits in plans
    ]
    stored = stored_comparisons(tmp_path)
    tables = sorted(comparison.to_csv() for comparison in stored)
    assert tables == sorted(comparison.to_csv() for comparison in made)
    names = Comparisons(tuple(stored)).names
    expected = ["graph"]
    counts = sorted(s for _, _, s in plans if s)
    expected += [f"graph on {count} splits" for count in counts]
    assert list(names) == expected
    assert all(
        f"{count} splits in turn" in comparison.recipe
        for count, comparison in zip(counts, stored[1:], strict=True)
    )


def test_comparisons_that_choose_between_recipes_come_back_too(tmp_path: Path) -> None:
    made = [
        tempergat.compare(
            DATA,
            ["mlp", "gcn"],
            4,
            splits=splits,
            settings={"epochs": 2},
            device="cpu",
            progress=False,
            out=tmp_path,
        )
        for splits in (None, 2)
    ]
    stored = stored_comparisons(tmp_path)
    tables = [comparison.to_csv() for comparison in stored]
    assert tables == [comparison.to_csv() for comparison in made]
