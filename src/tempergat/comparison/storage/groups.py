"""What identifies a run, and the groups of runs that train together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from tempergat.base import counted
from tempergat.training import NUMERICS, Run

# Fingerprint, method, numerics and device: what the runs of a group share.
Study = tuple[str, str, int, str]


class Origin(NamedTuple):
    """Where runs were made; runs of different origins are not compared."""

    device: str
    numerics: int

    def __str__(self) -> str:
        if self.numerics == NUMERICS:
            return self.device
        return f"{self.device} with numerics {self.numerics}"


def elsewhere_note(elsewhere: Mapping[Origin, int]) -> str | None:
    """A sentence about stored runs that are not used; None where there are none."""
    if not elsewhere:
        return None
    counts = " and ".join(
        f"{counted(count, 'run')} made on {origin}"
        for origin, count in elsewhere.items()
    )
    are = "are" if sum(elsewhere.values()) > 1 else "is"
    return f"{counts} {are} in the store and {are} not compared with these."


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
