"""Splits into training, validation and test nodes: given with a graph, or made."""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError
from tempergat.data.dataset import (
    MASKS,
    UNLABELLED,
    Dataset,
    fingerprint,
    hash_tensor,
)
from tempergat.data.seeds import seed_sequence

DEFAULT_SPLIT = "60/20/20"
DEFAULT_SPLIT_SEED = 0


def parse_split(text: str) -> tuple[float, float, float]:
    """Turns `"60/20/20"` into three fractions of the labelled nodes.

    Raises:
        UserError: The text is not three non-negative percentages, with a training
            share, that add up to at most 100.
    """
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"{number}/{number}/{number}", text.strip())
    if match is None:
        raise UserError(
            f"split is {text!r}; write percentages of train/validation/test, "
            f"like {DEFAULT_SPLIT}"
        )
    train, val, test = (float(part) for part in match.groups())
    if train <= 0 or train + val + test > 100 + 1e-9:
        raise UserError(
            f"split {text!r} adds up to {train + val + test:g} with a training share "
            f"of {train:g}; the training share must be positive and the sum at most 100"
        )
    return train / 100, val / 100, test / 100


def make_split(labels: np.ndarray, split: str, seed: int) -> dict[str, np.ndarray]:
    """Draws a split of the labelled nodes, uniformly and without regard to class.

    Args:
        labels: Class of every node, -1 where there is none.
        split: Percentages, like `"60/20/20"`.
        seed: The same seed gives the same split on every machine.

    Returns:
        The three masks by name.
    """
    fractions = parse_split(split)
    labelled = np.flatnonzero(labels != UNLABELLED)
    generator = np.random.default_rng(seed_sequence("split_seed", seed))
    order = generator.permutation(labelled)
    bounds = np.rint(np.cumsum(fractions) * len(order)).astype(np.int64)
    pieces = np.split(order, bounds)[:3]
    if len(pieces[0]) == 0:
        raise UserError(
            f"split {split!r} leaves no training node among {len(order)} labelled "
            "nodes; label more nodes or raise the training share"
        )
    masks = {}
    for name, piece in zip(MASKS, pieces, strict=True):
        masks[name] = np.zeros(len(labels), dtype=bool)
        masks[name][piece] = True
    return masks


def set_masks(store: BaseStorage, masks: Mapping[str, np.ndarray]) -> None:
    """Puts masks on the store of the classified nodes."""
    for name in MASKS:
        store[name] = torch.from_numpy(np.ascontiguousarray(masks[name], dtype=bool))


def _no_masks(number: int) -> Mapping[str, np.ndarray]:
    raise LookupError(f"split {number} of a graph that comes with none")


@dataclass(frozen=True)
class GraphWithSplits:
    """A graph that was read and hashed once, and the splits it comes with.

    Every dataset made from it shares its tensors; they differ in their masks, the
    description of the split and the fingerprint.

    Attributes:
        unsplit: The graph before a split is chosen.
        hashes: What `hash_tensors` returned for the graph.
        splits: A description of each split the graph comes with; empty where it comes
            with none.
        masks_of: Returns the masks of a split by its number.
        default_split: Percentages of the split that is made where there is none.
        is_numbered: Whether a user may choose among the splits by number.
    """

    unsplit: Dataset
    hashes: Mapping[str, str]
    splits: Sequence[str] = ()
    masks_of: Callable[[int], Mapping[str, np.ndarray]] = _no_masks
    default_split: str = DEFAULT_SPLIT
    is_numbered: bool = True

    def choose(
        self, split: int | str | None = None, split_seed: int | None = None
    ) -> Dataset:
        """Returns the graph with the masks of one split.

        Args:
            split: Number of a split the graph comes with, or percentages of a split to
                make. By default the split is chosen by the seed, or made where the
                graph comes with none.
            split_seed: Seed of a split that is made, or what chooses among several
                splits.

        Raises:
            UserError: There is no such split, or it cannot be made.
        """
        name, count = self.unsplit.name, len(self.splits)
        if isinstance(split, int) and (count == 0 or not self.is_numbered):
            raise UserError(
                f"split is {split}, but {name} has no numbered splits; give "
                f"percentages like {DEFAULT_SPLIT}"
            )
        if isinstance(split, str) or count == 0:
            shares = split if isinstance(split, str) else self.default_split
            seed = DEFAULT_SPLIT_SEED if split_seed is None else split_seed
            masks = make_split(self.unsplit.store.y.numpy(), shares, seed)
            return self._with_masks(masks, f"made: {shares} with seed {seed}", 1, 0)
        # A seed alone chooses among the splits, so that a study over seeds uses all.
        number = (split_seed or 0) % count if split is None else split
        if not 0 <= number < count:
            raise UserError(f"{name} has no split {number}; choose 0 to {count - 1}")
        given = self.masks_of(number)
        return self._with_masks(given, self.splits[number], count, number)

    def _with_masks(
        self, masks: Mapping[str, np.ndarray], split: str, count: int, number: int
    ) -> Dataset:
        dataset = replace(
            self.unsplit,
            data=copy.copy(self.unsplit.data),
            split=split,
            num_splits=count,
            split_number=number,
        )
        store = dataset.store
        set_masks(store, masks)
        names = {name: f"{dataset.target or ''}.{name}" for name in MASKS}
        hashes = {full: hash_tensor(full, store[name]) for name, full in names.items()}
        content = fingerprint(dataset.data, {**self.hashes, **hashes})
        return replace(dataset, fingerprint=content)
