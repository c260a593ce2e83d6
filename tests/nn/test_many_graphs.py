"""A layer on graphs that change in every step, and in several threads."""

import gc
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tempergat.nn import TemperGATConv, TemperGATv2Conv

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
LAYERS = [TemperGATConv, TemperGATv2Conv]
THREADS = 8
MEBIBYTE = 2**20


def one_step(layer: nn.Module, x: Tensor, edges: Tensor) -> list[Tensor]:
    """The output, and the gradients of all parameters."""
    out = layer(x, edges)
    leaves = tuple(layer.parameters())
    return [out.detach(), *torch.autograd.grad(out.square().sum(), leaves)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("conv", LAYERS)
def test_eight_threads_that_call_one_layer_get_what_one_thread_gets(
    conv: type[nn.Module], device: str
) -> None:
    layer = conv(8, 4, heads=3).to(device)
    x = torch.randn(60, 8, device=device)
    graphs = [torch.randint(60, (2, 200), device=device) for _ in range(THREADS)]
    expected = [one_step(layer, x, edges) for edges in graphs]
    found: list[list[list[Tensor]]] = [[] for _ in graphs]
    start = threading.Barrier(THREADS)

    def work(place: int) -> None:
        start.wait()
        # Copies: no thread has seen them before.
        for edges in (graphs[place].clone(), graphs[0].clone(), graphs[place]):
            found[place].append(one_step(layer, x, edges))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, steps in enumerate(found):
        assert len(steps) == 3
        for step, graph in zip(steps, (place, 0, place), strict=True):
            for got, want in zip(step, expected[graph], strict=True):
                assert torch.equal(got, want)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="needs Linux")
@pytest.mark.parametrize("device", DEVICES)
def test_memory_does_not_grow_over_ten_thousand_graphs(device: str) -> None:
    layers = [conv(8, 4, heads=3).to(device) for conv in LAYERS]
    x = torch.randn(60, 8, device=device)
    used = []
    for step in range(10_000):
        edges = torch.randint(60, (2, 150 + step % 50), device=device)
        one_step(layers[step % 2], x, edges)
        if step % 1000 == 999:
            gc.collect()
            used.append(memory_of(device))
    # A graph of 200 edges takes 10 KiB with both its orders: 8,000 would take 80 MiB.
    assert min(used[-2:]) - max(used[:2]) < 8 * MEBIBYTE


def memory_of(device: str) -> int:
    """Bytes in use on the device, or by this process."""
    if device == "cuda":
        return torch.cuda.memory_allocated()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
