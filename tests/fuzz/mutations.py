"""Seeded mutations of bytes, texts and nested values."""

import copy
import math
from collections.abc import Sequence
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
DTYPES = (
    "?", "i1", "u1", ">i2", "i4", "u4", "i8", "u8", "f2", "f4", ">f8", "longdouble",
    "c8", "U3", "S3", "O", "M8[s]", "V4",
)  # fmt: skip


def pick(rng: np.random.Generator, choices: Sequence[Any]) -> Any:
    """One of the choices, itself and not a copy."""
    return choices[int(rng.integers(len(choices)))]


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
                parts[at] = pick(rng, WORDS)
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
        inside, key = pick(rng, places)
        new = copy.deepcopy(pick(rng, VALUES))
        choice = int(rng.integers(5))
        if inside is holder and choice:
            continue
        if choice == 3:
            del inside[key]
        elif choice == 4 and isinstance(inside, dict):
            inside[pick(rng, WORDS)] = new
        else:
            inside[key] = new
    return holder[""]


def random_array(rng: np.random.Generator, count: int) -> np.ndarray:
    """An array of any type and of a shape that may fit a graph of `count` nodes."""
    sizes = [0, 1, 2, 3, count, 2 * count]
    shape = tuple(int(rng.choice(sizes)) for _ in range(int(rng.integers(4))))
    dtype = np.dtype(pick(rng, DTYPES))
    values = rng.integers(-1, 4, size=shape).astype(float)
    values[rng.random(shape) < 0.05] = rng.choice([np.nan, np.inf, 1e300, 0.5])
    if dtype.kind in "iuM":
        values = np.nan_to_num(values, nan=0, posinf=9, neginf=-9).clip(-9, 120)
    with np.errstate(all="ignore"):
        return values.astype(dtype) if dtype.kind != "V" else np.zeros(shape, dtype)


def mutate_arrays(
    arrays: dict[str, Any],
    rng: np.random.Generator,
    count: int,
    names: Sequence[str],
    numbers: Sequence[float],
) -> None:
    """Replaces, removes, adds, casts, cuts, turns or changes one to three arrays.

    Args:
        arrays: The arrays of a graph by name.
        rng: The generator.
        count: Its number of nodes.
        names: Names of arrays that are added, or take the place of others.
        numbers: What a number of an array is changed to.
    """
    for _ in range(int(rng.integers(1, 4))):
        if not arrays:
            return
        name = pick(rng, list(arrays))
        array = np.asarray(arrays[name])
        match int(rng.integers(8)):
            case 0:
                arrays[name] = random_array(rng, count)
            case 1:
                del arrays[name]
            case 2:
                arrays[pick(rng, names)] = random_array(rng, count)
            case 3 if array.dtype.kind in "iufb":
                with np.errstate(all="ignore"):
                    arrays[name] = array.astype(pick(rng, DTYPES))
            case 4 if array.ndim:
                arrays[name] = array[: int(rng.integers(count + 1))]
            case 5:
                arrays[name] = np.asfortranarray(array.T if rng.integers(2) else array)
            case 6:
                arrays[pick(rng, names)] = array
            case _ if array.size and array.dtype.kind in "iufb":
                # As float64, so that every number fits; labels are often stored so.
                wide = array.astype(np.float64 if rng.integers(2) else array.dtype)
                at = int(rng.integers(array.size))
                with np.errstate(all="ignore"):
                    wide.flat[at] = np.array(pick(rng, numbers)).astype(wide.dtype)
                arrays[name] = wide


def _places(value: Any) -> Any:
    """Every dict or list inside a value, with each of its keys or positions."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            yield value, key
            yield from _places(inner)
