"""How rows are shared out among GPU programs; needs no GPU."""

import gc

import pytest
import torch
from torch import Tensor

from tempergat.ops import Graph
from tempergat.ops.gpu import schedule as gpu_schedule


def _pointer(degrees: list[int]) -> Tensor:
    return torch.tensor([0, *degrees]).cumsum(0).int()


def test_every_slot_is_served_exactly_once() -> None:
    plan = gpu_schedule.schedule(_pointer([3, 0, 2000, 64, 65, 130]))
    served = torch.zeros(2262, dtype=torch.long)
    for row, start, end, _ in plan.items.tolist():
        served[start:end] += 1
        assert 0 <= row < 6
    assert (served == 1).all()
    assert set(plan.items[:, 0].tolist()) == set(range(6))


def test_long_rows_are_cut_and_their_parts_are_neighbours() -> None:
    plan = gpu_schedule.schedule(_pointer([5, 128, 1]))
    assert plan.merges.tolist() == [[1, 0, plan.num_partials]]
    parts = sorted(r[3] for r in plan.items.tolist() if r[0] == 1)
    assert parts == list(range(plan.num_partials))
    lengths = (plan.items[:, 2] - plan.items[:, 1]).tolist()
    assert max(lengths) <= gpu_schedule.LONGEST
    assert lengths == [5, 64, 64, 1]


def test_long_items_of_a_large_graph_come_first() -> None:
    plan = gpu_schedule.schedule(_pointer([5, 70, 900, 3, 200] + [300] * 2000))
    steps = (plan.items[:, 2] - plan.items[:, 1]) // gpu_schedule.BUCKET
    assert steps.tolist() == sorted(steps.tolist(), reverse=True)


def test_a_schedule_is_made_once_and_follows_a_change() -> None:
    pointer = _pointer([1, 2, 3])
    first = gpu_schedule.schedule(pointer)
    assert gpu_schedule.schedule(pointer) is first
    pointer[-1] = 4
    assert gpu_schedule.schedule(pointer).items[:, 2].max() == 4


def test_a_schedule_is_freed_with_its_rows() -> None:
    pointer = _pointer([1, 2, 3])
    gpu_schedule.schedule(pointer)
    before = len(gpu_schedule._made._entries)
    del pointer
    gc.collect()
    assert len(gpu_schedule._made._entries) == before - 1


def test_slots_by_source_lead_from_each_edge_to_itself() -> None:
    edges = torch.randint(20, (2, 90), generator=torch.Generator().manual_seed(0))
    graph = Graph(edges, 20, self_loops=True)
    index, _ = gpu_schedule.slots_by_source(graph.by_target, graph.by_source)
    position = graph.by_source.position[index.long()]
    assert torch.equal(position, graph.by_target.position)
    again, _ = gpu_schedule.slots_by_source(graph.by_target, graph.by_source)
    assert again is index


def test_tiles_of_any_width_have_sizes_that_triton_compiles() -> None:
    common = pytest.importorskip("tempergat.ops.gpu.common")
    for width in range(1, 300):
        tile = common.choose_tile(16, 32, 4, width, 128)
        for size in (tile.heads, tile.fit(True, 16).heads, tile.edges):
            assert size & (size - 1) == 0, width
