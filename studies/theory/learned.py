"""What real layers learn that start from the paper's weights.

The projections and the attention vector stay fixed, except in the free variants. Then
only temperature, gate and classifier learn, and the logits remain the weighted l1
distance. All of it is in double precision: training with sharp attention makes rounding
grow, in single precision until another processor gives other rows.
"""

import copy
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, nn
from torch_geometric.data import Data

from studies.theory.model import GaussianNoise, Noise, Setting
from studies.theory.rows import Row, Table
from tempergat.data import csbm
from tempergat.nn import TemperGATv2Conv
from tempergat.training import seeded_weights

Gate = Literal["first", "post"] | None
Temperature = float | Literal["layer"]

# In double precision the sigmoid of this is 1, and that of its negative is 0.
SATURATED = 1e3
LEARNING_RATE = 0.05
GRID = tuple(2.0 ** (half / 2) for half in range(-6, 17))


class Variant(NamedTuple):
    """Which parameters a layer learns: `free` means all; T is 1 if not learned."""

    learns_temperature: bool
    gate: Gate = None
    oracle: bool = False
    free: bool = False


VARIANTS = {
    "fixed": Variant(False),
    "temperature": Variant(True),
    "gate_first": Variant(True, "first"),
    "post_gate": Variant(True, "post"),
    "oracle_fixed": Variant(False, "first", oracle=True),
    "oracle_temperature": Variant(True, "first", oracle=True),
    "free": Variant(True, free=True),
    "free_gate_first": Variant(True, "first", free=True),
}


def paper_layer(
    setting: Setting, temperature: Temperature, gate: Gate, *, oracle: bool
) -> TemperGATv2Conv:
    """A double-precision layer whose logits are the weighted l1 distance.

    The input of a layer with an oracle gate is the features followed by the masks of
    observed coordinates. Its projections read only the features and its gate only the
    masks: the gate is 1 where a coordinate was observed and 0 where it was lost. The
    input of other layers is the features, and their gates start near one half.
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


def learned_study(
    setting: Setting,
    noises: Sequence[Noise],
    *,
    nodes: int,
    seeds: Sequence[int],
    steps: int,
) -> Table:
    """Trains every variant on the same graphs, one for each seed.

    Returns:
        Means over seeds with 95 % t-intervals.
    """
    table: Table = []
    for noise in noises:
        graphs = {seed: sample_graph(setting, noise, nodes, seed) for seed in seeds}
        best = {
            oracle: [best_temperature(setting, g, oracle) for g in graphs.values()]
            for oracle in (False, True)
        }
        for name, variant in VARIANTS.items():
            # Without lost coordinates the oracle's gate is 1 everywhere.
            if variant.oracle and isinstance(noise, GaussianNoise):
                continue
            runs = [train(setting, g, variant, s, steps) for s, g in graphs.items()]
            row: Row = {"noise": str(noise), "variant": name}
            for column in ("temperature", "snr", "accuracy"):
                row |= _over_seeds(column, [run[column] for run in runs])
            row |= _over_seeds("snr_best_temperature", best[variant.oracle])
            for column in ("gate_observed", "gate_lost"):
                row |= _over_seeds(column, [run[column] for run in runs])
            table.append(row | {"graphs": len(runs)})
    return table


class _Classifier(nn.Module):
    def __init__(self, layer: TemperGATv2Conv) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(layer.out_channels, 2, dtype=torch.float64)

    def forward(self, inputs: Tensor, edge_index: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layer(inputs, edge_index))
        return logits


def train(
    setting: Setting, data: Data, variant: Variant, seed: int, steps: int
) -> dict[str, float]:
    """Trains one variant and tests it at its lowest validation loss."""
    oracle, gate = variant.oracle, variant.gate
    start: Temperature = "layer" if variant.learns_temperature else 1.0
    with seeded_weights(seed):
        layer = paper_layer(setting, start, gate, oracle=oracle)
        model = _Classifier(layer)
    for name, parameter in layer.named_parameters():
        learns = name.startswith("lin_gate") and not oracle
        parameter.requires_grad_(learns or name == "theta" or variant.free)
    inputs, labels = _inputs(data, oracle), data.y
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=LEARNING_RATE)
    lowest, best_state = float("inf"), model.state_dict()
    for _ in range(steps):
        logits = model(inputs, data.edge_index)
        losses = F.cross_entropy(logits, labels, reduction="none")
        validation = float(losses[data.val_mask].detach().mean())
        if validation < lowest:
            lowest, best_state = validation, copy.deepcopy(model.state_dict())
        optimizer.zero_grad()
        torch.autograd.backward(losses[data.train_mask].mean())
        optimizer.step()
    model.load_state_dict(best_state)
    with torch.no_grad():
        right = model(inputs, data.edge_index).argmax(dim=1) == labels
        observed, lost = _gate_means(layer, inputs, data, variant)
        return {
            "temperature": float(layer.temperature),
            "snr": label_snr(layer, inputs, data),
            "accuracy": float(right[data.test_mask].double().mean()),
            "gate_observed": observed,
            "gate_lost": lost,
        }


def label_snr(layer: TemperGATv2Conv, inputs: Tensor, data: Data) -> float:
    """The paper's SNR over test nodes with more than one neighbour."""
    _, ((source, target), attention) = layer(
        inputs, data.edge_index, return_attention_weights=True
    )
    sign = 2 * data.y.double() - 1
    score = torch.zeros_like(sign)
    score.index_add_(0, target, attention.squeeze(1) * sign[source])
    degree = torch.bincount(target, minlength=len(sign))
    kept = data.test_mask & (degree > 1)
    above, below = score[kept & (data.y == 1)], score[kept & (data.y == 0)]
    return float((above.mean() - below.mean()) / (above.var() + below.var()).sqrt())


def best_temperature(setting: Setting, data: Data, oracle: bool) -> float:
    """The temperature with the highest label SNR, for the paper's logits."""
    gate: Gate = "first" if oracle else None
    layers = (paper_layer(setting, t, gate, oracle=oracle) for t in GRID)
    with torch.no_grad():
        snr = [label_snr(layer, _inputs(data, oracle), data) for layer in layers]
    return float(GRID[int(np.argmax(snr))])


def _inputs(data: Data, oracle: bool) -> Tensor:
    parts = [data.x, data.observed] if oracle else [data.x]
    return torch.cat([part.double() for part in parts], dim=1)


def _gate_means(
    layer: TemperGATv2Conv, inputs: Tensor, data: Data, variant: Variant
) -> tuple[float, float]:
    """Mean gate on observed and on lost coordinates; NaN where there is none."""
    if variant.gate is None:
        return float("nan"), float("nan")
    gate = layer.gate_values(inputs)
    assert isinstance(gate, Tensor)
    observed = torch.cat([data.observed, data.observed], dim=1).bool()
    return float(gate[observed].mean()), float(gate[~observed].mean())


def sample_graph(setting: Setting, noise: Noise, nodes: int, seed: int) -> Data:
    """A graph whose neighbourhoods follow a setting, on average."""
    scale = 2 * setting.degree.counts[0] / (setting.a + setting.b)
    data: Data = csbm(
        n=nodes,
        a=setting.a * scale,
        b=setting.b * scale,
        mu=setting.signal,
        d=len(setting.signal),
        seed=seed,
        **({"sigma": 0.0} | noise._asdict()),
    ).data
    return data


def _over_seeds(name: str, values: Sequence[float]) -> Row:
    """Mean and 95 % t-interval."""
    array = np.asarray(values)
    mean = float(array.mean())
    error = float(array.std(ddof=1)) / len(array) ** 0.5
    half = float(stats.t.ppf(0.975, len(array) - 1)) * error
    return {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}
