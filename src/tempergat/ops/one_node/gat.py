"""GAT's attention with its temperature, without autograd."""

from __future__ import annotations

from torch import Tensor

from tempergat.ops.calls import Backward, Forward, Saved, Vectors
from tempergat.ops.one_node.gate import GateGradients
from tempergat.ops.one_node.records import (
    Attended,
    AttentionGradients,
    LayerOptions,
    LayerTensors,
)


def forward(
    given: LayerTensors, options: LayerOptions, z: Tensor, z_dst: Tensor | None
) -> Attended:
    """Scores of the nodes over the temperature, then attention."""
    scores = options.kernels("scores")
    if options.on_gpu:
        both = scores.forward(z, _vectors(given, options))
    else:
        vectors = (given.att, given.att_dst, given.theta)
        both = scores.forward(z, *vectors, options.number)
    call = Forward(
        (z, *both, None),
        options.seed,
        options.graph.by_target,
        None,
        (options.negative_slope,),
        options.dropout,
        weights=False,
    )
    out, lse, _ = options.kernels("gat").forward(call)
    return Attended(z, None, out, lse, *both)


def backward(
    given: LayerTensors, options: LayerOptions, attended: Attended, gated: GateGradients
) -> AttentionGradients:
    """The gradients from that of the output."""
    z, graph = attended.z, options.graph
    inputs = (z, attended.first, attended.second, None)
    rows = graph.by_target, graph.by_source
    saved = Saved(inputs, options.seed, attended.out, attended.lse, *rows)
    call = Backward(gated.out, None, saved, (options.negative_slope,), options.dropout)
    kernels, scores = options.kernels("gat"), options.kernels("scores")
    if options.on_gpu:
        dz, *dscores, _ = kernels.backward(call, gated.statistics)
        (datt, datt_dst, dtheta, _), sums = scores.backward(
            z, _vectors(given, options), dscores, dz, add=True, columns=gated.columns
        )
        return AttentionGradients(dz, None, datt, datt_dst, dtheta, sums)
    dz, *dscores, _ = kernels.backward(call)
    vectors = (given.att, given.att_dst, given.theta)
    more, datt, datt_dst, dtheta = scores.backward(dscores, z, *vectors, options.number)
    return AttentionGradients(dz.add_(more), None, datt, datt_dst, dtheta)


def _vectors(given: LayerTensors, options: LayerOptions) -> Vectors:
    return Vectors(given.att, given.att_dst, given.theta, options.number)
