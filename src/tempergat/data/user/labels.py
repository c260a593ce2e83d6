"""Classes of nodes, from words or numbers."""

import re
import shlex
from collections import Counter
from collections.abc import Callable

import numpy as np

from tempergat.base import UserError, counted, listed
from tempergat.data.dataset import UNLABELLED
from tempergat.data.user.options import MISSING, ReadOptions, in_python, missing_words

# A column of whole numbers with gaps is often saved as 1.0 and so on.
_INTEGER = re.compile(r"([+-]?[0-9]{1,18})(?:\.0*)?")
_LISTS = {"[": "]", "{": "}", "(": ")"}
_CODE = re.compile(r"0[0-9]+")
# More classes than this, of fewer nodes each, are hardly classes.
_MANY = 20
_FEW_NODES = 10
REGRESSION = (
    "continuous targets are not supported; give one class per node, as a word or a "
    "whole number"
)
NEGATIVE = "write classes as words or numbers from 0, and -1 where it is unknown"
MULTI_LABEL = "several labels per node are not supported; give one class per node"


class NoLabels(UserError):
    """A graph without any label, which can only be predicted on."""


Classes = tuple[np.ndarray, tuple[str, ...] | None, tuple[str, ...]]


def known_labels(
    source: str, texts: np.ndarray, options: ReadOptions
) -> tuple[np.ndarray, dict[str, int]]:
    """Tells labels from words that stand for a missing one.

    Args:
        source: The file, for errors.
        texts: The label of each node as it is written.
        options: Which words stand for a missing value.

    Returns:
        The labels, "" where there is none, and how many nodes have none by how that is
        written.

    Raises:
        UserError: Such a word is as frequent as a class, and the user did not name it.
    """
    missing = missing_words(options)
    words = [text.lower().removesuffix(".0") for text in texts]
    is_missing = np.array([word in missing for word in words], dtype=bool)
    written: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for row in np.flatnonzero(is_missing):
        name = spelled.setdefault(words[row], texts[row] or "empty")
        written[name] += 1
    # Whole numbers with gaps are often saved as 1.0.
    classes = Counter(text.removesuffix(".0") for text in texts[~is_missing])
    rarest = min(classes, key=lambda text: classes[text], default="0")
    # Beside numbers, a word cannot be a class.
    may_be_class = not _is_number(rarest) and options.missing == MISSING
    frequent = [
        name
        for word, name in spelled.items()
        if word != "" and may_be_class and written[name] >= classes[rarest]
    ]
    if frequent:
        counts = [
            f"{name} is the label of {counted(written[name], 'node')}"
            for name in frequent
        ]
        raise UserError(
            f"{source}: {', '.join(counts)}, and {rarest} of {classes[rarest]}, so "
            f"{'it' if len(frequent) == 1 else 'each'} may be a class; --missing "
            f"{shlex.quote(','.join(frequent))} says what stands for a missing label, "
            f"and --missing '' that all are classes {in_python('missing')}"
        )
    return np.where(is_missing, "", texts), dict(written)


def classes_of_texts(
    source: str, texts: np.ndarray, at: Callable[[int], str], *, many: bool
) -> Classes:
    """The class of each node from the words or numbers of a table.

    Args:
        source: The file, for errors and notes.
        texts: The label of each node; "" where it is unknown.
        at: Returns file and row, for errors.
        many: Whether there may be many classes of few nodes each.

    Returns:
        The classes, -1 where there is none; the label of each class, None where the
        labels are the numbers from 0; and notes on them.

    Raises:
        UserError: There is no label, or labels are not classes.
    """
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
            raise UserError(f"{at(row)}: label is {text!r}; {REGRESSION}")
    if are_numbers:
        matches = [_INTEGER.fullmatch(text) for text in texts]
        values = np.array([0 if m is None else int(m[1]) for m in matches], np.int64)
        if not many:
            _refuse_counts(source, given)
        known = texts != ""
        labels, numbers, notes = classes_of_numbers(source, values, known, many=True)
        return labels, numbers, (*notes, *_note_on_minus_one(source, values))
    names = tuple(sorted(set(given)))
    if not many and len(names) == len(given) > _MANY:
        raise UserError(
            f"{source}: each of the {len(given)} labelled nodes has a label of its own "
            f"({listed(names, 3)}); choose another column with --label "
            f"{in_python('label')}"
        )
    number = {text: at for at, text in enumerate(names)}
    labels = np.array([number.get(text, UNLABELLED) for text in texts], np.int64)
    return labels, names, _notes(source, names, Counter(given), many)


def classes_of_numbers(
    source: str, values: np.ndarray, known: np.ndarray, *, many: bool
) -> Classes:
    """The class of each node from whole numbers, like `classes_of_texts`.

    Numbers that are exactly 0, 1, ... stay as they are. Others, like years, become
    classes in their order.

    Args:
        source: The file, for notes.
        values: The number of each node.
        known: Which nodes have a label.
        many: Whether there may be many classes of few nodes each; otherwise a note.
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
    notes = _notes(source, names, by_name, many)
    is_plain = np.array_equal(different, np.arange(len(different)))
    labels = np.full(len(values), UNLABELLED, dtype=np.int64)
    labels[known] = given if is_plain else np.searchsorted(different, given)
    return labels, None if is_plain else names, notes


def _note_on_minus_one(source: str, values: np.ndarray) -> tuple[str, ...]:
    if values.min() != UNLABELLED:
        return ()
    count = counted(int((values == UNLABELLED).sum()), "node")
    return (
        f"{source}: -1 is the class of {count}; --missing -1 {in_python('missing')} "
        "says that it stands for a missing label",
    )


def unlabelled_note(source: str, count: int) -> tuple[str, ...]:
    """A note on nodes whose label is written as -1; none where there are none."""
    if not count:
        return ()
    verbs = ("has", "counts") if count == 1 else ("have", "count")
    return (
        f"{source}: {counted(count, 'node')} {verbs[0]} the label -1 and {verbs[1]} as "
        "unlabelled",
    )


def _notes(
    source: str,
    names: tuple[str, ...],
    counts: "dict[str, int] | Counter[str]",
    many: bool,
) -> tuple[str, ...]:
    notes = []
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
            f"parts; {MULTI_LABEL}"
        )
    nodes = sum(counts.values())
    if not many and len(names) > _MANY and nodes < _FEW_NODES * len(names):
        notes.append(
            f"{source}: {nodes} labelled nodes are of {len(names)} classes "
            f"({listed(names, 3)}); if these are not classes, choose another column "
            f"with --label {in_python('label')}"
        )
    return tuple(notes)


def _refuse_counts(source: str, given: list[str]) -> None:
    """Refuses many different numbers, each the label of few nodes."""
    different = {*given}
    if len(different) > _MANY and len(given) < _FEW_NODES * len(different):
        first = sorted(different, key=float)[:3]
        raise UserError(
            f"{source}: the label has {len(different)} different numbers "
            f"({', '.join(first)}, ...) on {len(given)} nodes, like a count or an age; "
            f"choose another column with --label {in_python('label')}, or insist on "
            f"classes with --many-classes {in_python('many_classes')}"
        )


def _share_parts(names: tuple[str, ...], mark: str) -> bool:
    """Whether each part of classes like `a,b` is part of another class as well."""
    several = [name for name in names if mark in name.strip()]
    if not several:
        return False
    parts = Counter(p.strip() for name in names for p in {*name.split(mark)})
    return all(parts[p.strip()] > 1 for name in several for p in name.split(mark))


def _refuse_several(texts: np.ndarray, at: Callable[[int], str]) -> None:
    """Refuses labels like `a;b`, where a part occurs in different labels, and lists."""
    for row, text in enumerate(texts):
        if text[:1] in _LISTS and text[-1:] == _LISTS[text[0]]:
            raise UserError(f"{at(row)}: label is {text!r}; {MULTI_LABEL}")
    for mark in ";|":
        if not any(mark in text for text in texts):
            continue
        different = set(texts.tolist()) - {""}
        parts = Counter(p.strip() for text in different for p in set(text.split(mark)))
        if max(parts.values()) > 1:
            row = next(row for row, text in enumerate(texts) if mark in text)
            raise UserError(f"{at(row)}: label is {texts[row]!r}; {MULTI_LABEL}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
