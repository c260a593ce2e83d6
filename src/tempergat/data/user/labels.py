"""Classes of nodes, from words, numbers or tensors."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from tempergat.base import UserError, counted, listed
from tempergat.data.dataset import UNLABELLED, Target
from tempergat.data.user.options import MISSING, in_python
from tempergat.data.user.reading import NoLabels, OwnLabels, Reading, UserGraph

# A column of whole numbers with gaps is often saved as 1.0 and so on.
_INTEGER = re.compile(r"([+-]?[0-9]{1,18})(?:\.0*)?")
_LISTS = {"[": "]", "{": "}", "(": ")"}
_CODE = re.compile(r"0[0-9]+")
# More classes than this, of fewer nodes each, are hardly classes.
_MANY = 20
_FEW_NODES = 10
_REGRESSION = (
    "continuous targets are not supported; give one class per node, as a word or a "
    "whole number"
)
_MULTI_LABEL = "several labels per node are not supported; give one class per node"


def classes_of_texts(
    source: str, texts: np.ndarray, at: Callable[[int], str], reading: Reading
) -> tuple[np.ndarray, tuple[str, ...] | None, dict[str, int]]:
    """The class of each node from the words or numbers of a table.

    Args:
        source: The file, for errors and notes.
        texts: The label of each node as it is written.
        at: Returns file and row, for errors.
        reading: How the table is read; it receives notes.

    Returns:
        The classes, -1 where there is none; the label of each class, None where the
        labels are the numbers from 0; and how many nodes have none by how that is
        written.

    Raises:
        UserError: There is no label, labels are not classes, or a word for a missing
            label may be a class.
    """
    texts, unlabelled = known_texts(source, texts, reading)
    many = reading.options.many_classes
    given = [text for text in texts if text != ""]
    if not given:
        raise NoLabels(f"{source} has no label in any row; label some nodes")
    _refuse_several(texts, at)
    # 0111 and 111 are different codes, and the same number.
    are_codes = any(map(_CODE.fullmatch, {*given}))
    are_numbers = _is_number(given[0]) and not are_codes
    for row, text in enumerate(texts):
        if text == "" or are_codes:
            continue
        if _is_number(text) != are_numbers:
            kind = "number" if are_numbers else "word"
            raise UserError(
                f"{at(row)}: label is {text!r}, but the first label is the {kind} "
                f"{given[0]}; use numbers or words throughout, or name words for a "
                f"missing label with --missing {in_python('missing')}"
            )
        if are_numbers and _INTEGER.fullmatch(text) is None:
            raise UserError(f"{at(row)}: label is {text!r}; {_REGRESSION}")
    if are_numbers:
        matches = [_INTEGER.fullmatch(text) for text in texts]
        values = np.array([0 if m is None else int(m[1]) for m in matches], np.int64)
        if not many:
            _refuse_counts(source, given)
        known = texts != ""
        labels, numbers = _classes_of_numbers(source, values, known, True, reading)
        if values.min() == UNLABELLED:
            count = counted(int((values == UNLABELLED).sum()), "node")
            reading.notes.append(
                f"{source}: -1 is the class of {count}; --missing -1 "
                f"{in_python('missing')} says that it stands for a missing label"
            )
        return labels, numbers, unlabelled
    names = tuple(sorted(set(given)))
    if not many and len(names) == len(given) > _MANY:
        raise OwnLabels(
            f"{source}: each of the {len(given)} labelled nodes has a label of its own "
            f"({listed(names, 3)}); choose another column with --label "
            f"{in_python('label')}"
        )
    number = {text: at for at, text in enumerate(names)}
    labels = np.array([number.get(text, UNLABELLED) for text in texts], np.int64)
    _note(source, names, Counter(given), many, reading)
    return labels, names, unlabelled


def known_texts(
    source: str, texts: np.ndarray, reading: Reading, feature: str | None = None
) -> tuple[np.ndarray, dict[str, int]]:
    """The texts of a column, "" where a word stands for none, and how often each does.

    Args:
        source: The file, for errors.
        texts: The column as it is written.
        reading: How the table is read.
        feature: The name of a column of words; None for the label.

    Raises:
        UserError: Such a word is as frequent as a class, or as the usual one of a few
            words of a feature, and the user did not name it.
    """
    words = [text.lower().removesuffix(".0") for text in texts]
    is_missing = np.array([word in reading.missing for word in words], dtype=bool)
    written: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for row in np.flatnonzero(is_missing):
        name = spelled.setdefault(words[row], texts[row] or "empty")
        written[name] += 1
    # Whole numbers with gaps are often saved as 1.0.
    classes = Counter(text.removesuffix(".0") for text in texts[~is_missing])
    by_count = sorted(classes, key=lambda text: classes[text]) or ["0"]
    # The rarest class of a label; the median word of a feature, since many features
    # have a rare word.
    other = by_count[0 if feature is None else (len(by_count) - 1) // 2]
    # Beside numbers, a word cannot be a class.
    may_be_class = not _is_number(other) and reading.options.missing == MISSING
    if feature is not None:
        # A model that fills gaps has settled it.
        may_be_class &= len(classes) <= _MANY and not reading.options.fill_values
    frequent = [
        name
        for word, name in spelled.items()
        # Beside a single word, even a rare one may be the other.
        if word != ""
        and may_be_class
        and (written[name] >= classes[other] or len(classes) == 1)
    ]
    if frequent:
        counts = [
            f"{name} is the {feature or 'label'} of {counted(written[name], 'node')}"
            for name in frequent
        ]
        kind = "class" if feature is None else "word like the others"
        problem = (
            f"{source}: {', '.join(counts)}, and {other} of {classes[other]}, so "
            f"{'it' if len(frequent) == 1 else 'each'} may be a {kind}; --missing "
            f"{shlex.quote(','.join(frequent))} says what stands for a missing value, "
            f"and --missing '' that nothing does {in_python('missing')}"
        )
        reading.problem(UserError(problem))
    return np.where(is_missing, "", texts), dict(written)


def check_labels(read: UserGraph, reading: Reading) -> UserGraph:
    """Checks the labels of a tensor and makes them classes from 0, in place.

    Returns:
        The graph with the names of its classes.

    Raises:
        UserError: They are missing, or not classes.
    """
    source, labels = reading.name, read.store.get("y")
    if not isinstance(labels, Tensor):
        raise NoLabels(f"{source} has no labels y; give every node a class, or -1")
    if labels.dim() == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dim() != 1 or labels.is_complex():
        raise UserError(
            f"{source}: y has shape {tuple(labels.shape)}, but {_MULTI_LABEL}, like "
            "y.argmax(1) where each row has a single 1"
        )
    written = {"-1": labels == UNLABELLED, "nan": labels.isnan()}
    counts = {word: int(is_so.sum()) for word, is_so in written.items()}
    if counts["-1"]:
        verbs = ("has", "counts") if counts["-1"] == 1 else ("have", "count")
        reading.notes.append(
            f"{source}: {counted(counts['-1'], 'node')} {verbs[0]} the label -1 and "
            f"{verbs[1]} as unlabelled"
        )
    counts = {word: count for word, count in counts.items() if count}
    if labels.is_floating_point():
        labels = torch.where(labels.isnan(), UNLABELLED, labels)
        if not torch.isfinite(labels).all() or (labels != labels.round()).any():
            raise UserError(f"{source}: y holds fractions, but {_REGRESSION}")
    labels = labels.long()
    known = labels != UNLABELLED
    negative = torch.nonzero(labels < UNLABELLED)
    if len(negative):
        row = int(negative[0])
        raise UserError(
            f"{source}: y[{row}] is {int(labels[row])}; write classes as words or "
            "numbers from 0, and -1 where it is unknown"
        )
    if not known.any():
        raise NoLabels(f"{source} has no labelled node; label some nodes")
    classes, names = _classes_of_numbers(
        source, labels.numpy(), known.numpy(), False, reading
    )
    read.store.y = torch.from_numpy(classes)
    how_read = replace(read.how_read, unlabelled=counts)
    return replace(read, predicted=Target(0, names), how_read=how_read)


def _classes_of_numbers(
    source: str, values: np.ndarray, known: np.ndarray, many: bool, reading: Reading
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The class of each node from whole numbers, and the number of each class.

    Numbers that are exactly 0, 1, ... stay as they are. Others, like years, become
    classes in their order.

    Args:
        source: The file, for notes.
        values: The number of each node.
        known: Which nodes have a label.
        many: Whether there may be many classes of few nodes each; otherwise a note.
        reading: Receives notes.
    """
    given = values[known]
    if given.min() >= 0 and given.max() <= len(values):
        # Sorting the labels of a hundred million nodes would take many seconds.
        counts = np.bincount(given)
        different = np.flatnonzero(counts)
        counts = counts[different]
    else:
        different, counts = np.unique(given, return_counts=True)
    names = tuple(str(value) for value in different.tolist())
    by_name = dict(zip(names, counts.tolist(), strict=True))
    _note(source, names, by_name, many, reading)
    is_plain = np.array_equal(different, np.arange(len(different)))
    labels = np.full(len(values), UNLABELLED, dtype=np.int64)
    labels[known] = given if is_plain else np.searchsorted(different, given)
    return labels, None if is_plain else names


def _note(
    source: str,
    names: tuple[str, ...],
    counts: Mapping[str, int],
    many: bool,
    reading: Reading,
) -> None:
    """Notes on classes that may be others than was meant."""
    notes = reading.notes
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(" ".join(name.lower().split()), []).append(name)
    for group in alike.values():
        if len(group) > 1:
            words = " and ".join(f"{name!r} ({counts[name]} nodes)" for name in group)
            notes.append(
                f"{source}: {words} are different classes although they differ only "
                "in case or spaces; write them alike if they are one"
            )
    shared = next((m for m in (",", "/", " ") if _share_parts(names, m)), None)
    if shared is not None:
        several = next(name for name in names if shared in name)
        notes.append(
            f"{source}: {several!r} is a class of its own beside others of the same "
            f"parts; {_MULTI_LABEL}"
        )
    nodes = sum(counts.values())
    if not many and len(names) > _MANY and nodes < _FEW_NODES * len(names):
        notes.append(
            f"{source}: {nodes} labelled nodes are of {len(names)} classes "
            f"({listed(names, 3)}); if these are not classes, choose another column "
            f"with --label {in_python('label')}"
        )


def _refuse_counts(source: str, given: list[str]) -> None:
    """Refuses many different numbers, each the label of few nodes."""
    different = {*given}
    if len(different) > _MANY and len(given) < _FEW_NODES * len(different):
        first = sorted(different, key=float)[:3]
        raise OwnLabels(
            f"{source}: the label has {len(different)} different numbers "
            f"({', '.join(first)}, ...) on {len(given)} nodes, like a count or an age; "
            f"choose another column with --label {in_python('label')}, or insist on "
            f"classes with --many-classes {in_python('many_classes')}"
        )


def _share_parts(names: tuple[str, ...], mark: str) -> bool:
    """Whether classes like `a,b` seem to be several: their parts are in other classes.

    Of names with spaces all are like that, or one has a part that is a class itself.
    """
    parts = {name: {p.strip() for p in name.split(mark)} for name in names}
    counts = Counter(part for own in parts.values() for part in own)
    several = [own for own in parts.values() if len(own) > 1]
    shared = [own for own in several if all(counts[part] > 1 for part in own)]
    if mark == " " and len(shared) < len(several):
        shared = [own for own in shared if not own.isdisjoint(names)]
    return bool(shared)


def _refuse_several(texts: np.ndarray, at: Callable[[int], str]) -> None:
    """Refuses labels like `a;b`, where a part occurs in different labels, and lists."""
    for row, text in enumerate(texts):
        if text[:1] in _LISTS and text[-1:] == _LISTS[text[0]]:
            raise UserError(f"{at(row)}: label is {text!r}; {_MULTI_LABEL}")
    for mark in ";|":
        if not any(mark in text for text in texts):
            continue
        different = set(texts.tolist()) - {""}
        parts = Counter(p.strip() for text in different for p in set(text.split(mark)))
        if max(parts.values()) > 1:
            row = next(row for row, text in enumerate(texts) if mark in text)
            raise UserError(f"{at(row)}: label is {texts[row]!r}; {_MULTI_LABEL}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
