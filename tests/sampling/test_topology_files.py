"""Grouped edges in files: opened in a moment, damage refused in one line."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tempergat import NeighborSampler, UserError
from tempergat.sampling import Topology
from tests.sampling.graphs import random_data, random_edges
from tests.sampling.sparse_files import write_sparse
from tests.support.full_disk import full_above


@pytest.fixture(name="folder")
def saved(tmp_path: Path) -> Path:
    Topology.of(random_edges(200, 200, 1500), 200).save(tmp_path / "edges")
    return tmp_path / "edges"


@pytest.mark.parametrize("ordered", [False, True])
def test_edges_are_read_as_they_were_saved(tmp_path: Path, ordered: bool) -> None:
    data = random_data()
    if ordered:
        data = data.sort(sort_by_row=False)
    topology = Topology.of(data.edge_index, 200)
    topology.save(tmp_path / "a" / "edges")
    opened = Topology.open(tmp_path / "a" / "edges")
    assert (opened.edge_id is None) == (topology.edge_id is None) == ordered
    assert opened.num_src == 200
    ours = NeighborSampler(data, [3, 3], 32, topology=opened).batch(0, 1)
    theirs = NeighborSampler(data, [3, 3], 32).batch(0, 1)
    assert torch.equal(ours.e_id, theirs.e_id)
    assert torch.equal(ours.edge_index, theirs.edge_index)


def test_saving_again_replaces_the_edges_and_leaves_nothing_else(folder: Path) -> None:
    Topology.of(random_edges(50, 50, 100), 50).save(folder)
    assert Topology.open(folder).num_edges == 100
    assert [path.name for path in folder.parent.iterdir()] == ["edges"]


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("everything")
    with pytest.raises(UserError, match="is a folder with other files"):
        Topology.of(random_edges(50, 50, 100), 50).save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "everything"
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}*"))


def test_a_full_disk_is_named_and_the_older_edges_stay(folder: Path) -> None:
    larger = Topology.of(random_edges(200, 200, 5000), 200)
    with full_above(4096), pytest.raises(UserError, match="is full; free some space"):
        larger.save(folder)
    assert Topology.open(folder).num_edges == 1500
    assert [path.name for path in folder.parent.iterdir()] == ["edges"]


def test_edges_larger_than_memory_open_in_under_a_second(folder: Path) -> None:
    nodes, edges = 10**9, 10**11
    write_sparse(folder / "pointer.npy", "<i8", (nodes + 1,), edges)
    write_sparse(folder / "source.npy", "<i4", (edges,))
    write_sparse(folder / "edge_id.npy", "<i8", (edges,))
    facts = json.loads((folder / "topology.json").read_text())
    facts |= {"num_src": nodes, "num_dst": nodes, "num_edges": edges}
    (folder / "topology.json").write_text(json.dumps(facts))
    begin = time.perf_counter()
    opened = Topology.open(folder)
    assert time.perf_counter() - begin < 1
    assert opened.num_edges == edges
    assert int(opened.source[-1]) == 0


def _cut(name: str) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-8])

    return cut


def _set(**values: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "topology.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def _array(name: str, values: Any) -> Callable[[Path], None]:
    return lambda folder: np.save(folder / name, np.asarray(values))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            _cut("source.npy"),
            r"source.npy is damaged .* bytes are fewer than its header",
        ),
        (_cut("pointer.npy"), r"pointer.npy is damaged .* bytes are fewer"),
        (_cut("topology.json"), r"topology.json is damaged: it does not say how many"),
        (_set(num_edges=1499), r"source.npy is damaged|pointer.npy is damaged"),
        (_set(num_src=-1), "topology.json is damaged"),
        (_set(arrays=["pointer", "../source"]), "topology.json is damaged"),
        (
            _set(version=9),
            r"another version of tempergat \(format 9, this one reads 1\)",
        ),
        (
            _array("source.npy", np.zeros(1500)),
            "source.npy is damaged: it holds torch.fl",
        ),
        (
            _array("source.npy", np.zeros((2, 750), int)),
            r"has shape \[2, 750\] and not",
        ),
        (_array("source.npy", [{}] * 1500), "source.npy is damaged or no .npy file"),
        (_array("pointer.npy", np.zeros(201, int)), "it does not span all edges"),
        (lambda folder: (folder / "source.npy").unlink(), "cannot read .*source.npy"),
        (
            lambda folder: (folder / "topology.json").unlink(),
            "make the folder with Topol",
        ),
    ],
)
def test_damage_is_refused_in_one_line(
    folder: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(folder)
    with pytest.raises(UserError, match=message) as caught:
        Topology.open(folder)
    assert "\n" not in str(caught.value)
