"""A graph with other labels and another split."""

import copy
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from tempergat.data.dataset import MASKS, UNLABELLED, Dataset, fingerprint


def with_labels(
    dataset: Dataset,
    classes: np.ndarray,
    parts: Mapping[str, np.ndarray],
    class_names: tuple[str, ...],
    split: str,
) -> Dataset:
    """Replaces all labels and the split of a graph.

    Args:
        dataset: The graph. It is not changed, and its own labels are not used.
        classes: The class of each node, -1 where it has none.
        parts: The nodes of each mask, by the name of the mask.
        class_names: The name of each class.
        split: Description of the split.
    """
    data = copy.copy(dataset.data)
    changed = replace(
        dataset,
        data=data,
        num_classes=len(class_names),
        class_names=class_names,
        label_name=None,
        split_name=None,
        split=split,
        num_splits=1,
        split_number=0,
    )
    store = changed.store
    store.y = torch.from_numpy(classes.astype(np.int64))
    for mask in MASKS:
        value = np.zeros(len(classes), dtype=bool)
        value[parts[mask]] = True
        store[mask] = torch.from_numpy(value & (classes != UNLABELLED))
    return replace(changed, fingerprint=fingerprint(data))
