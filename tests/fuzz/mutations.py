"""Seeded mutations of bytes, texts and nested values."""

import copy
import math
from typing import Any

import numpy as np

# What replaces a value in a text.
WORDS = (
    "",
    " ",
    "0",
    "-1",
    "1.5",
    "1,5",
    "1e999",
    "nan",
    "inf",
    "null",
    "None",
    "NA",
    "?",
    "true",
    "99999999999999999999",
    "0x1f",
    "[]",
    "{}",
    "[1, 2",
    "a: b: c",
    "=1+1",
    "<script>",
    "../x",
    "\x00",
    "\x1b[2J",
    "\u202ecba",
    "\r\n",
    "\ufeff",
    "é|`$",
    "w" * 3000,
)
# What replaces a value in nested values.
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    10**30,
    0.5,
    -0.0,
    math.nan,
    math.inf,
    "",
    "gat",
    "\x1b]0;title\x07",
    "w" * 3000,
    [],
    {},
    [[]],
    {"": None},
    [None] * 5,
    list(range(300)),
)


def mutated_bytes(content: bytes, rng: np.random.Generator, most: int = 4) -> bytes:
    """Content with one to `most` bit flips, cuts, removals, repeats or overwrites."""
    found = bytearray(content)
    for _ in range(int(rng.integers(1, most + 1))):
        if not found:
            break
        at = int(rng.integers(len(found)))
        length = int(rng.integers(1, 64))
        match int(rng.integers(5)):
            case 0:
                for _ in range(int(rng.integers(1, 9))):
                    found[int(rng.integers(len(found)))] ^= 1 << int(rng.integers(8))
            case 1:
                del found[at:]
            case 2:
                del found[at : at + length]
            case 3:
                found[at:at] = found[at : at + length]
            case _:
                found[at : at + length] = rng.bytes(length)
    return bytes(found)


def mutated_text(
    text: str, rng: np.random.Generator, separators: str, most: int = 4
) -> str:
    """Text with one to `most` of its values replaced, removed, repeated or swapped.

    Args:
        text: The text.
        rng: The generator.
        separators: Letters between values, like `",\n"` in a CSV.
        most: Most mutations.
    """
    parts = [""]
    for letter in text:
        if letter in separators:
            parts += [letter, ""]
        else:
            parts[-1] += letter
    for _ in range(int(rng.integers(1, most + 1))):
        at, other = (2 * int(rng.integers((len(parts) + 1) // 2)) for _ in range(2))
        match int(rng.integers(4)):
            case 0 | 1:
                parts[at] = WORDS[int(rng.integers(len(WORDS)))]
            case 2:
                parts[at], parts[other] = parts[other], parts[at]
            case _:
                parts[at + 1 : at + 1] = parts[at + 1 : at + 3]
    return "".join(parts)


def mutated_value(value: Any, rng: np.random.Generator, most: int = 3) -> Any:
    """A copy of nested dicts and lists with one to `most` values changed.

    A value is replaced or removed, or a key is added or renamed.
    """
    holder = {"": copy.deepcopy(value)}
    for _ in range(int(rng.integers(1, most + 1))):
        places = list(_places(holder))
        inside, key = places[int(rng.integers(len(places)))]
        new = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
        choice = int(rng.integers(5))
        if inside is holder and choice:
            continue
        if choice == 3:
            del inside[key]
        elif choice == 4 and isinstance(inside, dict):
            inside[WORDS[int(rng.integers(len(WORDS)))]] = new
        else:
            inside[key] = new
    return holder[""]


def _places(value: Any) -> Any:
    """Every dict or list inside a value, with each of its keys or positions."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            yield value, key
            yield from _places(inner)
