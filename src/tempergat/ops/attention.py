"""The entry points of graph attention.

The softmax temperature is an input, ``theta``: T = softplus(theta) + 1e-6. LeakyReLU is
positively homogeneous, so dividing the logits by T > 0 equals dividing the attention
vectors by T.
"""

from typing import Any

from torch import Tensor

from tempergat.ops import attention_op, backend, cpu
from tempergat.ops.backend import Backend, Choice
from tempergat.ops.calls import (
    EDGE_INPUTS,
    NO_EPILOGUE,
    Attended,
    Attention,
    Call,
    Epilogue,
    changes_output,
)
from tempergat.ops.checks import check_devices, check_dropout, checked_inputs
from tempergat.ops.features.elementwise import sigmoid_gate
from tempergat.ops.graphs.graph import Graph
from tempergat.ops.kinds import DOT_PRODUCT, GAT, GATV2, registered
from tempergat.ops.registration import runner
from tempergat.ops.torch_internals import execution_mode


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
    tensors = (z, *others)
    if len(tensors) == len(kind.inputs) - len(EDGE_INPUTS):
        tensors += (None,) * len(EDGE_INPUTS)
    call = Call(attention, kind.backends, tensors, graph)
    if len(tensors) == len(kind.inputs):
        call, _ = choose(kind, call)
    return backend.explain(call)


def attend(
    attention: str,
    graph: Graph,
    *inputs: Tensor | None,
    edge_weight: Tensor | None = None,
    edge_bias: Tensor | None = None,
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
        edge_weight: A factor of each attention weight after the softmax, in the
            graph's edge order, [edges] or [edges, heads].
        edge_bias: What is added to each logit, likewise; minus infinity masks an edge.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout and edge_weight),
            [edges, heads].
        settings: Its numbers by name, such as ``negative_slope``.

    Raises:
        ValueError: If there is no such attention, or an argument does not fit it.
    """
    kind = registered(attention)
    expected = [spec.name for spec in kind.inputs[: -len(EDGE_INPUTS)]]
    if len(inputs) > len(expected):
        raise ValueError(f"{attention} takes {', '.join(expected)}, got {len(inputs)}")
    unknown = set(settings) - set(kind.settings)
    if unknown:
        raise ValueError(
            f"{attention} has no setting {', '.join(sorted(unknown))}; it has "
            f"{', '.join(kind.settings) or 'none'}"
        )
    given = (*inputs, *[None] * (len(expected) - len(inputs)), edge_weight, edge_bias)
    numbers = tuple({**kind.settings, **settings}.values())
    out, weights, _ = attend_with(
        kind, graph, given, numbers, dropout, dropout_seed, return_weights
    )
    return out, weights


def gat(
    graph: Graph,
    z: Tensor,
    att_src: Tensor,
    att_dst: Tensor | None = None,
    z_dst: Tensor | None = None,
    edge_score: Tensor | None = None,
    theta: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    edge_weight: Tensor | None = None,
    edge_bias: Tensor | None = None,
    dropout: float = 0.0,
    dropout_seed: Tensor | None = None,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """GAT attention: ``leaky((<att_src, z[j]> + <att_dst, z[i]>) / T + edge_score)``.

    Args:
        graph: The graph; its self-loops are edges like all others.
        z: What is aggregated, [num_src, heads, channels].
        att_src: The attention vector of the sources, float32 or float64,
            [heads, channels].
        att_dst: That of the targets; None if they have no part in the logits.
        z_dst: The targets' features, [num_dst, heads, channels]; None if the targets
            are the first of the sources.
        edge_score: The edge's part over T, in the graph's edge order, [edges, heads].
        theta: Gives the temperature of all heads, 0-d, or of each, [heads]; None for 1.
        negative_slope: LeakyReLU's slope below zero.
        edge_weight: A factor of each attention weight after the softmax, in the
            graph's edge order, [edges] or [edges, heads].
        edge_bias: What is added to each logit, likewise; minus infinity masks an edge.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout and edge_weight),
            [edges, heads].
    """
    inputs = (z, att_src, att_dst, z_dst, edge_score, theta, edge_weight, edge_bias)
    options = ((negative_slope,), dropout, dropout_seed, return_weights)
    out, weights, _ = attend_with(GAT, graph, inputs, *options)
    return out, weights


def gatv2(
    graph: Graph,
    z_src: Tensor,
    z_dst: Tensor,
    att: Tensor,
    edge: Tensor | None = None,
    edge_x: Tensor | None = None,
    edge_map: Tensor | None = None,
    theta: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    edge_weight: Tensor | None = None,
    edge_bias: Tensor | None = None,
    dropout: float = 0.0,
    dropout_seed: Tensor | None = None,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """GATv2 attention with logits ``<att, leaky(z_src[j] + z_dst[i] + edge)> / T``.

    Edge features are given projected, as ``edge``, or unprojected with their linear
    map, as ``edge_x`` and ``edge_map``: then kernels compute ``edge_map @ edge_x`` edge
    by edge, and no tensor of edges x heads x channels exists. If all three are given,
    the two are added.

    Args:
        graph: The graph; its self-loops are edges like all others.
        z_src: The sources' features, also what is aggregated,
            [num_src, heads, channels].
        z_dst: The targets' features, [num_dst, heads, channels].
        att: The attention vector, float32 or float64, [heads, channels].
        edge: The edges' features, in the graph's edge order,
            [edges, heads, channels].
        edge_x: The edges' unprojected features, in the graph's edge order,
            [edges, features].
        edge_map: Their linear map, [heads, channels, features].
        theta: Gives the temperature of all heads, 0-d, or of each, [heads]; None for 1.
        negative_slope: LeakyReLU's slope below zero.
        edge_weight: A factor of each attention weight after the softmax, in the
            graph's edge order, [edges] or [edges, heads].
        edge_bias: What is added to each logit, likewise; minus infinity masks an edge.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout and edge_weight),
            [edges, heads].
    """
    edges = (edge_weight, edge_bias)
    inputs = (z_src, z_dst, att, edge, edge_x, edge_map, theta, *edges)
    options = ((negative_slope,), dropout, dropout_seed, return_weights)
    out, weights, _ = attend_with(GATV2, graph, inputs, *options)
    return out, weights


def dot_product(
    graph: Graph,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    edge: Tensor | None = None,
    edge_map: Tensor | None = None,
    *,
    temperature: Tensor | None = None,
    scale: float | None = None,
    edge_weight: Tensor | None = None,
    edge_bias: Tensor | None = None,
    dropout: float = 0.0,
    dropout_seed: Tensor | None = None,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Scaled dot products: logits ``<q[i], k[j] + edge_map edge> scale / T``.

    What is summed is ``v[j] + edge_map edge``, as in PyG's ``TransformerConv``. Kernels
    never project an edge's features: they need memory for the features as given.

    Args:
        graph: The graph; its self-loops are edges like all others.
        q: The targets' queries, [num_dst, heads, channels].
        k: The sources' keys, [num_src, heads, channels]. Keys and values may be two
            halves of one tensor's rows; then an edge is one read.
        v: The sources' values, [num_src, heads, channels].
        edge: The edges' features, in the graph's edge order, [edges, features].
        edge_map: Their linear map, [heads, channels, features].
        temperature: T of all heads, 0-d, or of each, [heads]; None for 1.
        scale: A factor of the logits; None for ``channels ** -0.5``.
        edge_weight: A factor of each attention weight after the softmax, in the
            graph's edge order, [edges] or [edges, heads].
        edge_bias: What is added to each logit, likewise; minus infinity masks an edge.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout and edge_weight),
            [edges, heads].
    """
    if scale is None:
        scale = v.shape[-1] ** -0.5
    inputs = (v, k, q, edge, edge_map, temperature, edge_weight, edge_bias)
    options = ((scale,), dropout, dropout_seed, return_weights)
    out, weights, _ = attend_with(DOT_PRODUCT, graph, inputs, *options)
    return out, weights


def attend_with(
    attention: Attention,
    graph: Graph,
    inputs: tuple[Tensor | None, ...],
    settings: tuple[float, ...],
    dropout: float,
    dropout_seed: Tensor | None,
    return_weights: bool,
    epilogue: Epilogue = NO_EPILOGUE,
    mode: str | None = None,
) -> Attended:
    """``attention(graph, *inputs) * sigmoid(gate_logit) + skip + bias``.

    Args:
        attention: The attention.
        graph: The graph.
        inputs: All its inputs, in order; None for those that are absent.
        settings: All its numbers, in order.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Whether the weights (after dropout) are wanted.
        epilogue: The gate's logit and the skip, [T, H * C] each, and the bias, [H * C].
        mode: The `execution_mode`, where it is known.

    Returns:
        The output, [T, H, C], the weights and the sum of the gate.
    """
    mode = execution_mode() if mode is None else mode
    inputs = checked_inputs(attention, graph, inputs, mode == "traced")
    z = inputs[0]
    assert z is not None
    if dropout != 0.0:
        check_dropout(dropout, dropout_seed, z.size(1))
    if mode != "eager":
        # One number for all heads would not fold with them.
        inputs = tuple(
            x.expand(z.size(1)) if x is not None and x.dim() == 0 else x for x in inputs
        )
    tensors = inputs if dropout == 0.0 else (*inputs, dropout_seed)
    call = Call(attention.name, attention.backends, tensors, graph)
    call, chosen = choose(attention, call, mode == "eager")
    inputs = call.tensors[: len(inputs)]
    rest = (settings, dropout, dropout_seed)
    if chosen is not None:
        inputs = attention_op.converted(attention, inputs)
        # Compilers fuse the epilogue; on a GPU many models' gates have no kernel.
        on_cpu = chosen.NAME == cpu.NAME
        may_finish = mode == "eager" or (on_cpu and mode != "traced")
        inside = _epilogue_of_op(z, inputs[0], epilogue) if may_finish else None
        given = (attention, graph, inputs, inside or NO_EPILOGUE, *rest)
        arguments = attention_op.arguments(*given, return_weights, mode)
        # The function, and not a call of it: each frame takes time on small graphs.
        op = runner(attention.forward_name, arguments)
        out, _, _, weights, gate_sum, *_ = op(*arguments)
        weights = weights if return_weights else None
        if inside is not None:
            if epilogue is not NO_EPILOGUE and not changes_output(inside):
                # Backward needs it, and a layer's caller may change it in place.
                out = out.clone() if out.requires_grad else out
            return Attended(out, weights, gate_sum if inside.gate_sum else None)
        out = out.to(z.dtype)
    else:
        check_devices(graph, tensors)
        if cpu.NAME in attention.backends and z.device.type == "cpu":
            cpu.warn_without_kernels()
        out, weights = attention.by_reference(graph, inputs, *rest)
        weights = weights if return_weights else None
    if not changes_output(epilogue):
        return Attended(out, weights, None)
    flat, gate_sum = finish(out.flatten(1), epilogue)
    return Attended(flat.view(flat.size(0), *out.shape[1:]), weights, gate_sum)


def finish(out: Tensor, epilogue: Epilogue) -> tuple[Tensor, Tensor | None]:
    """The epilogue in torch's operations, of an output [T, H * C]."""
    gate_sum = None
    if epilogue.gate_logit is not None:
        out, gate_sum = sigmoid_gate(epilogue.gate_logit, out)
    for more in (epilogue.skip, epilogue.bias):
        if more is not None:
            out = out + more
    return out, gate_sum


def _epilogue_of_op(
    z: Tensor, converted: Tensor | None, epilogue: Epilogue
) -> Epilogue | None:
    """The epilogue as the op takes it, [T, H, C]; None where types differ.

    Types of torch's promotion are then those of the output.
    """
    if converted is None or converted.dtype != z.dtype:
        return None
    parts: list[Tensor | None] = [None, None, None]
    for k in range(3):
        x: Any = epilogue[k]
        if x is not None:
            if x.dtype != z.dtype:
                return None
            parts[k] = x.view(*x.shape[:-1], *z.shape[1:])
    logit, skip, bias = parts
    return Epilogue(logit, skip, bias, epilogue.gate_sum and logit is not None)


def choose(
    attention: Attention, call: Call, eager: bool = False
) -> tuple[Call, Backend | None]:
    """The backend that runs a call, and the call in a form that it takes."""
    count = len(attention.inputs)
    chosen = backend.find(call, eager)
    if chosen is None and attention.expand is not None:
        inputs, rest = call.tensors[:count], call.tensors[count:]
        call = call._replace(tensors=(*attention.expand(*inputs), *rest))
        chosen = backend.find(call, eager)
    return call, chosen
