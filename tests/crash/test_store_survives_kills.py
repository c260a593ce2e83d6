"""No run is lost or doubled when a writing process is killed at any moment."""

import random
import sqlite3
import time
from multiprocessing import Pipe, get_context
from pathlib import Path

import pytest

from tempergat.comparison.storage.store import Store
from tests.support.group_writer import METHODS, SEEDS, groups_of, write_groups


def _kill_at_random(path: Path, kills: int, generator: random.Random) -> int:
    """Write with processes killed at random until all is written; count the kills."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.group_writer"])
    acknowledged: set[tuple[str, tuple[int, ...]]] = set()
    done = 0
    while True:
        receiver, sender = context.Pipe(duplex=False)
        writer = context.Process(target=write_groups, args=(path, sender))
        writer.start()
        sender.close()
        if done < kills:
            time.sleep(generator.uniform(0.0, 0.08))
            writer.kill()
        writer.join()
        while receiver.poll():
            try:
                acknowledged.add(receiver.recv())
            except EOFError:
                break
        receiver.close()
        _check(path, acknowledged)
        if writer.exitcode == 0:
            return done
        assert writer.exitcode == -9
        done += 1


def _check(path: Path, acknowledged: set[tuple[str, tuple[int, ...]]]) -> None:
    with Store(path) as store:
        kept = {(run.method, run.seed) for run in store.runs()}
        for method, seeds in acknowledged:
            assert {(method, seed) for seed in seeds} <= kept
        for method in METHODS:
            for group in groups_of(store, method):
                present = {(method, seed) for seed in group.seeds} & kept
                assert len(present) in (0, len(group.seeds)), "a torn group"


def _assert_equal_to_an_uninterrupted_store(path: Path, folder: Path) -> None:
    whole = folder / "whole.sqlite"
    receiver, sender = Pipe(duplex=False)
    write_groups(whole, sender)
    receiver.close()
    sender.close()
    with Store(path) as interrupted, Store(whole) as uninterrupted:
        assert interrupted.runs() == uninterrupted.runs()
        assert len(interrupted.runs()) == SEEDS * len(METHODS)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def _assert_kills_lose_nothing(folder: Path, kills: int) -> None:
    generator = random.Random(20)
    total = 0
    attempt = 0
    while total < kills:
        path = folder / f"store-{attempt}.sqlite"
        total += _kill_at_random(path, kills - total, generator)
        _assert_equal_to_an_uninterrupted_store(path, folder)
        attempt += 1


def test_thirty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    _assert_kills_lose_nothing(tmp_path, 30)


@pytest.mark.slow
def test_a_hundred_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    _assert_kills_lose_nothing(tmp_path, 100)
