"""Graphs and calls that every backend is compared on, result by result."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempergat import ops
from tempergat.ops import Graph, reference


def _random_edges(sources: int, targets: int, edges: int) -> Tensor:
    generator = torch.Generator().manual_seed(edges)
    source = torch.randint(sources, (edges,), generator=generator)
    return torch.stack([source, torch.randint(targets, (edges,), generator=generator)])


def _hub() -> Graph:
    # One target and one source with many more edges than are worked on together.
    spokes = torch.arange(300) % 40
    centre = torch.zeros(300, dtype=torch.long)
    out = torch.stack([centre, spokes])
    return Graph(torch.cat([torch.stack([spokes, centre]), out], dim=1), 40)


def _duplicates() -> Graph:
    return Graph(_random_edges(6, 6, 30).repeat(1, 2), 6)


GRAPHS: dict[str, Callable[[], Graph]] = {
    "random": lambda: Graph(_random_edges(23, 23, 90), 23),
    "empty_rows": lambda: Graph(_random_edges(5, 5, 25), 31),
    "hub": _hub,
    "duplicates": _duplicates,
    "self_loops": lambda: Graph(_random_edges(9, 9, 40), 9, self_loops=True),
    "bipartite": lambda: Graph(_random_edges(17, 4, 33), (17, 4)),
    "no_edges": lambda: Graph(torch.empty(2, 0, dtype=torch.long), 3),
}


class Settings(NamedTuple):
    """Optional parts of a call.

    Attributes:
        edge_width: For GATv2, the number of features of an edge that the kernels
            project themselves; 0 for none.
    """

    edge: bool = False
    edge_width: int = 0
    target_score: bool = True
    dropout: float = 0.0
    weights: bool = False
    negative_slope: float = 0.2
    temperature: float = 1.0


def make_inputs(
    kind: str, graph: Graph, heads: int, channels: int, dtype: Any, settings: Settings
) -> dict[str, Tensor]:
    """Arguments of a call by name, in the types a backend takes them."""
    work = torch.float64 if dtype == torch.float64 else torch.float32
    edges = graph.src.numel()
    row = (heads, channels)
    if kind == "gat":
        shapes = {
            "z": (graph.num_src, *row),
            "score_src": (graph.num_src, heads),
            "score_dst": (graph.num_dst, heads),
            "edge_score": (edges, heads),
        }
        stored = {"z"}
        absent = {"edge_score": settings.edge, "score_dst": settings.target_score}
    else:
        shapes = {
            "z_src": (graph.num_src, *row),
            "z_dst": (graph.num_dst, *row),
            "att": row,
            "edge": (edges, *row),
            "edge_x": (edges, settings.edge_width),
            "edge_map": (*row, settings.edge_width),
        }
        stored = {"z_src", "z_dst", "edge"}
        projected = settings.edge_width > 0
        absent = {"edge": settings.edge, "edge_x": projected, "edge_map": projected}
    scale = {"att": channels**-0.5 / settings.temperature}
    scale |= dict.fromkeys(
        ("score_src", "score_dst", "edge_score"), 1 / settings.temperature
    )
    return {
        name: (torch.randn(shape) * scale.get(name, 1)).to(
            dtype if name in stored else work
        )
        for name, shape in shapes.items()
        if absent.get(name, True)
    }


# The arguments of a call, in order.
NAMES = {
    "gat": ("z", "score_src", "score_dst", "edge_score"),
    "gatv2": ("z_src", "z_dst", "att", "edge", "edge_x", "edge_map"),
}


def padded(kind: str, arguments: Any) -> tuple[Any, ...]:
    """The arguments of a call, and None for those that follow."""
    return (*arguments, *[None] * (len(NAMES[kind]) - len(arguments)))


def in_order(kind: str, inputs: dict[str, Tensor]) -> list[Tensor | None]:
    """All arguments of a call; None for those that are absent."""
    return [inputs.get(name) for name in NAMES[kind]]


def results(
    kind: str,
    call: Any,
    graph: Graph,
    inputs: dict[str, Tensor],
    settings: Settings,
    seed: Tensor,
    incoming: tuple[Tensor, Tensor],
) -> dict[str, Tensor]:
    """The output, the weights and the gradient of every argument, by name."""
    leaves = {k: v.clone().requires_grad_() for k, v in inputs.items()}
    arguments = in_order(kind, leaves)
    slope, dropout = settings.negative_slope, settings.dropout
    out, weights = call(graph, *arguments, slope, dropout, seed)
    loss = (out * incoming[0].to(out.dtype)).sum()
    found = {"out": out.detach()}
    if settings.weights:
        found["weights"] = weights.detach()
        loss = loss + (weights * incoming[1].to(weights.dtype)).sum()
    loss.backward()
    found |= {f"d{k}": v.grad for k, v in leaves.items() if v.grad is not None}
    return found


def by_kernel(kind: str, weights: bool) -> Callable[..., Any]:
    """The entry point as `results` calls a reference."""

    def call(graph: Graph, *arguments: Any) -> Any:
        *inputs, slope, dropout, seed = arguments
        return ops.attend(
            kind,
            graph,
            *inputs,
            negative_slope=slope,
            dropout=dropout,
            dropout_seed=seed,
            return_weights=weights,
        )

    return call


def compare(
    kind: str,
    graph: Graph,
    heads: int,
    channels: int,
    dtype: Any,
    settings: Settings,
    backend: str,
) -> None:
    """Asserts that the backend serves, and is as exact as PyTorch in its precision."""
    inputs = make_inputs(kind, graph, heads, channels, dtype, settings)
    seed = torch.randint(-(2**63), 2**63 - 1, (heads,))
    incoming = (
        torch.randn(graph.num_dst, heads, channels),
        torch.randn(graph.src.numel(), heads),
    )
    where = torch.device({"cpu": "cpu", "gpu": "cuda"}[backend])
    on = graph.to(where)
    inputs = {name: x.to(where) for name, x in inputs.items()}
    rest = (settings, seed.to(where), (incoming[0].to(where), incoming[1].to(where)))
    given = in_order(kind, inputs)
    assert ops.explain(on, given[0], *given[1:], attention=kind).backend == backend

    by_torch = getattr(reference, kind)
    fast = results(kind, by_kernel(kind, settings.weights), on, inputs, *rest)
    same = results(kind, by_torch, on, inputs, *rest)
    exact_inputs = {name: x.double() for name, x in inputs.items()}
    exact = results(kind, by_torch, on, exact_inputs, *rest)
    assert fast.keys() == same.keys() == exact.keys()
    for name, truth in exact.items():
        assert fast[name].dtype == same[name].dtype, name
        assert fast[name].shape == truth.shape, name
        if truth.numel() == 0:
            continue
        error = (fast[name].double() - truth).abs().max()
        allowed = (same[name].double() - truth).abs().max()
        # In float64 the truth is no more exact than what it is compared with, less so
        # the larger the logits.
        units = 256 / settings.temperature if dtype == torch.float64 else 8
        eps = torch.finfo(same[name].dtype).eps
        floor = units * eps * truth.abs().max().clamp(min=1)
        assert error <= 2 * allowed + floor, (
            f"{name}: error {error:.3g}, PyTorch's is {allowed:.3g}"
        )
