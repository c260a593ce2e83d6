"""No tensor of edges times heads times channels is made, forward or backward."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from tempergat import ops
from tempergat.ops import Graph
from tempergat.ops.cpu import library as cpu
from tests.support.attention_cases import Settings, by_torch, make_inputs, padded

KINDS = ["gat", "gatv2"]
HEADS, CHANNELS = 4, 32


def _dense_graph(num_nodes: int, num_edges: int) -> Graph:
    edges = torch.randint(num_nodes, (2, num_edges))
    return Graph(edges, num_nodes, self_loops=True)


def _leaves(kind: str, graph: Graph) -> list[Tensor]:
    options = Settings(edge_width=8 if kind == "dot_product" else 0)
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float32, options)
    return [x.to(graph.device).requires_grad_() for x in inputs.values()]


def _step(op: Any, graph: Graph, leaves: list[Tensor], *options: Any) -> None:
    out = op(graph, *leaves, *options)[0]
    torch.autograd.grad(out, leaves, torch.ones_like(out))


def _largest_allocation(op: Any, *arguments: Any) -> int:
    """Bytes of the largest allocation of a step on the CPU."""
    _step(op, *arguments)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        _step(op, *arguments)
    found = record.profiler.kineto_results.events()
    return max(event.nbytes() for event in found if event.name() == "[memory]")


# torch 2.11 warns so at the first use of the profiler.
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("kind", [*KINDS, "dot_product"])
def test_cpu_allocates_nothing_of_the_size_of_all_messages(kind: str) -> None:
    assert cpu.library.problem is None
    graph = _dense_graph(50, 20_000)
    leaves = _leaves(kind, graph)
    messages = graph.src.numel() * HEADS * CHANNELS * 4
    options = (*padded(kind, leaves)[len(leaves) :], 0.2, 0.0, None)
    by_reference = by_torch(kind)
    # The measure sees them where they are made.
    assert _largest_allocation(by_reference, graph, leaves, *options) >= messages
    assert ops.explain(graph, leaves[0]).backend == "cpu"
    assert _largest_allocation(getattr(ops, kind), graph, leaves) < messages / 8


@pytest.mark.gpu
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_gpu_needs_less_memory_than_a_sixth_of_all_messages(
    kind: str, dropout: float
) -> None:
    graph = _dense_graph(2000, 400_000).to("cuda")
    leaves = _leaves(kind, graph)
    assert ops.explain(graph, leaves[0]).backend == "gpu"
    seed = torch.arange(HEADS, device="cuda")

    def op(*arguments: Any) -> Any:
        return getattr(ops, kind)(*arguments, dropout=dropout, dropout_seed=seed)

    _step(op, graph, leaves)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    _step(op, graph, leaves)
    torch.cuda.synchronize()
    messages = graph.src.numel() * HEADS * CHANNELS * 4
    # All tensors together; what remains is per edge and head, or per node.
    assert torch.cuda.max_memory_allocated() - before < messages / 6
