"""Edges grouped by target, with and without the C++ functions."""

import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from tempergat import UserError
from tempergat.sampling import Topology
from tempergat.sampling.storage import topology
from tests.sampling.graphs import random_edges


@pytest.fixture(params=["c++", "torch"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "torch":
        monkeypatch.setattr(topology, "group_by_target", lambda *_: None)


def test_edges_keep_their_order_within_a_target() -> None:
    edges = torch.tensor([[2, 0, 1, 0], [1, 1, 0, 1]])
    grouped = Topology.of(edges, 3)
    assert grouped.pointer.tolist() == [0, 1, 4, 4]
    assert grouped.source.tolist() == [1, 2, 0, 0]
    assert grouped.edge_id is not None
    assert grouped.edge_id.tolist() == [2, 0, 1, 3]
    assert Topology.of(edges[:, grouped.edge_id], 3).edge_id is None


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
    apart = torch.tensor([0, 9, 2, 9])[::2]
    assert Topology(apart, source, None, 1).pointer.is_contiguous()
    with pytest.raises(UserError, match="source of a topology must be a list of int32"):
        Topology(pointer, source.float(), None, 1)
    with pytest.raises(UserError, match="edge_id of a topology must be a list"):
        Topology(pointer, source, source[None], 1)
