"""The split of a graph of one's own: the masks it brings, or ones made here."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data.storage import BaseStorage

from tempergat.base.errors import UserError
from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.splits import (
    DEFAULT_SPLIT,
    DEFAULT_SPLIT_SEED,
    make_split,
    set_masks,
)


def choose_split(
    path: Path, store: BaseStorage, split: int | str | None, seed: int | None
) -> tuple[str, int]:
    """Puts the masks of one split on the store, checked.

    Args:
        path: Where the graph came from.
        store: Holds the labels, already checked, and the masks the graph brings.
        split: Number of a split it brings, or percentages of one to be made. By
            default the one the seed chooses, or a made one where it brings none.
        seed: Seed of a split made here.

    Returns:
        The split, in words, and how many there were to choose from.

    Raises:
        UserError: The masks contradict the labels or one another, or there is no such
            split.
    """
    masks = {} if isinstance(split, str) else given_masks(path, store)
    splits = numbered_splits(masks)
    if isinstance(split, int) and not splits:
        raise UserError(
            f"split is {split}, but {path} has no numbered splits; give percentages "
            f"like {DEFAULT_SPLIT}, or masks of shape ({len(store.y)}, splits)"
        )
    if not masks:
        shares = DEFAULT_SPLIT if split is None else str(split)
        seed = DEFAULT_SPLIT_SEED if seed is None else seed
        set_masks(store, make_split(store.y.numpy(), shares, seed))
        return f"made: {shares} with seed {seed}", 1
    described = "given with the graph"
    if splits:
        chosen = split if isinstance(split, int) else (seed or 0) % len(splits)
        if not 0 <= chosen < len(splits):
            raise UserError(
                f"{path} has no split {chosen}; choose 0 to {len(splits) - 1}"
            )
        masks = splits[chosen]
        described += f", number {chosen}"
    check_masks(str(path), store.y, masks)
    set_masks(store, {name: mask.numpy() for name, mask in masks.items()})
    return described, max(1, len(splits))


def given_masks(path: Path, store: BaseStorage) -> dict[str, Tensor]:
    """The masks a graph brings, all three of one shape; empty where it brings none.

    Raises:
        UserError: They are not of the shape (nodes,) or (nodes, splits).
    """
    given = {name: store.get(name) for name in MASKS if store.get(name) is not None}
    if not given:
        return {}
    if MASKS[0] not in given:
        raise UserError(f"{path} has {next(iter(given))} but no train_mask; add one")
    count = len(store.y)
    shapes = {}
    for name, mask in given.items():
        seen = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
        if isinstance(seen, str) or len(seen) not in (1, 2) or seen[0] != count:
            raise UserError(
                f"{path}: {name} is {seen}; give one value for each of {count} nodes, "
                "or a column of them for each split"
            )
        if seen[1:] == (0,):
            raise UserError(
                f"{path}: {name} is {seen}, which holds no split; give it a column for "
                "each split, or leave the masks out"
            )
        shapes[name] = seen
    train = shapes[MASKS[0]]
    for name, shape in shapes.items():
        if shape != train:
            raise UserError(
                f"{path}: {MASKS[0]} is {train}, but {name} is {shape}; give all masks "
                "the same shape"
            )
    missing = torch.zeros(train, dtype=torch.bool)
    return {name: given[name].bool() if name in given else missing for name in MASKS}


def numbered_splits(masks: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """The masks of each split, where there is one in each column as in PyG's datasets.

    Args:
        masks: What `given_masks` returned.

    Returns:
        One mapping per column; none where the masks have no columns.
    """
    if not masks or masks[MASKS[0]].dim() == 1:
        return []
    columns = range(masks[MASKS[0]].shape[1])
    return [{name: mask[:, at] for name, mask in masks.items()} for at in columns]


def check_masks(where: str, labels: Tensor, masks: Mapping[str, Tensor]) -> None:
    """Checks the masks of one split against the labels and one another.

    Raises:
        UserError: They contradict them; the message begins with `where`.
    """
    for first, second in (MASKS[:2], MASKS[1:], (MASKS[0], MASKS[2])):
        both = torch.nonzero(masks[first] & masks[second])
        if len(both):
            raise UserError(
                f"{where}: node {int(both[0])} is in {first} and in {second}; put it "
                "into one split"
            )
    for name in MASKS:
        unlabelled = torch.nonzero(masks[name] & (labels == UNLABELLED))
        if len(unlabelled):
            raise UserError(
                f"{where}: node {int(unlabelled[0])} is in {name} but has no label; "
                "label it or leave it out of the split"
            )
    if not masks[MASKS[0]].any():
        raise UserError(f"{where} has no node in train_mask; put some into it")
