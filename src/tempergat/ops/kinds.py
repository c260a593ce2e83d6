"""The kinds of attention: the register, and those that come with the package."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tempergat.ops import attention_op, reference
from tempergat.ops.calls import Attention, Expand, Input, Logits

_attentions: dict[str, Attention] = {}


def register_attention(
    name: str,
    *,
    inputs: Sequence[Input],
    reference: Callable[..., Logits],
    settings: dict[str, float] | None = None,
    backends: tuple[str, ...] = (),
    expand: Expand | None = None,
    state: tuple[str, ...] = (),
) -> Attention:
    """Adds a kind of attention, which `attend` then serves by name.

    Without kernels its reference serves every call. Kernels are modules called
    ``ops/<backend>/<name>.py`` with ``forward`` and ``backward``; see ops/README.md.

    Args:
        name: Its name.
        inputs: Its tensors, in order. The first is what is summed over the edges, of
            shape "SHC".
        reference: Its formula, called as ``reference(graph, *inputs, *settings)``.
            Returns the logits [E, H]; where an edge's message is not the first input
            at its source, also what is summed for every edge, [E, H, C].
        settings: Its numbers by name, with their defaults.
        backends: The names of the backends with kernels for it.
        expand: Called as ``expand(*inputs)`` where no backend takes the inputs as they
            are; returns them in a form that needs more memory.
        state: The shapes of what the kernels keep between ``forward`` and
            ``backward``, beside the inputs and the results.

    Raises:
        ValueError: If the name is taken, or the inputs are not as described.
    """
    if name in _attentions:
        raise ValueError(f"an attention called {name!r} is registered already")
    made = Attention(
        name, tuple(inputs), reference, settings or {}, backends, expand, state
    )
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


def _project_edges(
    z_src: Tensor,
    z_dst: Tensor | None,
    att: Tensor | None,
    edge: Tensor | None,
    edge_x: Tensor | None,
    edge_map: Tensor | None,
    *others: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """GATv2's inputs with projected edge features."""
    if edge_x is not None and edge_map is not None:
        dtype = torch.promote_types(edge_x.dtype, edge_map.dtype)
        projected = reference.project_edges(edge_x.to(dtype), edge_map.to(dtype))
        edge = projected if edge is None else edge + projected
    return z_src, z_dst, att, edge, None, None, *others


GAT = register_attention(
    "gat",
    inputs=[
        Input("z", "SHC"),
        Input("att_src", "HC", working=True),
        Input("att_dst", "HC", optional=True, working=True),
        Input("z_dst", "THC", optional=True),
        Input("edge_score", "EH", optional=True, working=True),
        Input("theta", "H", optional=True, working=True),
    ],
    reference=reference.gat,
    settings={"negative_slope": 0.2},
    backends=("cpu", "gpu"),
    # The nodes' scores, of sources and of targets.
    state=("SH", "TH"),
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
        Input("theta", "H", optional=True, working=True),
    ],
    reference=reference.gatv2,
    settings={"negative_slope": 0.2},
    backends=("cpu", "gpu"),
    expand=_project_edges,
)
DOT_PRODUCT = register_attention(
    "dot_product",
    inputs=[
        Input("value", "SHC"),
        Input("key", "SHC"),
        Input("query", "THC"),
        Input("edge_x", "ED", optional=True, working=True),
        Input("edge_map", "HCD", optional=True, working=True),
        Input("temperature", "H", optional=True, working=True),
    ],
    reference=reference.dot_product,
    settings={"scale": 1.0},
    backends=("cpu", "gpu"),
    # The sums of edge features times the weights.
    state=("THD",),
)
