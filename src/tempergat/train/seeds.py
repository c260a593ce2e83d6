"""Many seeds of one method as one vectorised computation.

Parameters of all seeds are stacked along a first dimension and the model is mapped
over it; the attention op folds that dimension into its heads. Seeds share no
arithmetic, so one that diverges does not touch the others. A single run is a group of
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from tempergat.errors import UserError
from tempergat.nn.gate import gate_penalty
from tempergat.nn.methods import METHODS
from tempergat.nn.models import NodeClassifier, build_model
from tempergat.nn.temperature import temperature_of
from tempergat.ops.random import fold_in
from tempergat.train.config import RunConfig
from tempergat.train.evaluate import METRICS, cross_entropy
from tempergat.train.task import SPLITS, Task

State = dict[str, Tensor]
Result = TypeVar("Result")


@dataclass(frozen=True)
class LayerValues:
    """What the seeds of a group have learned, [seeds, layers] each.

    Attributes:
        temperatures: Temperatures; no columns for methods without.
        gate_means: Mean gates in evaluation; no columns for methods without.
    """

    temperatures: Tensor
    gate_means: Tensor


def single_model(
    config: RunConfig, in_channels: int, num_classes: int, seed: int
) -> NodeClassifier:
    """The model of one run before its first step; torch's generator is left alone.

    Raises:
        UserError: The seed or a setting is one that no model can be made with.
    """
    if not 0 <= seed < 2**63:
        raise UserError(f"seed is {seed}; give 0 or a positive number below 2**63")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return build_model(
                config.method,
                in_channels,
                config.hidden_channels,
                num_classes,
                config.num_layers,
                config.heads,
                out_heads=config.out_heads,
                dropout=config.feature_dropout,
                attention_dropout=config.attention_dropout,
                act=config.act,
                norm=config.norm,
                jk=config.jk,
                residual=config.residual,
                init_temp=config.init_temp,
                gate_bias_init=config.gate_bias_init,
            )
        except ValueError as error:
            raise UserError(f"settings of {config.method}: {error}") from error


class SeedGroup:
    """The models of several seeds, stacked.

    Args:
        task: What they learn.
        config: Their settings.
        seeds: The seeds, one model each.

    Attributes:
        parameters: The models' parameters by name, [seeds, ...] each.
        buffers: Their buffers, likewise.
    """

    def __init__(self, task: Task, config: RunConfig, seeds: Sequence[int]) -> None:
        if not seeds:
            raise UserError("no seeds were given; give at least one")
        models = [
            single_model(config, task.in_channels, task.num_classes, seed)
            for seed in seeds
        ]
        self.task = task
        self.config = config
        self.seeds = tuple(seeds)
        parameters, buffers = stack_module_state(models)
        self.parameters: State = {
            name: value.detach().to(task.device).requires_grad_()
            for name, value in parameters.items()
        }
        self.buffers: State = {
            name: value.to(task.device) for name, value in buffers.items()
        }
        # The values in it are never used: every call brings its own.
        self._model = models[0].to(task.device)
        self._seed_tensor = torch.tensor(self.seeds, device=task.device)
        self._gated = METHODS[config.method].gate is not None

    def losses(self, step: Tensor) -> Tensor:
        """Each seed's training loss, with gradients, [seeds].

        Args:
            step: 0-d int64; with a run's seed, it fixes the run's dropout masks.
        """
        task = self.task
        nodes, labels = task.nodes["train"], task.labels["train"]

        def loss(parameters: State, buffers: State, seed: Tensor) -> Tensor:
            logits = self._logits(parameters, buffers, fold_in(seed, step))
            total = cross_entropy(logits.index_select(0, nodes), labels)
            if self._gated:
                penalty = gate_penalty(self._model)
                total = total + self.config.gate_penalty * penalty
            return total

        self._model.train()
        return self._mapped(loss)(self.parameters, self.buffers, self._seed_tensor)

    @torch.no_grad()
    def scores(self) -> tuple[Tensor, Tensor]:
        """Each seed's validation loss, [seeds], and its scores, [seeds, splits]."""
        task = self.task
        metric = METRICS[task.metric]

        def evaluate(parameters: State, buffers: State) -> tuple[Tensor, Tensor]:
            logits = self._logits(parameters, buffers)
            val_loss = cross_entropy(
                logits.index_select(0, task.nodes["val"]), task.labels["val"]
            )
            predicted = logits.argmax(dim=-1)
            found = [
                metric(predicted.index_select(0, task.nodes[split]), task.labels[split])
                for split in SPLITS
            ]
            return val_loss.double(), torch.stack(found)

        self._model.eval()
        return self._mapped(evaluate)(self.parameters, self.buffers)

    def layer_values(self, state: State) -> LayerValues:
        """Temperatures and mean gates of all seeds at given parameters and buffers."""
        names = {*self.parameters}
        parameters = {k: v.detach() for k, v in state.items() if k in names}
        buffers = {k: v for k, v in state.items() if k not in names}
        layers = range(len(self._model.convs))
        thetas = [f"convs.{layer}.theta" for layer in layers]
        temperatures = [
            temperature_of(parameters[name]) for name in thetas if name in names
        ]

        def gate_means(parameters: State, buffers: State) -> Tensor:
            # Layers note their mean gates only where a gradient could come of it.
            with torch.enable_grad():
                self._logits(parameters, buffers)
            convs: Any = self._model.convs
            return torch.stack([conv.gate_means.take() for conv in convs])

        self._model.eval()
        nothing = torch.empty(len(self.seeds), 0, device=self.task.device)
        return LayerValues(
            torch.stack(temperatures, dim=1) if temperatures else nothing,
            self._mapped(gate_means)(parameters, buffers) if self._gated else nothing,
        )

    def _logits(
        self, parameters: State, buffers: State, dropout_seed: Tensor | None = None
    ) -> Tensor:
        logits: Tensor = functional_call(
            self._model,
            (parameters, buffers),
            (self.task.x, self.task.graph),
            {"dropout_seed": dropout_seed},
        )
        return logits

    def _mapped(self, function: Callable[..., Result]) -> Callable[..., Result]:
        mapped: Callable[..., Result] = vmap(function, randomness="error")
        return mapped
