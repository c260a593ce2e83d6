"""Locks on files, between processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tempergat.base import FileLock, GroupLocks, UserError

HOLD = """
import sys
from pathlib import Path
from tempergat.base import FileLock, GroupLocks
path = Path(sys.argv[2])
if sys.argv[1] == "file":
    lock = FileLock(path, "")
    lock.__enter__()
else:
    lock = GroupLocks(path)
    assert lock.acquire(3, wait=False)
print("held", flush=True)
sys.stdin.readline()
"""


def start(kind: str, path: Path) -> "subprocess.Popen[str]":
    """A process that says when it holds a lock, and ends when it is killed."""
    command = [sys.executable, "-c", HOLD, kind, str(path)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def hold(kind: str, path: Path) -> "subprocess.Popen[str]":
    """A process that holds a lock."""
    holder = start(kind, path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_group_is_locked_by_one_process_until_it_is_killed(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    with hold("group", store) as holder, GroupLocks(store) as locks:
        assert not locks.acquire(3, wait=False)
        assert locks.acquire(4, wait=False)
        holder.kill()
        holder.wait()
        assert locks.acquire(3, wait=False)


def test_a_released_group_can_be_acquired_by_another_process(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    with GroupLocks(store) as locks:
        assert locks.acquire(3, wait=False)
        locks.release(3)
        with hold("group", store) as holder:
            assert not locks.acquire(3, wait=False)
            holder.kill()


def test_a_file_lock_waits_for_the_process_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / ".lock"
    with FileLock(path, ""):
        waiting = start("file", path)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=1)
    with waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "held\n"
        waiting.kill()


def test_a_lock_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / ".lock"
    with pytest.raises(UserError, match=r"file/.lock .*; move the data root"):
        FileLock(path, "move the data root")
    with pytest.raises(UserError, match="--out"):
        GroupLocks(tmp_path / "file" / "store.sqlite")


def test_a_lock_file_that_is_a_link_is_not_made_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"lock \(it is a link\); remove it"):
        FileLock(tmp_path / "lock", "remove it")
    assert not (tmp_path / "elsewhere").exists()
