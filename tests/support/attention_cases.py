"""Graphs and calls that every backend is compared on, result by result."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from tempergat import ops
from tempergat.ops import Graph, reference
from tempergat.ops.kinds import registered


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
        edge_width: For GATv2 and dot products, the number of features of an edge that
            come with their linear map; 0 for none.
        targets: For GAT, whether targets have a part in the logits, and if so, whether
            they have features of their own.
        theta: Whether there is a temperature: for all heads, 0-d, or for each.
        edge_weight: Whether edges have weights, some of them 0 or negative.
        edge_bias: Whether edges have biases, some of them minus infinity.
        shared_edges: On a repeated graph, whether what edges have is that of one copy.
    """

    edge: bool = False
    edge_width: int = 0
    targets: Literal["own", "shared"] | None = "own"
    theta: Literal["layer", "head"] | None = None
    dropout: float = 0.0
    weights: bool = False
    negative_slope: float = 0.2
    temperature: float = 1.0
    edge_weight: bool = False
    edge_bias: bool = False
    shared_edges: bool = False


def make_inputs(
    kind: str, graph: Graph, heads: int, channels: int, dtype: Any, settings: Settings
) -> dict[str, Tensor]:
    """Arguments of a call by name, in the types a backend takes them."""
    work = torch.float64 if dtype == torch.float64 else torch.float32
    edges = graph.num_all_edges // (graph.copies if settings.shared_edges else 1)
    row = (heads, channels)
    heat = "temperature" if kind == "dot_product" else "theta"
    last = {
        heat: () if settings.theta == "layer" else (heads,),
        "edge_weight": (edges, heads),
        "edge_bias": (edges, heads),
    }
    absent = {
        heat: settings.theta is not None,
        "edge_weight": settings.edge_weight,
        "edge_bias": settings.edge_bias,
    }
    if kind == "gat":
        shapes = {
            "z": (graph.num_src, *row),
            "att_src": row,
            "att_dst": row,
            "z_dst": (graph.num_dst, *row),
            "edge_score": (edges, heads),
        }
        stored = {"z", "z_dst"}
        absent["edge_score"] = settings.edge
        absent["att_dst"] = settings.targets is not None
        absent["z_dst"] = settings.targets == "own"
    elif kind == "dot_product":
        shapes = {
            "value": (graph.num_src, *row),
            "key": (graph.num_src, *row),
            "query": (graph.num_dst, *row),
            "edge_x": (edges, settings.edge_width),
            "edge_map": (*row, settings.edge_width),
        }
        stored = {"value", "key", "query"}
        projected = settings.edge_width > 0
        absent |= {"edge_x": projected, "edge_map": projected}
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
        absent |= {"edge": settings.edge, "edge_x": projected, "edge_map": projected}
    scale = dict.fromkeys(
        ("att", "att_src", "att_dst"), channels**-0.5 / settings.temperature
    )
    scale["edge_score"] = 1 / settings.temperature
    inputs = {
        name: (torch.randn(shape) * scale.get(name, 1)).to(
            dtype if name in stored else work
        )
        for name, shape in (shapes | last).items()
        if absent.get(name, True)
    }
    if "temperature" in inputs:
        inputs["temperature"] = inputs["temperature"].abs() + 0.5
    if settings.edge_weight:
        inputs["edge_weight"][::5] = 0.0
    if settings.edge_bias:
        inputs["edge_bias"][torch.rand(edges) < 0.3] = -torch.inf
    if settings.temperature < 1:
        # The rounding of large scores, in whatever order, would hide all other errors.
        for name in inputs.keys() & {"att_src", "att_dst"}:
            inputs[name][:, 1:] = 0
    return inputs


# The arguments of a call, in order.
NAMES = {
    "gat": ("z", "att_src", "att_dst", "z_dst", "edge_score", "theta"),
    "gatv2": ("z_src", "z_dst", "att", "edge", "edge_x", "edge_map", "theta"),
    "dot_product": ("value", "key", "query", "edge_x", "edge_map", "temperature"),
}
NAMES = {kind: (*names, "edge_weight", "edge_bias") for kind, names in NAMES.items()}


def padded(kind: str, arguments: Any) -> tuple[Any, ...]:
    """The arguments of a call, and None for those that follow."""
    return (*arguments, *[None] * (len(NAMES[kind]) - len(arguments)))


def in_order(kind: str, inputs: dict[str, Tensor]) -> list[Tensor | None]:
    """All arguments of a call; None for those that are absent."""
    return [inputs.get(name) for name in NAMES[kind]]


def attend(kind: str, graph: Graph, inputs: dict[str, Tensor], **options: Any) -> Any:
    """The entry point, called with arguments by name."""
    *own, edge_weight, edge_bias = in_order(kind, inputs)
    edges = {"edge_weight": edge_weight, "edge_bias": edge_bias}
    return ops.attend(kind, graph, *own, **{**edges, **options})


def number_of(kind: str, inputs: dict[str, Tensor], settings: Settings) -> float:
    """The value of an attention's one setting."""
    if kind == "dot_product":
        return float(inputs["query"].size(-1) ** -0.5 / settings.temperature)
    return settings.negative_slope


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
    number = number_of(kind, inputs, settings)
    out, weights = call(graph, *arguments, number, settings.dropout, seed)
    loss = (out * incoming[0].to(out.dtype)).sum()
    found = {"out": out.detach()}
    if settings.weights:
        found["weights"] = weights.detach()
        loss = loss + (weights * incoming[1].to(weights.dtype)).sum()
    loss.backward()
    found |= {f"d{k}": v.grad for k, v in leaves.items() if v.grad is not None}
    return found


def by_torch(kind: str) -> Callable[..., Any]:
    """The reference of an attention, called with inputs, setting, rate and seed."""

    def call(graph: Graph, *arguments: Any) -> Any:
        *inputs, number, dropout, seed = arguments
        every = padded(kind, inputs)
        return registered(kind).by_reference(graph, every, (number,), dropout, seed)

    return call


def by_kernel(kind: str, weights: bool) -> Callable[..., Any]:
    """The entry point as `results` calls a reference."""

    def call(graph: Graph, *arguments: Any) -> Any:
        *inputs, edge_weight, edge_bias, number, dropout, seed = arguments
        (setting,) = registered(kind).settings
        return ops.attend(
            kind,
            graph,
            *inputs,
            edge_weight=edge_weight,
            edge_bias=edge_bias,
            dropout=dropout,
            dropout_seed=seed,
            return_weights=weights,
            **{setting: number},
        )

    return call


def scale_of(name: str, truth: dict[str, Tensor], inputs: dict[str, Tensor]) -> Tensor:
    """The size of the numbers that a result is computed from.

    The gradient of an attention vector is that of the quotient, over T. That of theta
    is a sum of products with the vectors, which mostly cancel; that of T itself, with
    the queries.
    """
    vectors = [k for k in inputs if k.startswith("att")]
    if name == "dtheta":
        products = [(truth[f"d{k}"] * inputs[k]).abs().sum() for k in vectors]
        return torch.stack(products).sum().clamp(min=1)
    if name == "dtemperature":
        product = (truth["dquery"] * inputs["query"]).abs().sum()
        return (product / inputs["temperature"].min()).clamp(min=1)
    scale = truth[name].abs().max().clamp(min=1)
    if name == "dedge_weight":
        # Its weights are computed again, from logits of up to about 30.
        return 4 * scale
    if name[1:] in vectors and "theta" in inputs:
        scale = scale / reference.temperature_of(inputs["theta"]).min().clamp(max=1)
    return scale


def error_of_torch(
    kind: str,
    name: str,
    graph: Graph,
    inputs: dict[str, Tensor],
    settings: Settings,
    seed: Tensor,
) -> Tensor:
    """The largest error of a result by PyTorch for eight drawn directions."""
    errors, call = [], by_torch(kind)
    exact_inputs = {name: x.double() for name, x in inputs.items()}
    _, heads, channels = next(iter(inputs.values())).shape
    for _ in range(8):
        incoming = (
            torch.randn(graph.num_dst, heads, channels).to(graph.device),
            torch.randn(graph.num_all_edges, heads).to(graph.device),
        )
        rest = (graph, inputs, settings, seed, incoming)
        same = results(kind, call, *rest)
        exact = results(kind, call, graph, exact_inputs, settings, seed, incoming)
        errors.append((same[name].double() - exact[name]).abs().max())
    return torch.stack(errors).max()


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
        torch.randn(graph.num_all_edges, heads),
    )
    where = torch.device({"cpu": "cpu", "gpu": "cuda"}[backend])
    on = graph.to(where)
    inputs = {name: x.to(where) for name, x in inputs.items()}
    rest = (settings, seed.to(where), (incoming[0].to(where), incoming[1].to(where)))
    given = in_order(kind, inputs)
    assert ops.explain(on, given[0], *given[1:], attention=kind).backend == backend

    call = by_torch(kind)
    fast = results(kind, by_kernel(kind, settings.weights), on, inputs, *rest)
    same = results(kind, call, on, inputs, *rest)
    exact_inputs = {name: x.double() for name, x in inputs.items()}
    exact = results(kind, call, on, exact_inputs, *rest)
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
        floor = units * eps * scale_of(name, exact, inputs)
        if error > 2 * allowed + floor:
            # One draw of PyTorch's own may be exact by luck.
            allowed = error_of_torch(kind, name, on, inputs, *rest[:2])
        assert error <= 2 * allowed + floor, (
            f"{name}: error {error:.3g}, PyTorch's is {allowed:.3g}"
        )
