"""Loads a dataset of the catalogue, or one that a test has changed."""

from pathlib import Path
from typing import Any

from tempergat.data import Dataset, Entry
from tempergat.data.named_graphs import open_entry


def load_entry(
    entry: Entry,
    root: Path,
    split: int | str | None = None,
    split_seed: int | None = None,
    **others: Any,
) -> Dataset:
    return open_entry(entry, root, **others).choose(split, split_seed)
