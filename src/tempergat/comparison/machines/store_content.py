"""Everything that a store holds."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from tempergat.comparison.storage.store import Group, Store
from tempergat.training import Run


class RunKey(NamedTuple):
    """What identifies a run."""

    fingerprint: str
    method: str
    numerics: int
    device: str
    config_hash: str
    seed: int


@dataclass(frozen=True)
class StoreContent:
    """Everything that a store holds.

    Attributes:
        path: Its file.
        groups: Its groups, in the order they were cut.
        runs: Its finished runs.
        names: The graph that has its tables under each name.
    """

    path: Path
    groups: list[Group] = field(default_factory=list)
    runs: dict[RunKey, Run] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a store; every row is checked.

        Raises:
            UserError: There is no such store, or it is damaged.
        """
        with Store(path, read_only=True) as store:
            runs = {
                RunKey(
                    run.fingerprint,
                    run.method,
                    run.numerics,
                    run.device,
                    run.config_hash,
                    run.seed,
                ): run
                for run in store.runs()
            }
            return cls(path, store.all_groups(), runs, store.all_names())

    @property
    def planned(self) -> set[RunKey]:
        """Its finished runs, and those that its groups hold."""
        return {*self.runs, *(key for g in self.groups for key in keys_of(g))}


def keys_of(group: Group) -> Iterator[RunKey]:
    """What identifies each run of a group."""
    for config_hash in group.config_hashes:
        for seed in group.seeds:
            yield RunKey(
                group.fingerprint,
                group.method,
                group.numerics,
                group.device,
                config_hash,
                seed,
            )
