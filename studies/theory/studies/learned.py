"""Trains real layers on graphs, and compares the learned gate with the oracle.

All layers start from the paper's weights. The projections and the attention vector stay
fixed, except in the free variants. Then only temperature, gate and classifier learn,
and the logits remain the weighted l1 distance.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, nn
from torch_geometric.data import Data

from studies.theory.model import GaussianNoise, MissingNoise, Setting
from studies.theory.rows import Row, Table
from studies.theory.studies.layer import Gate, paper_layer
from tempergat.data import csbm
from tempergat.nn import TemperGATv2Conv
from tempergat.training import seeded_weights

LEARNING_RATE = 0.05
GRID = tuple(2.0 ** (half / 2) for half in range(-6, 17))


@dataclass(frozen=True)
class Variant:
    """Which parameters a layer learns.

    Args:
        name: Its name in the tables.
        learns_temperature: Whether T is learned; otherwise T = 1.
        gate: Whether there is a gate, and before or after attention.
        oracle: Whether the gate is given the masks of observed coordinates.
        free: Whether projections and attention vector are learned too.
    """

    name: str
    learns_temperature: bool
    gate: Gate = None
    oracle: bool = False
    free: bool = False


VARIANTS = (
    Variant("fixed", False),
    Variant("temperature", True),
    Variant("gate_first", True, "first"),
    Variant("post_gate", True, "post"),
    Variant("oracle_fixed", False, "first", oracle=True),
    Variant("oracle_temperature", True, "first", oracle=True),
    Variant("free", True, free=True),
    Variant("free_gate_first", True, "first", free=True),
)


@dataclass(frozen=True)
class Outcome:
    """One trained layer."""

    temperature: float
    snr: float
    accuracy: float
    gate_observed: float
    gate_lost: float


class _Classifier(nn.Module):
    def __init__(self, layer: TemperGATv2Conv) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(layer.out_channels, 2)

    def forward(self, inputs: Tensor, edge_index: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layer(inputs, edge_index))
        return logits


def learned_study(
    setting: Setting,
    noises: Sequence[GaussianNoise | MissingNoise],
    *,
    nodes: int,
    seeds: Sequence[int],
    steps: int,
    progress: Callable[[str], None] = lambda part: None,
) -> Table:
    """Trains every variant on the same graphs.

    Args:
        setting: Signal, weights and intensities; its degree is the mean degree of the
            graphs.
        noises: The noise on the features.
        nodes: Nodes of each graph.
        seeds: One graph and one initialisation each.
        steps: Training steps.
        progress: Called with a description of each graph before training on it.

    Returns:
        Means over seeds with 95 % t-intervals.
    """
    table: Table = []
    for noise in noises:
        # Without lost coordinates the oracle's gate is 1 everywhere.
        lossy = isinstance(noise, MissingNoise)
        variants = [variant for variant in VARIANTS if lossy or not variant.oracle]
        runs: dict[str, list[Outcome]] = {variant.name: [] for variant in variants}
        best: dict[bool, list[float]] = {False: [], True: []}
        for seed in seeds:
            progress(f"{_named(noise)}, graph {seed}")
            data = sample_graph(setting, noise, nodes, seed)
            for variant in variants:
                runs[variant.name].append(train(setting, data, variant, seed, steps))
            for oracle in best:
                best[oracle].append(best_temperature(setting, data, oracle))
        for variant in variants:
            row: Row = {"noise": _named(noise), "variant": variant.name}
            outcomes = runs[variant.name]
            for name in ("temperature", "snr", "accuracy"):
                row |= _over_seeds(name, [getattr(run, name) for run in outcomes])
            row |= _over_seeds("snr_best_temperature", best[variant.oracle])
            row |= _over_seeds("gate_observed", [run.gate_observed for run in outcomes])
            row |= _over_seeds("gate_lost", [run.gate_lost for run in outcomes])
            table.append(row | {"graphs": len(outcomes)})
    return table


def train(
    setting: Setting, data: Data, variant: Variant, seed: int, steps: int
) -> Outcome:
    """Trains one variant and tests it at its lowest validation loss."""
    with seeded_weights(seed):
        layer = paper_layer(
            setting,
            "layer" if variant.learns_temperature else 1.0,
            variant.gate,
            oracle=variant.oracle,
        ).float()
        model = _Classifier(layer)
    for name, parameter in layer.named_parameters():
        learns = name.startswith("lin_gate") and not variant.oracle
        parameter.requires_grad_(learns or name == "theta" or variant.free)
    inputs, labels = _inputs(data, variant.oracle), data.y
    optimizer = torch.optim.Adam(
        [p for p in model.parameters() if p.requires_grad], lr=LEARNING_RATE
    )
    lowest, best_state = float("inf"), model.state_dict()
    for _ in range(steps):
        losses = F.cross_entropy(
            model(inputs, data.edge_index), labels, reduction="none"
        )
        validation = float(losses[data.val_mask].detach().mean())
        if validation < lowest:
            lowest, best_state = validation, copy.deepcopy(model.state_dict())
        optimizer.zero_grad()
        torch.autograd.backward(losses[data.train_mask].mean())
        optimizer.step()
    model.load_state_dict(best_state)
    with torch.no_grad():
        right = model(inputs, data.edge_index).argmax(dim=1) == labels
        return Outcome(
            float(layer.temperature),
            label_snr(layer, inputs, data),
            float(right[data.test_mask].double().mean()),
            *_gate_means(layer, inputs, data, variant),
        )


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
    inputs = _inputs(data, oracle)
    with torch.no_grad():
        heights = [
            label_snr(
                paper_layer(setting, value, gate, oracle=oracle).float(), inputs, data
            )
            for value in GRID
        ]
    return float(GRID[int(np.argmax(heights))])


def _inputs(data: Data, oracle: bool) -> Tensor:
    if not oracle:
        return torch.as_tensor(data.x)
    return torch.cat([data.x, data.observed.float()], dim=1)


def _gate_means(
    layer: TemperGATv2Conv, inputs: Tensor, data: Data, variant: Variant
) -> tuple[float, float]:
    """Mean gate on observed and on lost coordinates; both NaN without a gate."""
    if variant.gate is None:
        return float("nan"), float("nan")
    gate = layer.gate_values(inputs)
    assert isinstance(gate, Tensor)
    observed = torch.cat([data.observed, data.observed], dim=1).bool()
    lost = gate[~observed]
    return float(gate[observed].mean()), (
        float(lost.mean()) if len(lost) else float("nan")
    )


def sample_graph(
    setting: Setting, noise: GaussianNoise | MissingNoise, nodes: int, seed: int
) -> Data:
    """A graph whose neighbourhoods follow a setting, on average."""
    mean_degree = setting.degree.counts[0]
    scale = 2 * mean_degree / (setting.a + setting.b)
    data: Data = csbm(
        n=nodes,
        a=setting.a * scale,
        b=setting.b * scale,
        mu=setting.signal,
        d=len(setting.signal),
        sigma=noise.sigma if isinstance(noise, GaussianNoise) else 0.0,
        rho=0.0 if isinstance(noise, GaussianNoise) else noise.rho,
        tau=1.0 if isinstance(noise, GaussianNoise) else noise.tau,
        seed=seed,
    ).data
    return data


def _named(noise: GaussianNoise | MissingNoise) -> str:
    if isinstance(noise, GaussianNoise):
        return f"gaussian sigma={noise.sigma:g}"
    return f"missing rho={noise.rho:g} tau={noise.tau:g}"


def _over_seeds(name: str, values: Sequence[float]) -> Row:
    """Mean and 95 % t-interval."""
    array = np.asarray(values)
    mean = float(array.mean())
    half = float("nan")
    if len(array) > 1:
        error = float(array.std(ddof=1)) / len(array) ** 0.5
        half = float(stats.t.ppf(0.975, len(array) - 1)) * error
    return {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}
