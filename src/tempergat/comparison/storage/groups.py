"""What identifies a run, and the groups of runs that train together, as rows too."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from tempergat.comparison.storage.rows import Count, Text
from tempergat.comparison.storage.schema import check_row, with_checksum
from tempergat.training import NUMERICS, Run, canonical_json

# Fingerprint, method, numerics and device: what the runs of a group share.
Study = tuple[str, str, int, str]
_HASHES, _SEEDS = TypeAdapter(tuple[Text, ...]), TypeAdapter(tuple[Count, ...])


class Origin(NamedTuple):
    """Where runs were made; runs of different origins are not compared."""

    device: str
    numerics: int

    def __str__(self) -> str:
        if self.numerics == NUMERICS:
            return self.device
        return f"{self.device} with numerics {self.numerics}"


class RunKey(NamedTuple):
    """What identifies a run."""

    fingerprint: str
    method: str
    numerics: int
    device: str
    config_hash: str
    seed: int

    @classmethod
    def of(cls, run: Run) -> "RunKey":
        """The key of a run."""
        return cls(*(getattr(run, name) for name in cls._fields))


@dataclass(frozen=True)
class Group:
    """Runs of one method on one dataset that train together.

    It holds every seed under every configuration. There is one configuration; only
    groups that earlier versions trained may have several.
    """

    id: int
    fingerprint: str
    method: str
    config_hashes: tuple[str, ...]
    seeds: tuple[int, ...]
    device: str = "cpu"
    numerics: int = NUMERICS

    @property
    def study(self) -> Study:
        """Fingerprint, method, numerics and device: what its runs share."""
        return (self.fingerprint, self.method, self.numerics, self.device)

    @cached_property
    def keys(self) -> frozenset[RunKey]:
        """What identifies each of its runs."""
        return frozenset(
            RunKey(*self.study, config_hash, seed)
            for config_hash in self.config_hashes
            for seed in self.seeds
        )


def even_groups(seeds: Sequence[int], most: int) -> list[Sequence[int]]:
    """Seeds cut into as few groups of at most `most` as possible, of about one size."""
    count = -(-len(seeds) // most)
    cuts = [-(-len(seeds) * number // max(count, 1)) for number in range(count + 1)]
    return [seeds[a:b] for a, b in pairwise(cuts)]


def group_row(
    study: Study, config_hashes: Sequence[str], seeds: Sequence[int]
) -> tuple[Any, ...]:
    """The columns of a group's row but for its number."""
    lists = (canonical_json(list(config_hashes)), canonical_json(list(seeds)))
    return with_checksum((*study, *lists))


def group_of(row: Sequence[Any]) -> Group:
    """The group of a row.

    Raises:
        ValueError: The row does not match its checksum, or holds no group.
    """
    id_, fingerprint, method, numerics, device, hashes, seeds, _ = row
    check_row(row[1:], f"of group {id_}")
    try:
        keys, numbers = _HASHES.validate_json(hashes), _SEEDS.validate_json(seeds)
    except ValidationError as error:
        raise ValueError(f"the row of group {id_} was altered") from error
    if not keys or not numbers or len({*keys, *numbers}) < len(keys) + len(numbers):
        raise ValueError("a list is empty or holds a value twice")
    return Group(id_, fingerprint, method, keys, numbers, device, numerics)
