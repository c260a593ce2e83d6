"""The fused attention ops, registered with torch once for all devices.

`tempergat::gat_forward` and its three siblings are ordinary torch ops: they have
shapes without data (`torch.compile`), gradients, and a `vmap` rule that folds the
batch into the heads, so that many models on one graph are one call with more heads.
The work is done by `ops/cpu.py` and `ops/gpu.py`, whose functions take the same
arguments, with the edges as `Rows`.

Shape suffixes: E edges, S source nodes, T target nodes, H heads, C channels.
An absent result is a tensor with no rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempergat.ops.cpu import library as cpu
from tempergat.ops.graph import Graph, Rows
from tempergat.ops.registration import (
    call,
    fold,
    refuse_second_derivative,
    register,
    save_nothing,
)
from tempergat.ops.torch_internals import in_forward_mode, is_exporting


def refusal(backend: str, graph: Graph, z: Tensor) -> str | None:
    """Why a fused backend cannot serve a call; None when it can."""
    if is_exporting():
        return "an exported program holds plain PyTorch only"
    if z.device != graph.device:
        return f"the features are on {z.device}, the graph on {graph.device}"
    if in_forward_mode():
        return "forward-mode differentiation goes through the reference"
    if backend == "cpu":
        return cpu.refusal(graph, z)
    if z.device.type != "cuda":
        return f"the features are on {z.device}, not on a CUDA device"
    reason: str | None = _gpu().refusal(graph, z)
    return reason


def gat(
    graph: Graph,
    z_SHC: Tensor,
    score_src_SH: Tensor,
    score_dst_TH: Tensor | None,
    edge_score_EH: Tensor | None,
    negative_slope: float,
    dropout: float,
    dropout_seed_H: Tensor | None,
    return_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """`reference.gat` by a fused kernel."""
    scores = (score_src_SH, score_dst_TH, edge_score_EH)
    work = _working_dtype(z_SHC, *scores)
    z = z_SHC.to(work) if work == torch.float64 else z_SHC
    out, _, weights = call(
        "gat_forward",
        z,
        *(None if s is None else s.to(work) for s in scores),
        dropout_seed_H if dropout > 0.0 else None,
        *_edges(graph),
        negative_slope,
        dropout,
        return_weights,
    )
    return out.to(z_SHC.dtype), weights if return_weights else None


def gatv2(
    graph: Graph,
    z_src_SHC: Tensor,
    z_dst_THC: Tensor,
    att_HC: Tensor,
    edge_EHC: Tensor | None,
    negative_slope: float,
    dropout: float,
    dropout_seed_H: Tensor | None,
    return_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """`reference.gatv2` by a fused kernel."""
    work = _working_dtype(z_src_SHC, z_dst_THC, att_HC, edge_EHC)
    stored = torch.promote_types(z_src_SHC.dtype, z_dst_THC.dtype)
    if edge_EHC is not None:
        stored = torch.promote_types(stored, edge_EHC.dtype)
    if work == torch.float64:
        stored = work
    out, _, weights = call(
        "gatv2_forward",
        z_src_SHC.to(stored),
        z_dst_THC.to(stored),
        att_HC.to(work),
        None if edge_EHC is None else edge_EHC.to(stored),
        dropout_seed_H if dropout > 0.0 else None,
        *_edges(graph),
        negative_slope,
        dropout,
        return_weights,
    )
    return out.to(z_src_SHC.dtype), weights if return_weights else None


def _working_dtype(*tensors: Tensor | None) -> torch.dtype:
    """What logits and sums are held in: float64 as soon as an argument is."""
    given = [t.dtype for t in tensors if t is not None]
    return torch.float64 if torch.float64 in given else torch.float32


def _edges(graph: Graph) -> tuple[Tensor | None, ...]:
    # Only a backward pass needs the edges by source.
    by_source = graph.by_source if torch.is_grad_enabled() else (None,) * 4
    return (*graph.by_target, *by_source)


def _gpu() -> Any:
    # Triton exists only where there is a GPU, and takes long to import.
    from tempergat.ops import gpu

    return gpu


class _Kind(NamedTuple):
    """One pair of ops: what it takes, and where each tensor has its heads."""

    name: str
    takes: str
    heads_at: tuple[int, ...]
    working: int

    @property
    def schemas(self) -> tuple[str, str]:
        takes = f"{self.takes}, Tensor? dropout_seed"
        edges = ", ".join(
            f"Tensor{mark} {side}_{part}"
            for side, mark in (("target", ""), ("source", "?"))
            for part in Rows._fields
        )
        settings = "float negative_slope, float dropout"
        return (
            f"{self.name}_forward({takes}, {edges}, {settings}, bool weights)"
            " -> (Tensor, Tensor, Tensor)",
            f"{self.name}_backward(Tensor dout, Tensor? dweights, {takes}, "
            f"Tensor out, Tensor lse, {edges}, {settings})"
            " -> (Tensor, Tensor, Tensor, Tensor)",
        )


_KINDS = (
    _Kind(
        "gat",
        "Tensor z, Tensor score_src, Tensor? score_dst, Tensor? edge_score",
        heads_at=(1, 1, 1, 1, 0),
        working=1,
    ),
    _Kind(
        "gatv2",
        "Tensor z_src, Tensor z_dst, Tensor att, Tensor? edge",
        heads_at=(1, 1, 0, 1, 0),
        working=2,
    ),
)


def _register(kind: _Kind) -> None:
    forward, backward = f"{kind.name}_forward", f"{kind.name}_backward"
    devices: dict[str, Callable[[], Any]] = {"CPU": lambda: cpu, "CUDA": _gpu}
    register(
        kind.schemas[0],
        {key: _run_forward(device, forward) for key, device in devices.items()},
        shapes=_forward_shapes(kind),
        save=_save,
        gradient=_gradient(backward),
        fold=_fold(forward, kind.heads_at, (1, 1, 1)),
    )
    register(
        kind.schemas[1],
        {key: _run_backward(device, backward) for key, device in devices.items()},
        shapes=_backward_shapes,
        save=save_nothing,
        gradient=refuse_second_derivative(
            "call tempergat.ops.reference, or have the layer build its messages "
            "(layer.register_message_forward_hook(lambda *_: None)): both can be "
            "differentiated any number of times"
        ),
        fold=_fold(backward, (1, 1, *kind.heads_at, 1, 1), kind.heads_at[:4]),
    )


def _run_forward(device: Callable[[], Any], name: str) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        tensors, by_target = arguments[:5], Rows(*arguments[5:9])
        slope, dropout, weights = arguments[13:]
        return getattr(device(), name)(*tensors, by_target, slope, dropout, weights)

    return run


def _run_backward(device: Callable[[], Any], name: str) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        tensors, slope, dropout = arguments[:9], *arguments[17:]
        by_target, by_source = Rows(*arguments[9:13]), Rows(*arguments[13:17])
        function = getattr(device(), name)
        return function(*tensors, by_target, by_source, slope, dropout)

    return run


def _forward_shapes(kind: _Kind) -> Callable[..., Any]:
    def shapes(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        z, working, weights = arguments[0], arguments[kind.working], arguments[-1]
        pointer, other = arguments[5:7]
        heads, channels = z.shape[1:]
        targets = pointer.size(0) - 1
        return (
            z.new_empty(targets, heads, channels),
            working.new_empty(targets, heads),
            working.new_empty(other.size(0) if weights else 0, heads),
        )

    return shapes


def _backward_shapes(_: Any, __: Any, *arguments: Any) -> tuple[Tensor, ...]:
    first, second, *others = arguments[:4]
    gradients = [first.new_empty(first.shape), second.new_empty(second.shape)]
    for x in others:
        gradients.append(empty_gradient(x, second))
    return tuple(gradients)


def empty_gradient(x: Tensor | None, like: Tensor) -> Tensor:
    """An uninitialised gradient of x: without rows, shaped like ``like``, if None."""
    if x is None:
        return like.new_empty(0, *like.shape[1:])
    return x.new_empty(x.shape)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    out, lse, _ = output
    ctx.mark_non_differentiable(lse)
    ctx.set_materialize_grads(False)
    ctx.settings = inputs[13:15]
    ctx.save_for_backward(*inputs[:5], out, lse, *inputs[5:13])


def _gradient(backward_name: str) -> Callable[..., Any]:
    def gradient(ctx: Any, dout: Any, _: Any, dweights: Any) -> Any:
        saved = ctx.saved_tensors
        if dout is None:
            dout = torch.zeros_like(saved[5])
        gradients = call(backward_name, dout, dweights, *saved, *ctx.settings)
        wanted = [
            gradient if x is not None else None
            for gradient, x in zip(gradients, saved[:4], strict=True)
        ]
        # The seed, the edges and the settings have none.
        return (*wanted, *[None] * 12)

    return gradient


def _fold(
    name: str, heads_at: tuple[int, ...], results_at: tuple[int, ...]
) -> Callable[..., Any]:
    """The vmap rule: a batch of calls is one call with that many times the heads."""

    def rule(info: Any, in_dims: Any, *arguments: Any) -> Any:
        size, count = info.batch_size, len(heads_at)
        folded = [
            None if x is None else fold(x, dim, axis, size)
            for x, dim, axis in zip(
                arguments[:count], in_dims[:count], heads_at, strict=True
            )
        ]
        results = call(name, *folded, *arguments[count:])
        unfolded = tuple(
            result.unflatten(axis, (size, -1))
            for result, axis in zip(results, results_at, strict=True)
        )
        return unfolded, results_at

    return rule


for _kind in _KINDS:
    _register(_kind)
