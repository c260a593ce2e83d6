"""The store can be read after a migration is killed at any moment."""

import random
import shutil
import sqlite3
import time
from multiprocessing import get_context
from pathlib import Path

import pytest

from tempergat.study.engine import Store
from tests.support.store_users import open_store

OLD = Path(__file__).parents[1] / "fixtures" / "v0_1_0" / "store.sqlite"


def _old_version(path: Path) -> bool:
    connection = sqlite3.connect(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*) FROM runs").fetchone() == (16,)
    connection.close()
    return bool(version == 1)


@pytest.mark.slow
def test_a_store_killed_while_it_is_migrated_is_old_or_new(tmp_path: Path) -> None:
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.store_users"])
    generator = random.Random(21)
    shutil.copy(OLD, tmp_path / "whole.sqlite")
    with Store(tmp_path / "whole.sqlite") as store:
        expected = store.runs()
    killed_before_and_after = set()
    for attempt in range(100):
        path = tmp_path / f"store-{attempt}.sqlite"
        shutil.copy(OLD, path)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=open_store, args=(path, sender))
        process.start()
        receiver.recv()
        time.sleep(generator.uniform(0.0, 0.2))
        process.kill()
        process.join()
        killed_before_and_after.add(_old_version(path))
        with Store(path) as store:
            assert store.runs() == expected
    assert killed_before_and_after == {True, False}
