"""Splits that user graphs come with, and which names are those of a split."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, first_line, joined, listed
from tempergat.data.dataset import MASKS, UNLABELLED, Target
from tempergat.data.formats.numpy_files import native_numbers
from tempergat.data.layouts.pt_classes import SavedArray
from tempergat.data.user.reading import Reading, UserGraph

# Written out, and as they are abbreviated beside a word like mask.
_WORDS = {
    MASKS[0]: "train|training",
    MASKS[1]: "val|valid|validation|dev",
    MASKS[2]: "test|testing",
}
_SHORT = {MASKS[0]: "trn|tr", MASKS[1]: "vld|vl|va", MASKS[2]: "tst|te"}
# Words for 0 and 1 in a mask.
TRUTH = {"yes": 1, "y": 1, "t": 1, "no": 0, "n": 0, "f": 0}
_KIND = "masks?|msk|set|split|flag|bool|idx|index|indices|ids|nodes?"
# Under these names, a dictionary holds the parts of a split.
_WHOLE_SPLITS = ("split", "splits", "splitidx", "splitindex", "splitindices")


def plain_name(name: str) -> str:
    """A name in lower case, without spaces, dots, dashes and underscores."""
    return re.sub(r"[\s._-]", "", name).lower()


def split_part(name: str) -> str | None:
    """The mask that a name like `is_train`, `tr_mask` or `idx_train` stands for.

    None where the name does not sound like a part of a split.
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rstrip("?"))
    plain = re.sub(r"[\s._-]+", "_", apart).lower()
    # Without the separator, `in` would make a split of `invalid`.
    before = f"(?:(?:is|{_KIND})_?|(?:in|for|used_for)_)"
    for mask, words in _WORDS.items():
        either = f"(?:{words}|{_SHORT[mask]})"
        forms = (words, f"{before}{either}", f"(?:{before})?{either}_?(?:{_KIND})")
        if any(re.fullmatch(form, plain) for form in forms):
            return mask
    return None


def unnumbered(name: str) -> str:
    """A name without the number at its end."""
    return name.rstrip("0123456789_ -")


def column_part(name: str) -> str | None:
    """The mask that a column beside those of other parts stands for.

    Besides what `split_part` knows, that may be numbered or short: `train_0` or `tr`.
    """
    plain = unnumbered(name)
    return split_part(plain) or split_part(f"{plain}_mask")


def is_split_name(name: str) -> bool:
    """Whether a name is that of a split even where no other part is beside it.

    `train_set` and `is_train` are; `valid` and `is_test` may be ordinary features.
    """
    plain = unnumbered(name)
    kind = re.search("(?i)mask|msk|idx|index|indices|split|set", plain) is not None
    is_train = split_part(plain) == MASKS[0] and re.match("(?i)(is|in|for|used)", plain)
    return split_part(plain) is not None and (kind or bool(is_train))


def is_mask_name(name: str) -> bool:
    """Whether a name can only be that of a mask, like `train_mask` or `mask_val_3`."""
    plain = unnumbered(name)
    return re.search("(?i)mask|msk", plain) is not None and bool(split_part(plain))


def is_split_array(name: str) -> bool:
    """Whether an array of a graph has the name of a split, like `train_idx`."""
    return plain_name(name) in _WHOLE_SPLITS or split_part(name) is not None


def split_arrays(store: BaseStorage) -> dict[str, Any]:
    """What holds the split of a graph, by name: its masks, or what else is named so."""
    masks = {name: store.get(name) for name in MASKS if store.get(name) is not None}
    others = {name: value for name, value in store.items() if is_split_array(name)}
    return masks or others


def given_masks(source: str, store: BaseStorage) -> dict[str, Tensor]:
    """The masks a graph comes with, all three of one shape; empty where it has none.

    Without masks, the split may be arrays like `train_idx` or `idx_train`, or a
    dictionary of such arrays.

    Raises:
        UserError: They are not of the shape (nodes,) or (nodes, splits), or it is not
            clear what an array is that has the name of a split.
    """
    given = split_arrays(store)
    if not given:
        return {}
    if not given.keys() <= {*MASKS}:
        given = _masks_by_other_names(source, given, len(store.y))
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


def each_split(masks: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """The masks of each split: one, or where masks have columns, one for each column.

    Args:
        masks: What `given_masks` returned; empty where there is no split.
    """
    if not masks or masks[MASKS[0]].dim() == 1:
        return [dict(masks)] if masks else []
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


def classes_in_splits(labels: np.ndarray, masks: Mapping[str, Tensor]) -> np.ndarray:
    """The classes that have a node in some split, in order."""
    used = np.zeros(len(labels), dtype=bool)
    for mask in masks.values():
        used |= mask.reshape(len(labels), -1).any(dim=1).numpy()
    return np.unique(labels[used & (labels != UNLABELLED)])


def drop_unused_classes(
    read: UserGraph, masks: Mapping[str, Tensor], reading: Reading
) -> UserGraph:
    """Makes nodes unlabelled whose class is in no split, in place, with a note.

    Args:
        read: The graph, with checked labels.
        masks: The masks of all splits.
        reading: Receives the note.
    """
    labels = read.store.y.numpy()
    kept = classes_in_splits(labels, masks)
    count = int(labels.max()) + 1
    if not len(kept) or len(kept) == count:
        return read
    names = replace(read.predicted, width=count).words
    dropped = [names[at] for at in range(count) if at not in kept]
    position = np.full(count + 1, UNLABELLED, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    read.store.y = torch.from_numpy(position[labels])
    one = len(dropped) == 1
    reading.notes.append(
        f"{reading.name}: no split contains {'class' if one else 'classes'} "
        f"{listed(dropped)}, so {'it is' if one else 'they are'} left out; --split "
        "60/20/20 makes a split with all classes"
    )
    return replace(read, predicted=Target(0, tuple(names[at] for at in kept)))


def note_unseen_classes(
    read: UserGraph, masks: Mapping[str, Tensor], reading: Reading
) -> None:
    """Notes classes of validation or test nodes without a training node."""
    labels = read.store.y.numpy()
    names = replace(read.predicted, width=int(labels.max()) + 1).words
    unseen: dict[str, None] = {}
    for split in each_split(masks):
        known = np.unique(labels[split[MASKS[0]].numpy()])
        other = np.unique(labels[(split[MASKS[1]] | split[MASKS[2]]).numpy()])
        others = np.setdiff1d(other[other != UNLABELLED], known)
        # Training nodes of one class are refused, whatever the others are.
        unseen |= {names[at]: None for at in others if len(known) > 1}
    if unseen:
        word = "class" if len(unseen) == 1 else "classes"
        reading.notes.append(
            f"{reading.name}: no training node is of {word} {listed(list(unseen))}, so "
            "no method can classify those nodes of the test or validation set; "
            "--split 60/20/20 makes a split with all classes"
        )


def _masks_by_other_names(
    source: str, given: Mapping[str, Any], count: int
) -> dict[str, Any]:
    """Masks from arrays of masks or of nodes, whatever they are called."""
    remedy = (
        f"save train_mask, val_mask and test_mask with a value for each of {count} "
        "nodes, or have a split made with --split 60/20/20"
    )
    parts: dict[str, list[tuple[str, Any]]] = {name: [] for name in MASKS}
    for name, value in given.items():
        is_whole = plain_name(name) in _WHOLE_SPLITS
        inside = value if is_whole and isinstance(value, Mapping) else {name: value}
        for key, array in inside.items():
            mask = split_part(str(key))
            if mask is None:
                raise UserError(
                    f"{source}: {name} is not a split as we know it; {remedy}"
                )
            parts[mask].append((name if key == name else f"{name}[{key!r}]", array))
    for mask, arrays in parts.items():
        if len(arrays) != 1:
            word = mask.removesuffix("_mask")
            names = joined([name for name, _ in arrays] or list(given))
            raise UserError(
                f"{source}: {names} {'has' if len(given) == 1 else 'have'} the name of "
                f"a split, but {'more than one' if arrays else 'none'} is that of "
                f"{word}; {remedy}"
            )
    return {
        mask: _as_mask(f"{source}: {name}", value, count, remedy)
        for mask, ((name, value),) in parts.items()
    }


def _as_mask(where: str, value: Any, count: int, remedy: str) -> Tensor:
    try:
        if isinstance(value, SavedArray):
            value = value.array()
        elif isinstance(value, Tensor):
            value = value.cpu()
        array = torch.tensor(native_numbers(where, np.asarray(value)))
    except Exception as error:
        # A damaged file can hold anything in place of an array.
        raise UserError(
            f"{where} is no array of nodes ({first_line(error)}); {remedy}"
        ) from error
    if array.dim() == 2 and array.shape[0] != count:
        # Some layouts give every split a row.
        array = array.T
    if array.shape[:1] == (count,) and ((array == 0) | (array == 1)).all():
        return array.bool()
    is_whole = array.dtype != torch.bool and not array.is_floating_point()
    if array.dim() == 1 and is_whole and len({*array.tolist()}) == len(array):
        nodes = array[(array >= 0) & (array < count)].long()
        if len(nodes) == len(array):
            mask = torch.zeros(count, dtype=torch.bool)
            mask[nodes] = True
            return mask
    raise UserError(
        f"{where} is {tuple(array.shape)} of {array.dtype}, neither a mask nor "
        f"different nodes from 0 to {count - 1}; {remedy}"
    )
