"""The part of a sweep that one of several machines trains."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tempergat.base import UserError, counted
from tempergat.comparison.storage.rows import Group
from tempergat.training import Run


@dataclass(frozen=True)
class Shard:
    """One of several parts of a sweep, which need nothing from one another.

    The groups of a sweep are dealt to its shards in turn. Each shard has its own store.

    Attributes:
        number: Which one this is, from 1.
        of: How many there are.

    Raises:
        UserError: There is no such shard.
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        for value in (self.number, self.of):
            if not isinstance(value, int) or isinstance(value, bool):
                raise UserError(f"a shard is given by two whole numbers, not {value!r}")
        if not 1 <= self.number <= self.of:
            raise UserError(
                f"there is no shard {self.number}/{self.of}; shards are counted from "
                f"1: give 1/{max(self.of, 1)} to {max(self.of, 1)}/{max(self.of, 1)}"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard of a text like `1/3`.

        Raises:
            UserError: The text is something else, or there is no such shard.
        """
        number, slash, of = text.partition("/")
        digits = all(part.isascii() and part.isdigit() for part in (number, of))
        # Python refuses to read numbers of thousands of digits.
        if not slash or not digits or len(text) > 20:
            raise UserError(
                f"the shard is {text[:40]!r}; give its number and how many there are, "
                "like 1/3"
            )
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def takes(self, position: int) -> bool:
        """Whether it trains the group at this position in the whole sweep, from 0."""
        return position % self.of == self.number - 1


@dataclass(frozen=True, repr=False)
class FinishedShard:
    """The runs that one shard of a comparison has trained; there is no table yet.

    Attributes:
        shard: Which of how many.
        runs: Its runs, failed ones included.
        total_runs: The runs of all shards together.
        store: The file that keeps its runs.
    """

    shard: Shard
    runs: list[Run]
    total_runs: int
    store: Path

    @property
    def failed(self) -> int:
        """How many of its runs failed."""
        return sum(run.status == "failed" for run in self.runs)

    @property
    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "shard": self.shard.number,
            "shards": self.shard.of,
            "runs": len(self.runs),
            "failed": self.failed,
            "total_runs": self.total_runs,
            "store": str(self.store),
        }

    def __repr__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"shard {self.shard}: {len(self.runs)} of {counted(self.total_runs, 'run')}"
            f"{failed}, in {self.store}; the table comes after the shards are merged: "
            "tempergat merge STORE... --out FOLDER"
        )


def refuse_shard(
    shard: Shard | None, *, tune: int | None, ray: str | None, out: str | Path | None
) -> None:
    """Refuse a shard that cannot be trained or kept, before any work; never None.

    Raises:
        UserError: Settings are searched, a Ray cluster trains, or no folder is given.
    """
    if shard is None:
        return
    if tune is not None:
        raise UserError(
            f"shard {shard} cannot be tuned: what a search tries depends on the scores "
            "of all runs before; give tune or shard, or use a Ray cluster"
        )
    if out is None:
        raise UserError(
            f"shard {shard} would keep nothing; give a folder for its runs as out"
        )
    if ray is not None:
        raise UserError("a shard needs no Ray cluster; give shard or ray, not both")


def divide_groups(
    groups: Sequence[Group], mine: Collection[int], wanted: Collection[int]
) -> tuple[list[Group], set[int]]:
    """The groups that a shard trains, and the seeds that it is asked for.

    A group of the store may differ from the one that a new store would have: it was
    cut in an earlier sweep, or did not fit memory. It belongs to the shard that has
    the first of its runs.

    Args:
        groups: The groups of one configuration in the store.
        mine: The seeds that the shard has where the store is new.
        wanted: The seeds that all shards together are asked for.
    """
    taken, asked = [], set(mine)
    for group in groups:
        seeds = [seed for seed in group.seeds if seed in wanted]
        if seeds[0] in mine:
            taken.append(group)
            asked.update(seeds)
        else:
            asked.difference_update(seeds)
    return taken, asked
