"""A real layer with the paper's weights, compared with the paper's formula."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from studies.theory.model import Setting
from studies.theory.rows import Table
from tempergat.nn import TemperGATv2Conv

Gate = Literal["first", "post"] | None

# In double precision the sigmoid of this is 1, and that of its negative is 0.
SATURATED = 1e3


def paper_layer(
    setting: Setting,
    temperature: float | Literal["layer"],
    gate: Gate,
    *,
    oracle: bool,
) -> TemperGATv2Conv:
    """A double-precision layer whose logits are the weighted l1 distance.

    The input of a layer with an oracle gate is the features followed by the masks of
    observed coordinates. Its projections read only the features and its gate only the
    masks: the gate is 1 where a coordinate was observed and 0 where it was lost. The
    input of other layers is the features, and their gates start near one half.

    Args:
        setting: Gives the weights of the distance.
        temperature: The softmax temperature, or "layer" for a learnable one.
        gate: Whether there is a gate, and before ("first") or after attention.
        oracle: Whether the gate is given the masks.
    """
    width = len(setting.weights)
    layer: TemperGATv2Conv = TemperGATv2Conv(
        2 * width if oracle else width,
        2 * width,
        add_self_loops=False,
        bias=False,
        temperature=temperature,
        gate=gate,
        gate_bias_init=0.0,
    ).double()
    weights = torch.diag(torch.tensor(setting.weights, dtype=torch.float64))
    with torch.no_grad():
        for projection, sign in ((layer.lin_l, -1.0), (layer.lin_r, 1.0)):
            projection.weight.zero_()
            projection.weight[:, :width] = sign * torch.cat([weights, -weights])
        layer.att.fill_(-1 / (1 - layer.negative_slope))
        if oracle and gate is not None:
            layer.lin_gate.weight.zero_()
            layer.lin_gate.weight[:width, width:].fill_diagonal_(2 * SATURATED)
            layer.lin_gate.weight[width:, width:].fill_diagonal_(2 * SATURATED)
            layer.lin_gate.bias.fill_(-SATURATED)
    return layer


def direct_attention(
    setting: Setting, features: Tensor, edge_index: Tensor, temperature: float
) -> Tensor:
    """The softmax of the negative weighted l1 distance, written out."""
    weights = torch.tensor(setting.weights, dtype=features.dtype)
    source, target = edge_index
    logit = -((features[target] - features[source]).abs() @ weights) / temperature
    table = torch.full((len(features), len(features)), -torch.inf, dtype=logit.dtype)
    table[target, source] = logit
    return table.softmax(dim=1)[target, source]


def layer_check(
    setting: Setting, temperatures: Sequence[float], *, nodes: int, seed: int
) -> Table:
    """Largest difference between a real layer's attention and the formula's.

    The formula takes the features; for the oracle gate before attention, lost
    coordinates are set to zero first.
    """
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(9,)))
    width = len(setting.weights)
    features = torch.from_numpy(random.standard_normal((nodes, width)))
    observed = torch.from_numpy(random.random((nodes, width)) < 0.5).double()
    linked = torch.from_numpy(random.random((nodes, nodes)) < 0.3)
    linked.fill_diagonal_(False)
    edge_index = linked.nonzero().T.contiguous()
    gates: tuple[tuple[str, Gate], ...] = (
        ("ungated", None),
        ("gate_first", "first"),
        ("post_gate", "post"),
    )
    table: Table = []
    for temperature in temperatures:
        for name, gate in gates:
            layer = paper_layer(setting, temperature, gate, oracle=True)
            inputs = torch.cat([features, observed], dim=1)
            with torch.no_grad():
                _, (edges, attention) = layer(
                    inputs, edge_index, return_attention_weights=True
                )
            shown = features * observed if gate == "first" else features
            expected = direct_attention(setting, shown, edges, temperature)
            difference = (attention.squeeze(1) - expected).abs().max()
            table.append(
                {
                    "variant": name,
                    "temperature": temperature,
                    "edges": edges.shape[1],
                    "largest_difference": float(difference),
                }
            )
    return table
