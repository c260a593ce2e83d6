"""Processes that use one store at once; small, so that many start quickly."""

from multiprocessing.synchronize import Barrier
from pathlib import Path

from tempergat.comparison.storage.store import Store
from tests.support.made_up_runs import run


def write_seeds(path: Path, first: int, last: int, start: Barrier) -> None:
    start.wait()
    with Store(path) as store:
        for seed in range(first, last):
            store.put_group([run(seed=seed), run("gatv2", seed)])


def cut_groups(path: Path, size: int, start: Barrier) -> None:
    start.wait()
    with Store(path) as store:
        for last in range(1, 30):
            store.groups("print", "gat", "hash", range(last), size)
