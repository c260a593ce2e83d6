"""The entry points of graph attention, and the register of its kinds.

Temperature enters through the arguments: LeakyReLU is positively homogeneous, so
dividing the logits by T > 0 equals dividing the attention vectors by T.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tempergat.ops import attention_op, backend, cpu, reference
from tempergat.ops.backend import Backend, Choice
from tempergat.ops.calls import Attention, Call, Expand, Input
from tempergat.ops.graph import Graph
from tempergat.ops.torch_internals import is_tracing

_attentions: dict[str, Attention] = {}


def register_attention(
    name: str,
    *,
    inputs: Sequence[Input],
    reference: Callable[..., tuple[Tensor, Tensor]],
    settings: dict[str, float] | None = None,
    backends: tuple[str, ...] = (),
    expand: Expand | None = None,
) -> Attention:
    """Adds a kind of attention, which `attend` then serves by name.

    Without kernels its reference serves every call. Kernels are modules called
    ``ops/<backend>/<name>.py`` with ``forward`` and ``backward``; see ops/README.md.

    Args:
        name: Its name.
        inputs: Its tensors, in order. The first is what is summed over the edges, of
            shape "SHC".
        reference: Called as ``reference(graph, *inputs, *settings, dropout,
            dropout_seed)``; returns the output [T, H, C] and the weights [E, H].
        settings: Its numbers by name, with their defaults.
        backends: The names of the backends with kernels for it.
        expand: Called as ``expand(*inputs)`` where no backend takes the inputs as they
            are; returns them in a form that needs more memory.

    Raises:
        ValueError: If the name is taken, or the inputs are not as described.
    """
    if name in _attentions:
        raise ValueError(f"an attention called {name!r} is registered already")
    made = Attention(name, tuple(inputs), reference, settings or {}, backends, expand)
    if backends:
        attention_op.register_ops(made)
    _attentions[name] = made
    return made


def registered(name: str) -> Attention:
    """The attention of that name.

    Raises:
        ValueError: If there is none.
    """
    if name not in _attentions:
        known = ", ".join(_attentions)
        raise ValueError(f"there is no attention called {name!r}; there are {known}")
    return _attentions[name]


def explain(
    graph: Graph, z: Tensor, *others: Tensor | None, attention: str = "gat"
) -> Choice:
    """Says which backend would serve an attention, and why each faster one would not.

    The answer is that of the call itself when all of its tensors are given.

    Args:
        graph: The graph.
        z: The projected source features, [num_src, heads, channels].
        others: The other tensors of the call.
        attention: The name of the attention.
    """
    kind = registered(attention)
    call = Call(attention, kind.backends, (z, *others), graph)
    if len(call.tensors) == len(kind.inputs):
        call, _ = _choose(kind, call)
    return backend.explain(call)


def attend(
    attention: str,
    graph: Graph,
    *inputs: Tensor | None,
    dropout: float = 0.0,
    dropout_seed: Tensor | None = None,
    return_weights: bool = False,
    **settings: float,
) -> tuple[Tensor, Tensor | None]:
    """Any registered attention, by name.

    Args:
        attention: Its name.
        graph: The graph; its self-loops are edges like all others.
        inputs: Its tensors, in the order of its registration.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout), [edges, heads].
        settings: Its numbers by name, such as ``negative_slope``.

    Raises:
        ValueError: If there is no such attention, or an argument does not fit it.
    """
    kind = registered(attention)
    expected = [spec.name for spec in kind.inputs]
    if len(inputs) > len(expected):
        raise ValueError(f"{attention} takes {', '.join(expected)}, got {len(inputs)}")
    unknown = settings.keys() - kind.settings.keys()
    if unknown:
        raise ValueError(
            f"{attention} has no setting {', '.join(sorted(unknown))}; it has "
            f"{', '.join(kind.settings) or 'none'}"
        )
    given = (*inputs, *[None] * (len(expected) - len(inputs)))
    numbers = tuple((kind.settings | settings).values())
    return _attend(kind, graph, given, numbers, dropout, dropout_seed, return_weights)


def gat(
    graph: Graph,
    z: Tensor,
    score_src: Tensor,
    score_dst: Tensor | None = None,
    edge_score: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    dropout_seed: Tensor | None = None,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """GAT attention with logits ``leaky(score_src[j] + score_dst[i] + edge_score)``.

    Args:
        graph: The graph; its self-loops are edges like all others.
        z: What is aggregated, [num_src, heads, channels].
        score_src: The source's part of the logit over T, float32 or float64,
            [num_src, heads].
        score_dst: The target's part, [num_dst, heads].
        edge_score: The edge's part, in the graph's edge order, [edges, heads].
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout), [edges, heads].
    """
    inputs = (z, score_src, score_dst, edge_score)
    options = ((negative_slope,), dropout, dropout_seed, return_weights)
    return _attend(GAT, graph, inputs, *options)


def gatv2(
    graph: Graph,
    z_src: Tensor,
    z_dst: Tensor,
    att: Tensor,
    edge: Tensor | None = None,
    edge_x: Tensor | None = None,
    edge_map: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    dropout_seed: Tensor | None = None,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """GATv2 attention with logits ``<att, leaky(z_src[j] + z_dst[i] + edge)>``.

    Edge features are given projected, as ``edge``, or unprojected with their linear
    map, as ``edge_x`` and ``edge_map``: then kernels compute ``edge_map @ edge_x`` edge
    by edge, and no tensor of edges x heads x channels exists. If all three are given,
    the two are added.

    Args:
        graph: The graph; its self-loops are edges like all others.
        z_src: The sources' features, also what is aggregated,
            [num_src, heads, channels].
        z_dst: The targets' features, [num_dst, heads, channels].
        att: The attention vector over T, float32 or float64, [heads, channels].
        edge: The edges' features, in the graph's edge order,
            [edges, heads, channels].
        edge_x: The edges' unprojected features, in the graph's edge order,
            [edges, features].
        edge_map: Their linear map, [heads, channels, features].
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout), [edges, heads].
    """
    inputs = (z_src, z_dst, att, edge, edge_x, edge_map)
    options = ((negative_slope,), dropout, dropout_seed, return_weights)
    return _attend(GATV2, graph, inputs, *options)


def _attend(
    attention: Attention,
    graph: Graph,
    inputs: tuple[Tensor | None, ...],
    settings: tuple[float, ...],
    dropout: float,
    dropout_seed: Tensor | None,
    return_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    _check_inputs(attention, graph, inputs)
    z = inputs[0]
    assert z is not None
    if dropout != 0.0:
        check_dropout(dropout, dropout_seed, z.size(1))
    tensors = inputs if dropout == 0.0 else (*inputs, dropout_seed)
    call = Call(attention.name, attention.backends, tensors, graph)
    call, chosen = _choose(attention, call)
    inputs = call.tensors[: len(inputs)]
    if chosen is not None:
        rest = (settings, dropout, dropout_seed, return_weights)
        return attention_op.run(attention, graph, inputs, *rest)
    _check_devices(graph, tensors)
    if cpu.NAME in attention.backends and z.device.type == "cpu":
        cpu.warn_without_kernels()
    out, weights = attention.reference(graph, *inputs, *settings, dropout, dropout_seed)
    return out, weights if return_weights else None


def _choose(attention: Attention, call: Call) -> tuple[Call, Backend | None]:
    """The backend that runs a call, and the call in a form that it takes."""
    chosen, count = backend.find(call), len(attention.inputs)
    if chosen is None and attention.expand is not None:
        inputs, rest = call.tensors[:count], call.tensors[count:]
        call = call._replace(tensors=(*attention.expand(*inputs), *rest))
        chosen = backend.find(call)
    return call, chosen


def _check_inputs(
    attention: Attention, graph: Graph, inputs: tuple[Tensor | None, ...]
) -> None:
    """Kernels trust the shapes: a wrong one would read outside of a tensor."""
    z, name = inputs[0], attention.inputs[0].name
    if z is None or z.dim() != 3:
        raise ValueError(
            f"{name} must have shape [{graph.num_src}, heads, channels], got "
            f"{None if z is None else list(z.shape)}"
        )
    # A compiler would specialise on the sizes that are compared.
    if is_tracing():
        return
    _, heads, channels = z.shape
    sizes = {
        "S": graph.num_src,
        "T": graph.num_dst,
        "E": graph.src.size(0),
        "H": heads,
        "C": channels,
    }
    if attention.width_at:
        sizes["D"] = _common_width(attention, inputs)
    for x, spec, shape_of in zip(
        inputs, attention.inputs, attention.shape_of, strict=True
    ):
        if (x is None and spec.optional) or (
            x is not None and x.shape == shape_of(sizes)
        ):
            continue
        raise ValueError(
            f"{spec.name} must have shape {list(shape_of(sizes))}, to fit the "
            f"graph and the features, got {None if x is None else list(x.shape)}"
        )


def _common_width(attention: Attention, inputs: tuple[Tensor | None, ...]) -> int:
    """The size that the letter D stands for: that of the first input which has it."""
    width = 0
    missing: list[str] = []
    given: list[str] = []
    for k, axis in attention.width_at:
        x, name = inputs[k], attention.inputs[k].name
        if x is None:
            missing.append(name)
            continue
        if not given:
            width = x.size(axis) if axis < x.dim() else 0
        given.append(name)
    if given and missing:
        raise ValueError(
            f"{' and '.join(given)} needs {' and '.join(missing)} as well; pass both, "
            "or neither"
        )
    return width


def check_dropout(dropout: float, seed: Tensor | None, heads: int) -> None:
    """Raises ValueError unless the rate is one and each head has a seed."""
    if not 0.0 < dropout <= 1.0:
        raise ValueError(f"dropout must be between 0 and 1, got {dropout}")
    if seed is None or seed.dtype != torch.int64 or seed.numel() != heads:
        got = "none" if seed is None else f"{seed.dtype} of shape {list(seed.shape)}"
        raise ValueError(
            f"dropout needs dropout_seed, one int64 for each of {heads} heads, got "
            f"{got}"
        )


def _check_devices(graph: Graph, tensors: tuple[Tensor | None, ...]) -> None:
    if is_tracing():
        return
    devices = {graph.device, *(t.device for t in tensors if t is not None)}
    if len(devices) > 1:
        raise ValueError(
            "attention takes all its tensors from one device, got "
            f"{sorted(map(str, devices))}; move them with .to()"
        )


def _project_edges(
    z_src: Tensor,
    z_dst: Tensor | None,
    att: Tensor | None,
    edge: Tensor | None,
    edge_x: Tensor | None,
    edge_map: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """GATv2's inputs with projected edge features."""
    if edge_x is not None and edge_map is not None:
        dtype = torch.promote_types(edge_x.dtype, edge_map.dtype)
        projected = reference.project_edges(edge_x.to(dtype), edge_map.to(dtype))
        edge = projected if edge is None else edge + projected
    return z_src, z_dst, att, edge, None, None


GAT = register_attention(
    "gat",
    inputs=[
        Input("z", "SHC"),
        Input("score_src", "SH", working=True),
        Input("score_dst", "TH", optional=True, working=True),
        Input("edge_score", "EH", optional=True, working=True),
    ],
    reference=reference.gat,
    settings={"negative_slope": 0.2},
    backends=("cpu", "gpu"),
)
GATV2 = register_attention(
    "gatv2",
    inputs=[
        Input("z_src", "SHC"),
        Input("z_dst", "THC"),
        Input("att", "HC", working=True),
        Input("edge", "EHC", optional=True),
        Input("edge_x", "ED", optional=True, working=True),
        Input("edge_map", "HCD", optional=True, working=True),
    ],
    reference=reference.gatv2,
    settings={"negative_slope": 0.2},
    backends=("cpu", "gpu"),
    expand=_project_edges,
)
