"""What exists at a path decides how it is written; JSON has no NaN."""

import math
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tempergat.base import (
    UserError,
    replace_non_finite,
    write_bytes,
    write_into,
    write_text,
)

WRITE = (
    "import sys; from pathlib import Path; from tempergat.base import write_text; "
    "print('first'); write_text(Path(sys.argv[1]), 'content\\n'); print('last')"
)


def run_and_capture(path: str, stdout: int | None = subprocess.PIPE) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", WRITE, path], stdout=stdout, text=True, check=True
    )
    return ended.stdout or ""


def test_a_fifo_is_written_into(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    content = b"x" * 300_000
    write_bytes(fifo, content)
    reader.join(10.0)
    assert read == [content]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.write_bytes(b"")
    except OSError:
        pytest.skip("only root may make a device node here")
    write_bytes(device, b"content")
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.parametrize("path", ["-", "/dev/stdout", "/proc/self/fd/1"])
def test_standard_output_may_be_given_as_the_file(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_and_capture(path) == "first\ncontent\nlast\n"
    with open(tmp_path / "redirected", "w") as file:
        run_and_capture(path, file.fileno())
    assert (tmp_path / "redirected").read_text() == "first\ncontent\nlast\n"
    assert [path.name for path in tmp_path.iterdir()] == ["redirected"]


@pytest.mark.parametrize("exists", [True, False])
def test_the_target_of_a_link_is_replaced_and_the_link_stays(
    tmp_path: Path, exists: bool
) -> None:
    target = tmp_path / "elsewhere" / "labels.csv"
    target.parent.mkdir()
    if exists:
        target.write_text("old")
        other = tmp_path / "hard link"
        os.link(target, other)
    link = tmp_path / "link"
    link.symlink_to(Path("elsewhere") / "labels.csv")
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    # Replaced, not overwritten: a reader of the old file keeps it whole.
    assert not exists or other.read_text() == "old"


def test_nothing_planted_under_a_name_of_ours_is_written_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "graph.csv")
    path = write_into(tmp_path, "graph.csv", "table")
    assert path.is_file()
    assert path.read_text() == "table"
    with pytest.raises(ValueError, match="not the name of a file"):
        write_into(tmp_path / "folder", "../graph.csv", "table")


def test_a_planted_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    planted = tmp_path / "graph.csv"
    planted.symlink_to(victim)
    write_into(tmp_path, "graph.csv", "table")
    assert victim.read_text() == "precious"
    assert not planted.is_symlink()
    assert planted.read_text() == "table"


@pytest.mark.parametrize(
    ("target", "message"), [("link", "leads to itself"), (".", "is a folder")]
)
def test_a_link_to_itself_or_a_folder_is_refused(
    tmp_path: Path, target: str, message: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / target)
    with pytest.raises(UserError, match=message):
        write_text(link, "x")


@pytest.mark.parametrize(
    ("replacement", "nan", "low"), [((), None, None), ((str,), "nan", "-inf")]
)
def test_non_finite_numbers_become_null_or_what_is_chosen(
    replacement: tuple[type[str], ...], nan: str | None, low: str | None
) -> None:
    values = {"t": [1.0, math.nan], "deep": {"low": (-math.inf, 2)}, "name": "nan"}
    expected = {"t": [1.0, nan], "deep": {"low": [low, 2]}, "name": "nan"}
    assert replace_non_finite(values, *replacement) == expected
