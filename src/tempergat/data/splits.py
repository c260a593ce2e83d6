"""Splits made by a seed, and the masks they become."""

import re

import numpy as np
import torch
from torch_geometric.data.storage import BaseStorage

from tempergat.base.errors import UserError
from tempergat.data.dataset import MASKS, UNLABELLED
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


def set_masks(store: BaseStorage, masks: dict[str, np.ndarray]) -> None:
    """Puts masks on the store of the classified nodes."""
    for name in MASKS:
        store[name] = torch.from_numpy(np.ascontiguousarray(masks[name], dtype=bool))
