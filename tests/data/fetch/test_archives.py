"""Archives and pickles that try to do more than hold data."""

import collections
import os
import pickle
import pickletools
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from tempergat.base.errors import UserError
from tempergat.data.fetch.download import unpack
from tempergat.data.formats.pickles import load_pickle


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "others",
    [{}, {"README.md": b""}, {"__MACOSX/top/._y": b"0", ".DS_Store": b""}],
    ids=lambda others: "+".join(others),
)
@pytest.mark.parametrize("top", ["top/", ""])
def test_top_folder_is_dropped_and_only_named_members_are_written(
    top: str, others: dict[str, bytes], tmp_path: Path
) -> None:
    members = {f"{top}raw/x": b"1", f"{top}y": b"2", f"{top}other": b"3"}
    archive = write_zip(tmp_path / "a.zip", {**others, **members})
    unpack(archive, tmp_path / "out", ("raw/x", "y"))
    found = [p for p in (tmp_path / "out").rglob("*") if p.is_file()]
    names = {str(path.relative_to(tmp_path / "out")) for path in found}
    assert names == {"raw/x", "y"}
    assert (tmp_path / "out/raw/x").read_bytes() == b"1"


@pytest.mark.parametrize(
    "name", ["../evil", "top/../../evil", "/evil", "top/..\\evil", "top/a/../../../e"]
)
def test_name_outside_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"top/x": b"1", name: b"evil"})
    with pytest.raises(UserError, match="outside"):
        unpack(archive, tmp_path / "out", ("x",))
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [archive]


def test_symbolic_link_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        link = zipfile.ZipInfo("x")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(UserError, match="outside"):
        unpack(tmp_path / "a.zip", tmp_path / "out", ("x",))


def test_archive_without_a_member_leaves_nothing(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"top/x": b"1"})
    with pytest.raises(UserError, match=r"a.zip has no y"):
        unpack(archive, tmp_path / "out", ("x", "y"))
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("method", ["DEFLATED", "STORED", "BZIP2", "LZMA"])
def test_damage_inside_an_archive_is_caught(method: str, tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", getattr(zipfile, f"ZIP_{method}")) as opened:
        opened.writestr("top/x", os.urandom(5000))
    damaged = bytearray(archive.read_bytes())
    damaged[2000] ^= 0xFF
    archive.write_bytes(damaged)
    with pytest.raises(UserError, match="damaged"):
        unpack(archive, tmp_path / "out", ("x",))
    assert list((tmp_path / "out").iterdir()) == []


def test_member_with_a_negative_offset_in_an_archive_is_caught(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"top/x": b"1"})
    damaged = bytearray(archive.read_bytes())
    # Where the directory begins; it and the members are taken to lie that far before.
    damaged[-6] += 5
    archive.write_bytes(damaged)
    with pytest.raises(UserError, match="damaged"):
        unpack(archive, tmp_path / "out", ("x",))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(cut=st.integers(0, 300))
def test_truncated_archive_is_caught_anywhere(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    archive = write_zip(folder / "a.zip", {"top/x": bytes(range(200))})
    whole = archive.read_bytes()
    archive.write_bytes(whole[: min(cut, len(whole) - 1)])
    with pytest.raises(UserError, match=r"a\.zip"):
        unpack(archive, folder / "out", ("x",))


class Shell:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch hacked",)


class Builtin:
    def __reduce__(self) -> tuple[object, ...]:
        return eval, ("1 + 1",)


@pytest.mark.parametrize("hostile", [Shell(), Builtin(), [1, {"a": Shell()}]])
def test_hostile_pickle_runs_nothing_and_is_named(
    hostile: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pickle").write_bytes(pickle.dumps(hostile))
    with pytest.raises(UserError, match=r"x.pickle asks to load .*(system|eval)"):
        load_pickle(tmp_path / "x.pickle")
    assert not (tmp_path / "hacked").exists()


def test_plain_data_survives_a_pickle(tmp_path: Path) -> None:
    path = tmp_path / "x.pickle"
    value = collections.defaultdict(list, {1: [2, 3]})
    path.write_bytes(pickle.dumps(value, protocol=2))
    assert load_pickle(path) == value
    matrix = scipy.sparse.random(5, 7, 0.3, format="csr", random_state=0)
    path.write_bytes(pickle.dumps(matrix))
    assert np.array_equal(load_pickle(path).toarray(), matrix.toarray())


def test_sparse_matrix_with_indices_outside_it_is_refused(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    matrix.indices[1] = 10**6
    (tmp_path / "x.pickle").write_bytes(pickle.dumps(matrix))
    with pytest.raises(UserError, match=r"x\.pickle"):
        load_pickle(tmp_path / "x.pickle")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_damaged_pickle_is_a_users_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    value = {"a": [1, 2.5, "x"], "b": np.arange(4)}
    # Without numbers of memories that nothing uses: a large one costs seconds.
    whole = pickletools.optimize(pickle.dumps(value, protocol=2))
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(whole) - 1))
        damaged[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    path = tmp_path_factory.mktemp("pickle") / "x.pickle"
    path.write_bytes(damaged[:cut])
    # What is left may still be a pickle; anything else must be a user error.
    message = path.name
    try:
        load_pickle(path)
    except UserError as error:
        message = str(error)
    assert path.name in message
