"""Damaged user graphs: each one either loads or gives a one-line error."""

import io
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from tempergat.base.errors import UserError
from tempergat.data import load

NODES = b"id,f1,f2,label,split\na,1,2,0,train\nb,0,1,1,val\nc,3,4,0,test\nd,1,1,1,\n"
EDGES = b"source,target\na,b\nb,c\nc,d\nd,a\n"

bounded = settings(
    max_examples=80,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def saved_npz() -> bytes:
    stream = io.BytesIO()
    np.savez(
        stream,
        edge_index=np.array([[0, 1], [1, 2]]),
        x=np.ones((3, 2), dtype=np.float32),
        y=np.array([0, 1, 0]),
    )
    return stream.getvalue()


def saved_pt() -> bytes:
    stream = io.BytesIO()
    data = Data(
        x=torch.ones(3, 2),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        y=torch.tensor([0, 1, 0]),
    )
    torch.save(data, stream)
    return stream.getvalue()


@st.composite
def damaged(draw: st.DrawFn, whole: bytes, text: bool = False) -> bytes:
    """The content with some bytes changed, put in, taken out or cut off."""
    content = bytearray(whole)
    pieces = st.binary(min_size=1, max_size=3)
    if text:
        alphabet = st.sampled_from(list('abcdz0129-.,"\n\r\t e+nantrivlsp\x00\xff'))
        pieces = st.text(alphabet, min_size=1, max_size=4).map(
            lambda piece: piece.encode("latin-1")
        )
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["change", "insert", "remove", "cut"]))
        piece = draw(pieces)
        if kind == "change":
            content[place : place + len(piece)] = piece
        elif kind == "insert":
            content[place:place] = piece
        elif kind == "remove":
            del content[place : place + draw(st.integers(1, 12))]
        else:
            del content[place:]
    return bytes(content)


def assert_loads_or_names_the_path(path: Path) -> None:
    """Loads a graph that is sound, or gets one line that names the path."""
    around = path if path.is_dir() else path.parent
    before = {file: file.read_bytes() for file in around.iterdir()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            dataset = load(path)
    except UserError as error:
        message = str(error)
        if str(path) not in message or "\n" in message:
            pytest.fail(f"not one line that names the path: {message!r}")
    else:
        data = dataset.data
        assert data.edge_index.shape[0] == 2
        assert data.edge_index.numel() == 0 or int(data.edge_index.min()) >= 0
        assert data.edge_index.numel() == 0 or (
            int(data.edge_index.max()) < data.num_nodes
        )
        assert int(data.y.min()) >= -1
        assert int(data.y.max()) == dataset.num_classes - 1
        assert len(data.y) == data.num_nodes
        if "x" in data:
            assert torch.isfinite(data.x.to_dense()).all()
        masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
        assert int(masks.sum(dim=0).max()) <= 1
        assert (data.y[masks.any(dim=0)] >= 0).all()
        assert data.train_mask.any()
    assert {file: file.read_bytes() for file in around.iterdir()} == before


TABLES = {"nodes": NODES, "edges": EDGES}
# The split is a table of its own, and not a column of the nodes.
SPLIT_TABLES = {
    "nodes": b"id,f,label\na,1,0\nb,2,1\nc,3,1\n",
    "edges": b"source,target\na,b\n",
    "split": b"id,split\na,train\nb,val\nc,test\n",
}


@pytest.mark.parametrize("name", ["nodes", "edges", "split"])
@bounded
@given(data=st.data())
def test_damaged_table(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tables = SPLIT_TABLES if name == "split" else TABLES
    folder = tmp_path_factory.mktemp("graph")
    for table, content in tables.items():
        (folder / f"{table}.csv").write_bytes(content)
    content = data.draw(damaged(tables[name], text=True))
    (folder / f"{name}.csv").write_bytes(content)
    assert_loads_or_names_the_path(folder)


@pytest.mark.parametrize(("name", "whole"), [("g.npz", saved_npz), ("g.pt", saved_pt)])
@bounded
@given(data=st.data())
def test_damaged_file(
    name: str,
    whole: Callable[[], bytes],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("graph") / name
    path.write_bytes(data.draw(damaged(whole())))
    assert_loads_or_names_the_path(path)
