"""User graphs that exist but cannot be read."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tempergat.base.errors import UserError
from tempergat.data import load

_NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so the test runs as another user."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder everybody may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def write(folder: Path, name: str) -> Path:
    """Writes a graph with a file of that name, and returns what to load."""
    edges, labels = np.array([[0], [1]]), np.array([0, 1])
    if name.endswith(".npz"):
        np.savez(folder / name, edge_index=edges, y=labels)
        return folder / name
    if name.endswith(".pt"):
        graph = Data(y=torch.tensor(labels), edge_index=torch.tensor(edges))
        torch.save(graph, folder / name)
        return folder / name
    (folder / "edges.csv").write_text("source,target\n0,1\n")
    if name.endswith(".parquet"):
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"label": labels}), folder / name)
    else:
        (folder / "nodes.csv").write_text("label\n0\n1\n")
    return folder


@pytest.mark.parametrize(
    "name", ["g.npz", "g.pt", "nodes.csv", "edges.csv", "nodes.parquet"]
)
def test_file_without_read_permission_is_an_error(name: str, folder: Path) -> None:
    graph = write(folder, name)
    assert load(graph).data.num_nodes == 2
    (folder / name).chmod(0)
    with as_nobody(), pytest.raises(UserError) as caught:
        load(graph)
    assert str(caught.value).startswith(
        f"{folder / name} cannot be read (Permission denied); make it readable"
    )


@pytest.mark.parametrize("name", ["g.npz", "nodes.csv"])
def test_folder_without_permission_is_an_error(name: str, folder: Path) -> None:
    graph = write(folder, name)
    folder.chmod(0o644)
    with (
        as_nobody(),
        pytest.raises(UserError, match=r"cannot be read \(Permission denied\)"),
    ):
        load(graph)


def test_raw_file_in_a_mirror_is_not_taken_for_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tolokers.npz").write_bytes(b"")
    (folder / "tolokers.npz").chmod(0)
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(folder))
    with as_nobody(), pytest.raises(UserError) as caught:
        load("tolokers", root=folder / "root")
    assert str(caught.value).startswith(
        f"{folder / 'tolokers.npz'} cannot be read (Permission denied)"
    )


def test_name_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be read \(File name too long\)"):
        load(tmp_path / ("n" * 300 + ".npz"))
    with pytest.raises(UserError, match="there is no dataset 'nnn"):
        load("n" * 300)
