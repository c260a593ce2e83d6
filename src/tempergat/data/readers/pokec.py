"""Pokec as H2GB builds it, from SNAP's profile and relationship tables.

A user has 66 features: public, completion and age, each standardised; the first part
of the region, one-hot; and, for each of 51 free-text fields, whether it is filled in.
Links to clubs in fifteen of those fields become edges to nodes of fifteen more types.
Gender is the class. Clubs are numbered in the order of their names.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from torch_geometric.data import HeteroData

from tempergat.data.dataset import UNLABELLED
from tempergat.data.features import as_tensor
from tempergat.data.formats.errors import DamagedFile
from tempergat.data.formats.graphs import narrow, symmetrize, transpose
from tempergat.data.formats.number_tables import read_numbers, require_once

# Columns of a profile: the user, public, completion, gender, region, last login,
# registration, age, then the free-text fields.
_USER, _PUBLIC, _COMPLETION, _GENDER, _REGION, _AGE = 0, 1, 2, 3, 4, 7
_FIRST_TEXT, _NUM_TEXTS = 8, 51
CLUB_TYPES = (
    "life_style",
    "music",
    "cars",
    "politics",
    "relationships",
    "art_culture",
    "hobbies_interests",
    "science_technologies",
    "computers_internet",
    "education",
    "sport",
    "movies",
    "travelling",
    "health",
    "companies_brands",
)
# One free-text field follows the club fields.
_FIRST_CLUB = _FIRST_TEXT + _NUM_TEXTS - 1 - len(CLUB_TYPES)
_CLUB_LINK = re.compile(rb'href="/klub/([^"]+)"')
# Values that H2GB's table reader treats as missing.
_MISSING = frozenset(
    b"#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|"
    b"NaN|None|n/a|nan|null|".split(b"|")
)
# H2GB replaces an age of 0 by this one.
_USUAL_AGE = 23


def read_pokec(paths: dict[str, Path]) -> HeteroData:
    """Reads both tables; friendships get edges both ways, clubs a reverse relation."""
    profiles = paths["soc-pokec-profiles.txt.gz"]
    users = _Users()
    for row, fields in _profiles(profiles):
        users.add(profiles, row, fields)
    identifiers = np.array(users.identifiers, dtype=np.int64)
    require_once(profiles, identifiers, "user")
    order = np.argsort(identifiers)
    identifiers = identifiers[order]
    data = HeteroData()
    data["user"].num_nodes = len(order)
    data["user"].x = as_tensor(users.features()[order])
    data["user"].y = as_tensor(np.array(users.genders, dtype=np.int64)[order])
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    friendships = paths["soc-pokec-relationships.txt.gz"]
    edges = symmetrize(_friends(friendships, identifiers), len(order))
    data["user", "has_friend", "user"].edge_index = as_tensor(edges)
    for kind, clubs in zip(CLUB_TYPES, users.clubs, strict=True):
        names = sorted(clubs)
        data[kind].num_nodes = len(names)
        members = [position[clubs[name]] for name in names]
        source = np.concatenate([*members, np.empty(0, np.int64)])
        target = np.repeat(np.arange(len(names)), [len(part) for part in members])
        ends = np.stack([source, target])
        sizes = (len(order), len(names))
        forward, reverse = narrow(ends, max(sizes)), transpose(ends, *sizes)
        data["user", "lists", kind].edge_index = as_tensor(forward)
        data[kind, "rev_lists", "user"].edge_index = as_tensor(reverse)
    return data


class _Users:
    """The columns of the profiles that are kept, gathered row by row."""

    def __init__(self) -> None:
        self.identifiers: list[int] = []
        self.genders: list[int] = []
        self.numbers: list[tuple[float, float, float]] = []
        self.regions: list[bytes] = []
        self.filled = bytearray()
        self.clubs: list[dict[bytes, list[int]]] = [{} for _ in CLUB_TYPES]

    def add(self, path: Path, row: int, fields: list[bytes]) -> None:
        try:
            self.identifiers.append(int(fields[_USER]))
            self.genders.append(int(_number(fields[_GENDER], UNLABELLED)))
            age = _number(fields[_AGE], np.nan)
            self.numbers.append(
                (
                    _number(fields[_PUBLIC], 0.0),
                    _number(fields[_COMPLETION], 0.0),
                    _USUAL_AGE if age == 0 else float(np.nan_to_num(age)),
                )
            )
        except (ValueError, IndexError) as error:
            raise DamagedFile(
                f"{path}, row {row + 1}", f"is not a profile ({error})"
            ) from error
        region = fields[_REGION]
        self.regions.append(b"nan" if region in _MISSING else region.split(b",")[0])
        texts = fields[_FIRST_TEXT : _FIRST_TEXT + _NUM_TEXTS]
        self.filled += bytes(text not in _MISSING for text in texts)
        self.filled += bytes(_NUM_TEXTS - len(texts))
        for clubs, text in zip(self.clubs, fields[_FIRST_CLUB:], strict=False):
            if b"/klub/" in text:
                for name in _CLUB_LINK.findall(text):
                    clubs.setdefault(name, []).append(row)

    def features(self) -> np.ndarray:
        numbers = np.array(self.numbers, dtype=np.float32).reshape(-1, 3)
        deviation = numbers.std(axis=0, dtype=np.float64) + 1e-9
        numbers = (
            (numbers - numbers.mean(axis=0, dtype=np.float64)) / deviation
        ).astype(np.float32)
        names = {name: column for column, name in enumerate(sorted(set(self.regions)))}
        regions = np.zeros((len(self.regions), len(names)), dtype=np.float32)
        columns = np.fromiter((names[r] for r in self.regions), np.int64)
        regions[np.arange(len(regions)), columns] = 1
        filled = np.frombuffer(self.filled, dtype=np.uint8).reshape(-1, _NUM_TEXTS)
        return np.concatenate([numbers, regions, filled], axis=1, dtype=np.float32)


def _number(field: bytes, missing: float) -> float:
    return missing if field in _MISSING else float(field)


def _profiles(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    try:
        with gzip.open(path) as stream:
            for row, line in enumerate(stream):
                yield row, line.rstrip(b"\r\n").split(b"\t")
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFile(path, f"is a damaged gzip file ({error})") from error


def _friends(path: Path, identifiers: np.ndarray) -> np.ndarray:
    named = np.ascontiguousarray(read_numbers(path, np.int64, 2).T)
    ends = np.searchsorted(identifiers, named)
    known = ends < len(identifiers)
    known[known] = identifiers[ends[known]] == named[known]
    if not known.all():
        row = int(np.flatnonzero(~known.all(axis=0))[0])
        raise DamagedFile(
            f"{path}, row {row + 1}",
            "names a user without a profile",
            both=True,
        )
    return ends
