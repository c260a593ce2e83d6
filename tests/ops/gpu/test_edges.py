"""A new graph's edges are grouped on the GPU as they are on the CPU."""

import gc

import pytest
import torch
from torch import Tensor

from tempergat.nn import TemperGATConv, TemperGATv2Conv
from tempergat.ops import Graph
from tempergat.ops.gpu import schedule as gpu_schedule
from tests.support.interpreted import run_interpreted

CASES = """
import torch

def random_edges(num_src, num_dst, count):
    generator = torch.Generator().manual_seed(count)
    ends = [torch.randint(n, (count,), generator=generator) for n in (num_src, num_dst)]
    return torch.stack(ends)

hub = torch.stack([torch.arange(90) % 30, torch.zeros(90, dtype=torch.long)])
CASES = [
    ((1, 1), torch.zeros(2, 3, dtype=torch.long)),
    ((5, 5), torch.empty(2, 0, dtype=torch.long)),
    ((30, 30), random_edges(9, 9, 60).int()),
    ((9, 4), random_edges(9, 4, 25)),
    ((4, 9), random_edges(4, 9, 25)),
    ((30, 30), torch.cat([hub, hub.flip(0)], 1)),
    ((6, 6), torch.arange(6).repeat(2, 2)),
]
"""
PROGRAM = (
    CASES
    + """
from tempergat.ops import Graph, Rows
from tempergat.ops.gpu import edges as gpu_edges
from tempergat.ops.gpu import schedule

gpu_edges._BLOCK = 16
schedule.LONGEST_OF_SMALL = 8
for items_of_small in (4096, 4):
    # The second time the graphs count as large: long items come first.
    schedule.ITEMS_OF_SMALL = items_of_small
    schedule.BUCKET = 64 if items_of_small > 4 else 4
    for sizes, edges in CASES:
        for loops in (0, min(sizes)) if items_of_small > 4 else (min(sizes),):
            if edges.size(1) + loops == 0:
                continue
            plain = Graph(edges, sizes, self_loops=loops > 0)
            grouped = gpu_edges.group_edges(edges, sizes, loops, both=True)
            pairs = list(zip(grouped.edges, (plain.src, plain.dst, plain.edge_id)))
            pairs += zip(grouped.by_target, plain.by_target)
            pairs += zip(grouped.by_source, plain.by_source)
            for got, want in pairs:
                assert torch.equal(got, want), (sizes, loops, got, want)
                assert got.data_ptr() % 16 == 0
            for rows in (grouped.by_target, grouped.by_source):
                plan = schedule.schedule(rows[0])
                want = schedule._balanced(rows[0].clone())
                assert torch.equal(plan.items, want.items)
                assert torch.equal(plan.merges, want.merges)
                assert plan.num_partials == want.num_partials
            rows = Rows(*grouped.by_target), Rows(*grouped.by_source)
            # Small graphs look their slots up in two steps.
            index, via = schedule.slots_by_source(*rows)
            want, none = schedule.slots_by_source(plain.by_target, plain.by_source)
            assert none is None
            assert torch.equal(via[index], want)
            alone = gpu_edges.group_edges(edges, sizes, loops, both=False)
            assert alone.by_source is None
            for got, want in zip(alone.by_target, grouped.by_target):
                assert torch.equal(got, want)
far = gpu_edges.group_edges(torch.tensor([[0, 7, 2], [1, 1, -3]]), (4, 4), 4, both=True)
assert (far.lowest, far.highest) == ((0, -3), (7, 1))
"""
)


def test_interpreted_kernels_group_edges_as_torch_does() -> None:
    run_interpreted(PROGRAM)


def _cases() -> list[tuple[tuple[int, int], Tensor]]:
    names: dict[str, list[tuple[tuple[int, int], Tensor]]] = {}
    exec(CASES, names)
    generator = torch.Generator().manual_seed(0)
    large = torch.rand(2, 400_000, generator=generator).pow(6).mul(50_000).long()
    many = torch.randint(3000, (2, 9001), generator=generator)
    return [*names["CASES"], ((50_000, 50_000), large), ((3000, 3001), many)]


@pytest.mark.gpu
@pytest.mark.parametrize("self_loops", [True, False])
def test_a_graph_made_on_the_gpu_is_that_of_the_cpu(self_loops: bool) -> None:
    for sizes, edges in _cases():
        here = Graph(edges, sizes, self_loops=self_loops)
        there = Graph(edges.cuda(), sizes, self_loops=self_loops)
        for name in ("src", "dst", "edge_id", "edge_index"):
            assert torch.equal(getattr(there, name).cpu(), getattr(here, name))
        for side in ("by_target", "by_source"):
            rows = zip(getattr(there, side), getattr(here, side), strict=True)
            assert all(torch.equal(got.cpu(), want) for got, want in rows)
            pointer = getattr(there, side).pointer
            plan = gpu_schedule.schedule(pointer)
            moved = gpu_schedule.schedule(getattr(here, side).pointer)
            assert torch.equal(plan.items.cpu(), moved.items)
            assert torch.equal(plan.merges.cpu(), moved.merges)
            assert plan.num_partials == moved.num_partials


@pytest.mark.gpu
def test_the_grouping_by_source_can_come_later() -> None:
    edges = torch.randint(40, (2, 300), device="cuda")
    with torch.no_grad():
        graph = Graph(edges, 40, self_loops=True)
    assert graph._by_source is None
    for got, want in zip(
        graph.by_source, Graph(edges, 40, self_loops=True).by_source, strict=True
    ):
        assert torch.equal(got, want)


@pytest.mark.gpu
@pytest.mark.parametrize(("row", "node"), [(0, 9), (1, 4), (1, -1), (0, 2**40)])
def test_a_node_that_does_not_exist_is_named(row: int, node: int) -> None:
    edges = torch.zeros(2, 50, dtype=torch.long)
    edges[row, 17] = node
    for device in ("cpu", "cuda"):
        side = ("source", "target")[row]
        with pytest.raises(ValueError, match=f"refers to {side} node {node}, but"):
            Graph(edges.to(device), 4, self_loops=True)


@pytest.mark.gpu
@pytest.mark.parametrize("conv", [TemperGATConv, TemperGATv2Conv])
def test_changing_graphs_train_as_on_the_cpu_and_take_no_memory(conv: type) -> None:
    here = conv(8, 4, heads=3)
    there = conv(8, 4, heads=3).cuda()
    there.load_state_dict(here.state_dict())
    x = torch.randn(50, 8)
    used = []
    for step in range(60):
        edges = torch.randint(50, (2, 40 + step % 5 * 30))
        grouped = there(x.cuda(), edges.cuda())
        got = torch.autograd.grad(grouped.square().sum(), tuple(there.parameters()))
        if step < 10:
            want = here(x, edges)
            torch.testing.assert_close(grouped.cpu(), want, atol=1e-5, rtol=1e-4)
            gradients = torch.autograd.grad(
                want.square().sum(), tuple(here.parameters())
            )
            for a, b in zip(got, gradients, strict=True):
                torch.testing.assert_close(a.cpu(), b, atol=1e-4, rtol=1e-4)
        del grouped, got
        gc.collect()
        used.append(torch.cuda.memory_allocated())
    # Graphs of all five sizes have been seen twice in ten steps. Autograd's thread may
    # still hold the tensors of a step, but not those of ten.
    assert min(used[-10:]) <= max(used[:10])
