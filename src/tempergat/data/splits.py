"""Splits into training, validation and test nodes: given with a graph, or made."""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, counted
from tempergat.data.dataset import (
    MADE,
    MASKS,
    UNLABELLED,
    Dataset,
    fingerprint,
    hash_tensor,
)
from tempergat.data.user.splits import check_masks, each_split

DEFAULT_SPLIT = "60/20/20"
DEFAULT_SPLIT_SEED = 0
MOST_MADE_SPLITS = 1000


def seed_sequence(name: str, seed: int) -> np.random.SeedSequence:
    """The seed sequence of a checked seed.

    Args:
        name: What the user calls this seed.
        seed: A whole number of at least 0.

    Raises:
        UserError: The seed is negative or not a whole number.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise UserError(f"{name} is {seed!r}; give a whole number of at least 0")
    return np.random.SeedSequence(int(seed))


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


def make_split(
    labels: np.ndarray, split: str, seed: int, *, stratified: bool = False
) -> dict[str, np.ndarray]:
    """Draws a split of the labelled nodes.

    Args:
        labels: Class of every node, -1 where there is none.
        split: Percentages, like `"60/20/20"`.
        seed: The same seed gives the same split on every machine.
        stratified: Whether every class is divided by the percentages; otherwise nodes
            are drawn without regard to their class.

    Returns:
        The three masks by name.

    Raises:
        UserError: The percentages are not valid, or leave no training node.
    """
    fractions = parse_split(split)
    labelled = np.flatnonzero(labels != UNLABELLED)
    generator = np.random.default_rng(seed_sequence("split_seed", seed))
    order = generator.permutation(labelled)
    if stratified:
        pieces = _pieces_by_class(order, labels[order], fractions)
    else:
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


def _pieces_by_class(
    order: np.ndarray, labels: np.ndarray, fractions: tuple[float, float, float]
) -> list[np.ndarray]:
    """Nodes for training, validation and testing, every class divided alike.

    Args:
        order: The labelled nodes, shuffled.
        labels: Their classes.
        fractions: The share of each part.
    """
    pieces: list[list[np.ndarray]] = [[], [], []]
    for number in np.unique(labels):
        members = order[labels == number]
        bounds = np.cumsum(_part_sizes(len(members), fractions))
        for piece, part in zip(pieces, np.split(members, bounds), strict=False):
            piece.append(part)
    return [np.concatenate(piece) if piece else order[:0] for piece in pieces]


def _part_sizes(count: int, fractions: tuple[float, float, float]) -> list[int]:
    """How many nodes of a class each part gets.

    A class of one node is for training, and one of two for training and testing:
    without training nodes no method could learn it.
    """
    wanted = [*(count * share for share in fractions), count * (1 - sum(fractions))]
    # The sum of four shares may be a little off 1.
    sizes = [int(share + 1e-9) for share in wanted]
    by_remainder = sorted(range(4), key=lambda at: sizes[at] - wanted[at])
    for at in by_remainder[: count - sum(sizes)]:
        sizes[at] += 1
    # Training, testing, validation, unused: each takes a node from a later one, or from
    # one that has several.
    order = (0, 2, 1, 3)
    for rank, part in enumerate(order[:3]):
        if fractions[part] == 0 or sizes[part] > 0:
            continue
        givers = [
            other
            for place, other in enumerate(order)
            if sizes[other] > (1 if place < rank else 0)
        ]
        if givers:
            sizes[max(givers, key=lambda other: sizes[other])] -= 1
            sizes[part] = 1
    return sizes[:3]


def set_masks(store: BaseStorage, masks: Mapping[str, np.ndarray | Tensor]) -> None:
    """Puts masks on the store of the classified nodes."""
    for name in MASKS:
        store[name] = torch.from_numpy(np.ascontiguousarray(masks[name], dtype=bool))


@dataclass(frozen=True)
class GraphWithSplits:
    """A graph that was read and hashed once, and the splits it comes with.

    Every dataset made from it shares its tensors; they differ in their masks, the
    description of the split and the fingerprint.

    Attributes:
        unsplit: The graph before a split is chosen.
        hashes: What `hash_tensors` returned for the graph.
        masks: The masks of the split the graph comes with, or with a column for each
            of several splits; empty where it comes with none.
        words: A description of the split it comes with.
        default_split: Percentages of the split that is made where there is none.
        stratified: Whether a split that is made divides every class alike. The
            catalogue says it of datasets by name.
        given_by: What errors call the user graph whose masks these are: they are
            checked when they are used, and have numbers only where they have columns.
            None for other graphs.
    """

    unsplit: Dataset
    hashes: Mapping[str, str]
    masks: Mapping[str, Tensor] = field(default_factory=dict)
    words: str = ""
    default_split: str = DEFAULT_SPLIT
    stratified: bool = False
    given_by: str | None = None

    @property
    def splits(self) -> list[dict[str, Tensor]]:
        """The masks of each split the graph comes with."""
        return each_split(self.masks)

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
        name, splits, count = self.unsplit.name, self.splits, len(self.splits)
        has_columns = count > 0 and self.masks[MASKS[0]].dim() > 1
        is_numbered = has_columns or (count > 0 and self.given_by is None)
        if isinstance(split, int) and not is_numbered:
            raise UserError(
                f"split is {split}, but {name} has no numbered splits; give "
                f"percentages like {DEFAULT_SPLIT}"
            )
        if isinstance(split, str) or count == 0:
            shares = split if isinstance(split, str) else self.default_split
            seed = DEFAULT_SPLIT_SEED if split_seed is None else split_seed
            return self._made(shares, seed, 1, 0)
        # A seed alone chooses among the splits, so that a study over seeds uses all.
        number = (split_seed or 0) % count if split is None else split
        if not 0 <= number < count:
            raise UserError(f"{name} has no split {number}; choose 0 to {count - 1}")
        if self.given_by is not None:
            check_masks(self.given_by, self.unsplit.store.y, splits[number])
        words = f"{self.words}, number {number}" if has_columns else self.words
        return self._with_masks(splits[number], words, count, number)

    def make_splits(
        self, split: str | None, count: int, most: int | None = None
    ) -> dict[int, Dataset]:
        """Returns the graph with each of several splits made here, by number.

        Args:
            split: Percentages; the usual ones when left out.
            count: How many splits there are; number k is made with seed k.
            most: How many are wanted at most, from the first.

        Raises:
            UserError: The graph comes with splits and no percentages were given, or
                the splits cannot be made.
        """
        if count < 2 or count > MOST_MADE_SPLITS:
            raise UserError(
                f"splits is {count}; give 2 to {MOST_MADE_SPLITS} splits to make"
            )
        if split is None and self.masks:
            given = counted(len(self.splits), "split")
            raise UserError(
                f"{self.unsplit.name} comes with {given}; leave --splits out (splits= "
                "in Python) to use what it comes with, or "
                f"give --split {DEFAULT_SPLIT} (split=) as well to have others made"
            )
        shares = split or self.default_split
        numbers = range(count if most is None else min(count, most))
        return {number: self._made(shares, number, count, number) for number in numbers}

    def _made(self, shares: str, seed: int, count: int, number: int) -> Dataset:
        labels = self.unsplit.store.y.numpy()
        masks = make_split(labels, shares, seed, stratified=self.stratified)
        how = ", by class" if self.stratified else ""
        words = f"{MADE}: {shares} with seed {seed}{how}"
        return self._with_masks(masks, words, count, number)

    def _with_masks(
        self,
        masks: Mapping[str, np.ndarray | Tensor],
        split: str,
        count: int,
        number: int,
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
        without_masks = {k: v for k, v in self.hashes.items() if k not in hashes}
        return replace(
            dataset,
            fingerprint=fingerprint(dataset.data, {**self.hashes, **hashes}),
            graph_fingerprint=fingerprint(dataset.data, without_masks),
        )
