"""One run that is trained on sampled batches: its model, its loss and its scores.

It has the interface of `SeedGroup`, with a single run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from tempergat.nn import METHODS, gate_penalty
from tempergat.ops import fold_in
from tempergat.training.evaluate import (
    Evaluation,
    cross_entropy,
    evaluate_parts,
    scores_of_parts,
)
from tempergat.training.initial_weights import single_model
from tempergat.training.optimizer import clip_gradients
from tempergat.training.sampled.layerwise import OnLayer, infer_layerwise
from tempergat.training.sampled.task import EVALUATION, BatchInputs, SampledTask
from tempergat.training.seeds import LayerValues, State, temperatures_of
from tempergat.training.settings.config import RunConfig
from tempergat.training.user_methods.user_code import (
    BuildModule,
    build_user_module,
    explain_errors,
    require_logits,
    seeded_generators,
    taken_edge_inputs,
    tensors_of,
)

# Added to the seed in a scoring pass, where training adds the number of the step.
_SCORING = -1


class SampledGroup:
    """The model of one run.

    Args:
        task: The features, edges and labels.
        config: Settings of the run.
        seed: Its seed.
        build: Builds a user's own module; None for the built-in methods.

    Attributes:
        seeds: The seed.
        model: The model.
        parameters: Its parameters that are trained, by name.
        tables: The names of those whose gradient is sparse.
    """

    # Batches differ in size.
    can_be_captured = False

    def __init__(
        self,
        task: SampledTask,
        config: RunConfig,
        seed: int,
        build: BuildModule | None = None,
    ) -> None:
        self.task = task
        self.config = config
        self.seeds: tuple[int, ...] = (seed,)
        self._seed_tensor = torch.tensor(seed, device=task.device)
        self._is_own = build is not None
        self.model: Any
        if build is None:
            self.model = single_model(
                config,
                task.in_channels,
                task.num_classes,
                seed,
                task.edge_dim,
                task.node_types,
            )
        else:
            self.model = build_user_module(
                build, config.method, task.in_channels, task.num_classes, seed
            )
        self.model.to(task.device)
        self._gated = build is None and METHODS[config.method].gate is not None
        self._parts = _Parts(task)
        if build is not None:
            self._make_lazy_weights()
        self.parameters: State = {
            name: parameter
            for name, parameter in self.model.named_parameters()
            if parameter.requires_grad
        }
        self.tables: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """Parameters and buffers of the run, [1, ...] each."""
        return {name: t.unsqueeze(0) for name, t in tensors_of(self.model).items()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Sets parameters and buffers to those of a `state`."""
        for name, value in tensors_of(self.model).items():
            value.copy_(state[name][0])

    def clip_gradients(self, most: float) -> None:
        """Scales down the gradient of the run if its norm exceeds a limit."""
        clip_gradients(self.parameters.values(), most)

    def loss(self, inputs: BatchInputs, step: Tensor) -> Tensor:
        """The loss of a batch, with gradients, 0-d.

        Args:
            inputs: The batch.
            step: The number of the step since the run began, 0-d int64; with the
                run's seed, it fixes the dropout masks.
        """
        self.model.train()
        logits = self.logits(inputs, step)
        total = cross_entropy(logits, inputs.labels, self.task.class_weights)
        if self._gated:
            total = total + self.config.gate_penalty * gate_penalty(self.model)
        return total

    def logits(self, inputs: BatchInputs, step: Tensor | None = None) -> Tensor:
        """Class scores of the seeds of a batch.

        Args:
            inputs: The batch.
            step: The number of the step in training; None in evaluation.
        """
        if self._is_own:
            number = _SCORING if step is None else int(step)
            with self._user_code(number):
                found = self._call_own(inputs.x, inputs.edge_index, inputs.edge_inputs)
        else:
            seed = None if step is None else fold_in(self._seed_tensor, step)
            found = self.model(
                inputs.x, inputs.graph, dropout_seed=seed, **inputs.edge_inputs
            )
        return found[: inputs.num_seeds]

    @torch.no_grad()
    def scores(self) -> tuple[Tensor, Tensor]:
        """The validation loss, [1], and the scores, [1, splits]."""
        task, parts = self.task, self._parts
        logits = self._logits_of_parts()
        val_loss = cross_entropy(
            logits.index_select(0, parts.rows["val"]),
            task.labels["val"],
            task.class_weights,
        )
        scores = scores_of_parts(task.metric, logits, parts.rows, task.labels)
        return val_loss.double().unsqueeze(0), scores.unsqueeze(0)

    @torch.no_grad()
    def evaluation(self, state: State) -> Evaluation:
        """As `SeedGroup.evaluation`."""
        with self._at(state):
            logits = self._logits_of_parts()
        found = evaluate_parts(logits, self._parts.rows, self.task.labels)
        scores = {name: score.unsqueeze(0) for name, score in found.scores.items()}
        return Evaluation(found.confusion.unsqueeze(0), scores)

    @torch.no_grad()
    def layer_values(self, state: State) -> LayerValues:
        """Temperatures and mean gates at given parameters and buffers.

        Mean gates are over all nodes, or, where evaluation is sampled, over those of
        the batches.
        """
        nothing = torch.empty(1, 0, device=self.task.device)
        if self._is_own:
            return LayerValues(nothing, nothing)
        temperatures = temperatures_of(state, len(self.model.convs), nothing)
        if not self._gated:
            return LayerValues(temperatures, nothing)
        with self._at(state):
            means = self._mean_gates()
        return LayerValues(temperatures, means.unsqueeze(0))

    def _mean_gates(self) -> Tensor:
        convs: Any = self.model.convs
        gated = [number for number, conv in enumerate(convs) if conv.gate is not None]
        layers = len(convs)
        sums = torch.zeros(layers, dtype=torch.float64, device=self.task.device)
        counts = [0] * layers

        def add(number: int, conv: Any, h: Tensor) -> None:
            if number not in gated:
                return
            gate = conv.gate_values(h)
            sums[number] += gate.double().sum()
            counts[number] += gate.numel()

        def add_batch(inputs: BatchInputs) -> None:
            for number in gated:
                sums[number] += convs[number].gate_means.take() * inputs.num_seeds
                counts[number] += inputs.num_seeds

        if self.config.eval_batch_size is None:
            self._exact_logits(add)
        else:
            # Layers record their mean gates only where gradients are computed.
            with torch.enable_grad():
                self._sampled_logits(add_batch)
        return (sums / torch.tensor(counts, device=sums.device))[gated].float()

    def _logits_of_parts(self) -> Tensor:
        """Class scores of all nodes of the splits, ascending."""
        self.model.eval()
        if self.config.eval_batch_size is not None:
            return self._sampled_logits()
        return self._exact_logits()

    def _exact_logits(self, on_layer: OnLayer | None = None) -> Tensor:
        task = self.task
        if self._is_own:
            x = task.features.rows(torch.arange(task.num_nodes))
            with self._user_code(_SCORING):
                edges = task.edge_index.long().to(task.device)
                values = {k: v.to(task.device) for k, v in task.edge_inputs.items()}
                found = self._call_own(x, edges, values)
            return found[self._parts.nodes.to(found.device)]
        return infer_layerwise(
            self.model,
            task.features,
            task.topology,
            nodes=self._parts.nodes,
            edge_attr=task.edge_inputs.get("edge_attr"),
            edge_weight=task.edge_inputs.get("edge_weight"),
            on_layer=on_layer,
        )

    def _sampled_logits(
        self, on_batch: Callable[[BatchInputs], None] | None = None
    ) -> Tensor:
        config, task = self.config, self.task
        assert config.fanout is not None
        assert config.eval_batch_size is not None
        sampler = task.sampler(
            self._parts.nodes,
            config.fanout,
            config.eval_batch_size,
            self.seeds[0],
            training=False,
        )
        sampler.set_epoch(EVALUATION)
        labels = torch.zeros(self._parts.nodes.size(0), dtype=torch.int64)
        found = []
        self.model.eval()
        for batch in sampler:
            inputs = task.inputs(batch, labels)
            found.append(self.logits(inputs).detach())
            if on_batch is not None:
                on_batch(inputs)
        return torch.cat(found)

    def _call_own(
        self, x: Tensor, edge_index: Tensor, edge_inputs: Mapping[str, Tensor]
    ) -> Tensor:
        edges = taken_edge_inputs(self.model, edge_inputs)
        logits = self.model(x, edge_index, **edges)
        expected = [x.size(0), self.task.num_classes]
        return require_logits(self.config.method, logits, expected)

    @torch.no_grad()
    def _make_lazy_weights(self) -> None:
        """Calls a user's module once: lazy layers draw their weights then."""
        task = self.task
        x = task.features.rows(torch.arange(1))
        edges = torch.zeros(2, 1, dtype=torch.int64, device=task.device)
        values = {k: v[:1].to(task.device) for k, v in task.edge_inputs.items()}
        self.model.eval()
        with self._user_code(_SCORING):
            self._call_own(x, edges, values)

    @contextmanager
    def _user_code(self, step: int) -> Iterator[None]:
        seed = int(fold_in(torch.tensor(self.seeds[0]), step))
        with (
            seeded_generators(seed, self.task.device),
            explain_errors(self.config.method),
        ):
            yield

    @contextmanager
    def _at(self, state: State) -> Iterator[None]:
        """Gives the model other weights inside the block."""
        current = {name: value.clone() for name, value in self.state.items()}
        self.load_state(state)
        try:
            yield
        finally:
            self.load_state(current)


class _Parts:
    """The nodes of all splits together, each once.

    Attributes:
        nodes: The nodes, ascending, on the CPU.
        rows: For each split, the places of its nodes among them, on the device.
    """

    def __init__(self, task: SampledTask) -> None:
        self.nodes = torch.unique(torch.cat(list(task.nodes.values())))
        self.rows = {
            split: torch.searchsorted(self.nodes, found).to(task.device)
            for split, found in task.nodes.items()
        }
