"""A process that writes groups of runs until all are written, or it is killed."""

from multiprocessing.connection import Connection
from pathlib import Path

from tempergat.comparison.storage.rows import Group
from tempergat.comparison.storage.store import Store
from tempergat.training import Run
from tests.support.made_up_runs import run

METHODS = ("gat", "gatv2", "temp_gated")
SEEDS = 300
GROUP_SIZE = 4


def groups_of(store: Store, method: str) -> list[Group]:
    return store.groups(
        "print-of-cora", method, run().config_hash, range(SEEDS), GROUP_SIZE
    )


def runs_of(group: Group) -> list[Run]:
    return [
        run(group.method, seed, test=0.5 + seed / 1000, group_id=group.id)
        for seed in group.seeds
    ]


def write_groups(path: Path, kept: Connection) -> None:
    """Write what is pending, naming each group over `kept` once it is written."""
    with Store(path) as store:
        for method in METHODS:
            for group in store.pending(groups_of(store, method)):
                store.put_group(runs_of(group))
                kept.send((group.method, group.seeds))
