"""Splits that user graphs come with."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError
from tempergat.data.dataset import MASKS, UNLABELLED


def given_masks(source: str, store: BaseStorage) -> dict[str, Tensor]:
    """The masks a graph comes with, all three of one shape; empty where it has none.

    Raises:
        UserError: They are not of the shape (nodes,) or (nodes, splits).
    """
    given = {name: store.get(name) for name in MASKS if store.get(name) is not None}
    if not given:
        return {}
    if MASKS[0] not in given:
        raise UserError(f"{source} has {next(iter(given))} but no train_mask; add one")
    count = len(store.y)
    shapes = {}
    for name, mask in given.items():
        seen = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
        if isinstance(seen, str) or len(seen) not in (1, 2) or seen[0] != count:
            raise UserError(
                f"{source}: {name} is {seen}; give one value for each of {count} "
                "nodes, or a column of them for each split"
            )
        if seen[1:] == (0,):
            raise UserError(
                f"{source}: {name} is {seen}, which holds no split; give it a column "
                "for each split, or leave the masks out"
            )
        if mask.dtype != torch.bool and ((mask != 0) & (mask != 1)).any():
            wrong = mask[(mask != 0) & (mask != 1)]
            raise UserError(
                f"{source}: {name} holds {wrong[0].item():g}; a mask is 1 (or True) "
                "for the nodes of its part of the split and 0 for all others"
            )
        shapes[name] = seen
    train = shapes[MASKS[0]]
    for name, shape in shapes.items():
        if shape != train:
            raise UserError(
                f"{source}: {MASKS[0]} is {train}, but {name} is {shape}; give all "
                "masks the same shape"
            )
    missing = torch.zeros(train, dtype=torch.bool)
    return {name: given[name].bool() if name in given else missing for name in MASKS}


def numbered_splits(masks: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """The masks of each split, where every column is a split as in PyG's datasets.

    Args:
        masks: What `given_masks` returned.

    Returns:
        One mapping per column; empty where the masks have no columns.
    """
    if not masks or masks[MASKS[0]].dim() == 1:
        return []
    columns = range(masks[MASKS[0]].shape[1])
    return [{name: mask[:, at] for name, mask in masks.items()} for at in columns]


def check_masks(source: str, labels: Tensor, masks: Mapping[str, Tensor]) -> None:
    """Checks the masks of one split against the labels and one another.

    Raises:
        UserError: They contradict each other; the message begins with `source`.
    """
    for first, second in (MASKS[:2], MASKS[1:], (MASKS[0], MASKS[2])):
        both = torch.nonzero(masks[first] & masks[second])
        if len(both):
            raise UserError(
                f"{source}: node {int(both[0])} is in {first} and in {second}; put it "
                "into one split"
            )
    for name in MASKS:
        unlabelled = torch.nonzero(masks[name] & (labels == UNLABELLED))
        if len(unlabelled):
            raise UserError(
                f"{source}: node {int(unlabelled[0])} is in {name} but has no label; "
                "label it or leave it out of the split"
            )
    if not masks[MASKS[0]].any():
        raise UserError(f"{source} has no node in train_mask; put some into it")
