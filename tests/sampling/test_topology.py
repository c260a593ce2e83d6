"""Edges grouped by target, with and without the C++ functions, and in files."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from tempergat import NeighborSampler, UserError
from tempergat.sampling import Topology
from tempergat.sampling import topology as topologies
from tests.sampling.graphs import random_data, random_edges, write_sparse
from tests.support.full_disk import full_above


@pytest.fixture(params=["c++", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "torch":
        monkeypatch.setattr(topologies, "group_by_target", lambda *_: None)


@pytest.mark.usefixtures("way")
def test_edges_keep_their_order_within_a_target() -> None:
    edges = torch.tensor([[2, 0, 1, 0], [1, 1, 0, 1]])
    grouped = Topology.of(edges, 3)
    assert grouped.pointer.tolist() == [0, 1, 4, 4]
    assert grouped.source.tolist() == [1, 2, 0, 0]
    assert grouped.edge_id is not None
    assert grouped.edge_id.tolist() == [2, 0, 1, 3]
    assert Topology.of(edges[:, grouped.edge_id], 3).edge_id is None


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("count", [0, 1, 17, 5000])
@pytest.mark.parametrize("form", ["int64", "int32", "strided", "EdgeIndex"])
def test_every_form_of_edges_is_grouped(form: str, count: int) -> None:
    edges = random_edges(90, 40, count)
    forms: dict[str, Tensor] = {
        "int64": edges,
        "int32": edges.int(),
        "strided": edges.t().contiguous().t(),
        "EdgeIndex": EdgeIndex(edges, sparse_size=(90, 40)),
    }
    grouped = Topology.of(forms[form], (90, 40))
    order = torch.argsort(edges[1], stable=True)
    assert torch.equal(grouped.edges_of(torch.arange(count)), order)
    assert torch.equal(grouped.source.long(), edges[0][order])
    assert torch.equal(grouped.pointer.diff(), torch.bincount(edges[1], minlength=40))
    assert (grouped.pointer.dtype, grouped.source.dtype) == (torch.int64, torch.int32)
    assert (grouped.num_src, grouped.num_dst, grouped.num_edges) == (90, 40, count)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("is_sorted", [True, False])
def test_edges_are_grouped_where_they_are(is_sorted: bool) -> None:
    edges = torch.tensor([[2, 0, 1], [0, 1, 2] if is_sorted else [1, 2, 0]])
    expected = Topology.of(edges, 3)
    with torch.device("meta"):
        grouped = Topology.of(edges, 3)
    assert torch.equal(grouped.pointer, expected.pointer)
    assert torch.equal(grouped.source, expected.source)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 90], [0, 0]], "refers to source node 90, but there are 90"),
        ([[0, 0], [0, -1]], "refers to target node -1, but there are 40"),
    ],
)
def test_edges_to_nodes_that_do_not_exist_are_refused(
    edges: list[list[int]], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Topology.of(torch.tensor(edges), (90, 40))


def test_what_is_no_list_of_edges_is_refused() -> None:
    with pytest.raises(UserError, match=r"shape \[2, num_edges\], got \[3, 2\]"):
        Topology.of(torch.zeros(3, 2, dtype=torch.long), 4)
    with pytest.raises(UserError, match="int64 or int32 node numbers, got"):
        Topology.of(torch.zeros(2, 3), 4)


def test_parts_of_a_topology_are_lists_of_whole_numbers() -> None:
    pointer, source = torch.tensor([0, 2]), torch.tensor([0, 0])
    strided = torch.tensor([0, 9, 2, 9])[::2]
    assert Topology(strided, source, None, 1).pointer.is_contiguous()
    with pytest.raises(UserError, match="source of a topology must be a list of int32"):
        Topology(pointer, source.float(), None, 1)
    with pytest.raises(UserError, match="edge_id of a topology must be a list"):
        Topology(pointer, source, source[None], 1)


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
        (_cut("source.npy"), "source.npy is damaged .* bytes are fewer than its he"),
        (_cut("pointer.npy"), r"pointer.npy is damaged .* bytes are fewer"),
        (_cut("topology.json"), r"topology.json is damaged: it does not say how many"),
        (_set(num_edges=1499), r"source.npy is damaged|pointer.npy is damaged"),
        (_set(num_src=-1), "topology.json is damaged"),
        (_set(arrays=["pointer", "../source"]), "topology.json is damaged"),
        (_set(version=9), r"another version .* \(format 9, this one reads 1\)"),
        (_array("source.npy", np.zeros(1500)), "is damaged: it holds torch.float64"),
        (_array("source.npy", np.zeros((2, 750), int)), r"has shape \[2, 750\] and"),
        (_array("source.npy", [{}] * 1500), "source.npy is damaged or no .npy file"),
        (_array("pointer.npy", np.zeros(201, int)), "it does not span all edges"),
        (lambda folder: (folder / "source.npy").unlink(), "cannot read .*source.npy"),
        (lambda folder: (folder / "topology.json").unlink(), "with Topology.save"),
    ],
)
def test_damage_is_refused_in_one_line(
    folder: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(folder)
    with pytest.raises(UserError, match=message) as caught:
        Topology.open(folder)
    assert "\n" not in str(caught.value)


def test_grouped_edges_are_printed_by_their_sizes() -> None:
    topology = Topology.of(random_edges(50, 50, 100), 50)
    assert repr(topology) == "Topology(sources=50, targets=50, edges=100)"
