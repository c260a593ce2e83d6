"""What predictions are made for: the examples of each part of a split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.data import DEFAULT_SPLIT, DEFAULT_SPLIT_SEED, Dataset, make_split

SPLITS = ("train", "val", "test")
SPLIT_WORDS = {"train": "training", "val": "validation", "test": "test"}


class Judged(NamedTuple):
    """What the outputs of a model are judged by.

    Attributes:
        rows: For each split, the rows of its examples in the outputs.
        targets: What the examples are.
    """

    rows: Mapping[str, Tensor]
    targets: Mapping[str, Tensor]


@dataclass(frozen=True)
class Examples:
    """The examples of each split, here nodes whose target is known.

    Attributes:
        numbers: Their numbers among all nodes, on the CPU.
        targets: What they are.
    """

    numbers: Mapping[str, Tensor]
    targets: Mapping[str, Tensor]

    def to(self, device: torch.device) -> Examples:
        """The examples, with their targets on a device."""
        targets = {split: values.to(device) for split, values in self.targets.items()}
        return Examples(self.numbers, targets)

    def in_rows(self, outputs_of: Tensor | None = None) -> Judged:
        """The examples by their rows in outputs.

        Args:
            outputs_of: The numbers that outputs are for, ascending; None for all.
        """
        rows = {}
        for split, numbers in self.numbers.items():
            if outputs_of is not None:
                numbers = torch.searchsorted(outputs_of, numbers)
            rows[split] = numbers.to(self.targets[split].device)
        return Judged(rows, self.targets)


def examples_of(dataset: Dataset) -> Examples:
    """The examples of a dataset; the only place that reads targets and masks.

    Raises:
        UserError: A part of the split has no labelled nodes.
    """
    store, y = dataset.store, dataset.store.y
    numbers = {}
    for split in SPLITS:
        mask = store[f"{split}_mask"] & (y >= 0)
        numbers[split] = mask.nonzero().squeeze(1)
        if numbers[split].numel() == 0:
            raise UserError(
                f"{dataset.name} has no labelled {SPLIT_WORDS[split]} nodes; "
                + _remedy_for_empty_part(y)
            )
    return Examples(numbers, {split: y[chosen] for split, chosen in numbers.items()})


def _remedy_for_empty_part(y: Tensor) -> str:
    labelled = int((y >= 0).sum())
    made = make_split(y.cpu().numpy(), DEFAULT_SPLIT, DEFAULT_SPLIT_SEED)
    if all(mask.any() for mask in made.values()):
        return (
            f"make a split of its {labelled} labelled nodes with --split "
            f"{DEFAULT_SPLIT} (split= in Python)"
        )
    return (
        f"its {labelled} labelled nodes are too few for --split {DEFAULT_SPLIT}, so "
        "label more"
    )
