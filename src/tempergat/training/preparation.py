"""What is done to the features and the model before a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.data import Dataset, gaussian, missing
from tempergat.nn import Features, NodeClassifier
from tempergat.ops import Graph
from tempergat.training.record import CLEAN, Condition, MatmulPrecision
from tempergat.training.runs.user_modules import callable_name, source_hash
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import refuse_typed

if TYPE_CHECKING:
    from tempergat.training.results import Measure


@dataclass(frozen=True)
class Preparation:
    """What is done to the features and the model before a run, full-batch.

    Attributes:
        condition: What runs are stored under. When left out, the name of the functions
            and a hash of their source: edited functions give other runs.
        features: Takes the features after the recipe's normalisation or scaling, dense
            [nodes, channels] on the CPU, and a run's seed; returns the features of that
            run, of the same shape. All methods get the same.
        model: Takes the model of a built-in method and the edges on the device, and
            changes the model in place before its weights are drawn.
        measure: Takes the group and its parameters and buffers at some epoch and
            returns for each run further attributes of its `LayerRecord`.
        matmul_precision: torch's precision of float32 matrix products on a GPU.
        epochs: Epochs at which learned values are recorded, from 1, together with the
            epochs that the selection rules choose and the last one.
    """

    condition: Condition | None = None
    features: Callable[[Tensor, int], Tensor] | None = None
    model: Callable[[NodeClassifier, Graph], None] | None = None
    measure: Measure | None = None
    matmul_precision: MatmulPrecision = "highest"
    epochs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.condition is None:
            done = [part for part in (self.features, self.model) if part is not None]
            names = [f"{callable_name(part)} {source_hash(part)[:8]}" for part in done]
            condition = Condition(change=" and ".join(names)) if names else CLEAN
            object.__setattr__(self, "condition", condition)

    @property
    def stored_condition(self) -> Condition | None:
        """The condition as runs have it: None for clean features and models."""
        return None if self.condition == CLEAN else self.condition

    def refuse_other_training(self, dataset: Dataset, config: RunConfig) -> None:
        """Refuses runs that cannot be prepared.

        Raises:
            UserError: The graph has types, the training is sampled, or the model of a
                user's own module would be changed.
        """
        refuse_typed(dataset, "a preparation (--noise; noise or prepare in Python)")
        if config.training != "full":
            raise UserError(
                f"{config.method} is trained on samples, and features are prepared "
                "(--noise; noise or prepare in Python) for full-batch training; leave "
                "out one of them"
            )
        if self.model is not None and config.source_hash is not None:
            raise UserError(
                f"{config.method} is your own module, and only built-in models are "
                "changed by a preparation; give the changed module as a method"
            )

    def features_of(self, x: Features, seeds: Sequence[int]) -> Tensor | None:
        """The features of each seed's run, [seeds, nodes, channels].

        They are on the device of the graph's features; None where all runs have those.

        Raises:
            UserError: They have another shape.
        """
        if self.features is None:
            return None
        clean = (x if isinstance(x, Tensor) else x.to_dense()).cpu()
        # Node by node, as all runs' features are read.
        features = torch.empty(clean.size(0), len(seeds), clean.size(1))
        for place, seed in enumerate(seeds):
            # A copy, because a function may work in place.
            prepared = self.features(clean.clone(), seed)
            if prepared.shape != clean.shape:
                raise UserError(
                    f"prepared features have shape {list(prepared.shape)}; return "
                    f"those of all nodes, {list(clean.shape)}"
                )
            features[:, place] = prepared
        return features.transpose(0, 1).to(x.device)


def noise_on_features(condition: Condition) -> Preparation:
    """Noise on the features; under one kind of noise, levels share a seed's draws.

    Of both kinds, Gaussian noise comes first, and is lost where a value is. Each kind
    has the draws that it has alone, in units of the RMS of the features without noise.
    """

    def features(x: Tensor, seed: int) -> Tensor:
        unit = float(x.double().square().mean().sqrt())
        if condition.gaussian_sigma:
            x = gaussian(x, condition.gaussian_sigma * unit, seed)
        if condition.noise in ("missing", "both"):
            x, _ = missing(x, condition.level, (condition.tau or 0.0) * unit, seed)
        return x

    return Preparation(condition, features)


def parse_noise(noise: str | Sequence[str]) -> Preparation:
    """The noise of `gaussian:0.5`, of `missing:0.3,tau=1`, or of one of each.

    Raises:
        UserError: There is no such kind of noise, a level is out of range, or a kind is
            given twice.
    """
    parts: dict[str, Condition] = {}
    for text in [noise] if isinstance(noise, str) else noise:
        part = _one_noise(text)
        if part.noise in parts:
            raise UserError(f"{part.noise} noise is given twice; give each kind once")
        parts[part.noise] = part
    if not parts:
        raise UserError("no noise is given; give gaussian:LEVEL, missing:LEVEL or both")
    condition, *_ = parts.values()
    if len(parts) > 1:
        sigma = parts["gaussian"].level
        condition = replace(parts["missing"], noise="both", sigma=sigma)
    return noise_on_features(condition)


def _one_noise(text: str) -> Condition:
    kind, _, numbers = text.partition(":")
    number, has_tau, deviation = numbers.partition(",tau=")
    if kind == "gaussian" and has_tau:
        raise UserError(
            f"the noise is {text[:40]!r}, and tau is the deviation of what stands in "
            "place of lost values; give it with missing:LEVEL"
        )
    try:
        level, tau = float(number), float(deviation) if has_tau else 0.0
    except ValueError:
        level = tau = math.nan
    if kind == "gaussian" and 0.0 < level < math.inf:
        return Condition("gaussian", level)
    if kind == "missing" and 0.0 < level <= 1.0 and 0.0 <= tau < math.inf:
        return Condition("missing", level, tau)
    raise UserError(
        f"the noise is {text[:40]!r}; give gaussian:LEVEL with its deviation over the "
        "root mean square of the features, above 0, or missing:LEVEL with the share of "
        "values lost, above 0 and at most 1, and ,tau=TAU after it for noise in their "
        "place, at least 0"
    )
