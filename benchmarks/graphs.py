"""The power-law graphs all benchmarks are measured on."""

from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.sampling import Topology


class Size(NamedTuple):
    """A benchmark graph: its size, and the layer's input width on it."""

    num_nodes: int
    num_edges: int
    in_channels: int


SIZES = {
    "arxiv": Size(169_343, 2_315_598, 256),
    "reddit": Size(232_965, 114_615_892, 602),
    "products": Size(2_449_029, 123_718_280, 256),
    "cora": Size(2_708, 10_556, 1_433),
    "60k": Size(60_000, 800_000, 256),
}


def power_law_graph(
    name: str, device: torch.device | str = "cpu", seed: int = 0
) -> tuple[Tensor, int]:
    """The edges, [2, E] int64 sorted by target, and the number of nodes.

    For each of E/2 edges one end is drawn with weight u^(-1/1.3), u uniform, clipped
    at 3000 times the median weight, the other end uniformly; each pair is an edge in
    both directions.

    Args:
        name: One of `SIZES`.
        device: Where to build it; the graph differs between kinds of device.
        seed: The same seed gives the same graph.
    """
    num_nodes, num_edges, _ = SIZES[name]
    generator = torch.Generator(device).manual_seed(seed)
    cumulative = _cumulative_weights(num_nodes, device, generator)
    pairs = num_edges // 2
    draw = torch.rand(pairs, device=device, generator=generator, dtype=torch.float64)
    heavy = torch.searchsorted(cumulative, draw * cumulative[-1])
    heavy = heavy.clamp(max=num_nodes - 1)
    other = torch.randint(num_nodes, (pairs,), device=device, generator=generator)
    target = torch.cat([heavy, other])
    source = torch.cat([other, heavy])
    order = torch.argsort(target, stable=True)
    return torch.stack([source[order], target[order]]), num_nodes


def power_law_topology(
    name: str, device: torch.device | str = "cpu", seed: int = 0
) -> Topology:
    """A graph of the same kind as `power_law_graph`, for samplers; nothing is sorted.

    Args:
        name: One of `SIZES`.
        device: Where to build it; the graph differs between kinds of device.
        seed: The same seed gives the same graph.
    """
    num_nodes, num_edges, _ = SIZES[name]
    generator = torch.Generator(device).manual_seed(seed)
    cumulative = _cumulative_weights(num_nodes, device, generator)
    pairs = num_edges // 2
    draw = torch.rand(pairs, device=device, generator=generator, dtype=torch.float64)
    heavy = torch.searchsorted(cumulative, draw.mul_(cumulative[-1]), out_int32=True)
    del draw
    heavy.clamp_(max=num_nodes - 1)
    other = torch.randint(
        num_nodes, (pairs,), device=device, generator=generator, dtype=torch.int32
    )
    # A row holds first the edges whose target is the heavy end, then the others.
    as_heavy = torch.bincount(heavy, minlength=num_nodes)
    degree = as_heavy + torch.bincount(other, minlength=num_nodes)
    pointer = torch.zeros(num_nodes + 1, dtype=torch.int64, device=device)
    torch.cumsum(degree, 0, out=pointer[1:])
    parts = torch.stack([as_heavy, degree - as_heavy], dim=1).flatten()
    is_heavy = torch.arange(2, device=device).eq(0).repeat(num_nodes)
    is_heavy = is_heavy.repeat_interleave(parts, output_size=2 * pairs)
    source = torch.empty(2 * pairs, dtype=torch.int32, device=device)
    source[is_heavy] = other
    source[~is_heavy] = heavy
    return Topology(pointer, source, None, num_nodes)


def _cumulative_weights(
    num_nodes: int, device: torch.device | str, generator: torch.Generator
) -> Tensor:
    uniform = torch.rand(
        num_nodes, device=device, generator=generator, dtype=torch.float64
    )
    weight = (1.0 - uniform).pow(-1 / 1.3)
    return weight.clamp(max=3000 * float(weight.median())).cumsum(0)
