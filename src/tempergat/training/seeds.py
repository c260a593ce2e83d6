"""Many seeds of one method as one vectorised computation.

Parameters of all seeds are stacked along a first dimension and the model is mapped
over it; the attention op folds that dimension into its heads. Seeds share no
arithmetic, so one that diverges does not affect the others. A single run is a group
of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from tempergat.base import UserError
from tempergat.nn import (
    METHODS,
    NodeClassifier,
    TypedFeatures,
    gate_penalty,
    temperature_of,
)
from tempergat.ops import Graph, fold_in
from tempergat.training.evaluate import (
    Evaluation,
    cross_entropy,
    evaluate_parts,
    scores_of_parts,
)
from tempergat.training.initial_weights import initial_states, single_model
from tempergat.training.optimizer import clip_stacked
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import Inputs, Targets, Task

if TYPE_CHECKING:
    from tempergat.training.preparation import Preparation

State = dict[str, Tensor]
Result = TypeVar("Result")

# A function of a run's state, seed, features and targets.
OfRun = Callable[[State, Tensor, Inputs, Task | Targets], Result]


@dataclass(frozen=True)
class LayerValues:
    """Values that the models of a group have learned, [runs, layers] each.

    Attributes:
        temperatures: Temperatures, averaged over heads; no columns for methods
            without.
        gate_means: Mean gates in evaluation; no columns for methods without.
    """

    temperatures: Tensor
    gate_means: Tensor


def temperatures_of(state: State, num_layers: int, nothing: Tensor) -> Tensor:
    """The temperatures of all runs, averaged over heads, [runs, layers].

    Args:
        state: Parameters and buffers, [runs, ...] each.
        num_layers: Number of layers.
        nothing: [runs, 0]; what is returned for methods without temperature.
    """
    names = [f"convs.{layer}.theta" for layer in range(num_layers)]
    found = [
        # [runs] or, with one temperature per head, [runs, heads].
        temperature_of(state[name].detach()).reshape(nothing.size(0), -1).mean(1)
        for name in names
        if name in state
    ]
    return torch.stack(found, dim=1) if found else nothing


def own_features(
    task: Task, seeds: Sequence[int], preparation: Preparation | None
) -> Tensor | None:
    """The features of each run, [seeds, nodes, in_channels]; None for the task's."""
    # A typed graph is refused before.
    if preparation is None or isinstance(task.x, TypedFeatures):
        return None
    return preparation.features_of(task.x, seeds)


class SeedGroup:
    """The models of several seeds, stacked.

    Args:
        task: The features, graph and labels.
        config: Settings of the runs.
        seeds: The seeds, one model each.
        preparation: What is done to features and model before; None for nothing.

    Attributes:
        seeds: The seed of each run.
        model: The model whose layers every run goes through.
        parameters: The models' parameters by name, [runs, ...] each.
        buffers: Their buffers, likewise.
    """

    # Every step does the same work on the same tensors and reads no value back.
    can_be_captured = True

    def __init__(
        self,
        task: Task,
        config: RunConfig,
        seeds: Sequence[int],
        preparation: Preparation | None = None,
    ) -> None:
        if not seeds:
            raise UserError("no seeds were given; give at least one")
        self.seeds = tuple(seeds)
        self.model = single_model(
            config,
            task.in_channels,
            task.num_classes,
            seeds[0],
            task.edge_dim,
            task.node_types,
        )
        if preparation is not None and preparation.model is not None:
            assert isinstance(task.graph, Graph)
            preparation.model(self.model, task.graph)
        self.task = task
        self.config = config
        state = {
            name: value.to(task.device)
            for name, value in initial_states(self.model, seeds).items()
        }
        # Its own parameters are not used from here on: every call replaces them.
        self.model.to(task.device)
        names = {name for name, _ in self.model.named_parameters()}
        self.parameters: State = {
            name: value.requires_grad_()
            for name, value in state.items()
            if name in names
        }
        self.buffers: State = {k: v for k, v in state.items() if k not in names}
        self._features = own_features(task, seeds, preparation)
        self._seed_tensor = torch.tensor(list(seeds), device=task.device)
        self._gated = METHODS[config.method].gate is not None

    @property
    def state(self) -> State:
        """Parameters and buffers of all runs, [runs, ...] each."""
        return {**self.parameters, **self.buffers}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Sets parameters and buffers of all runs to those of a `state`."""
        for name, value in self.state.items():
            value.copy_(state[name])

    def backward(self, step: Tensor) -> Tensor:
        """Adds the gradients of each run's training loss; returns the losses, [runs].

        Args:
            step: 0-d int64; with a run's seed, it fixes the run's dropout masks.
        """
        losses = self.losses(step)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        return losses.detach()

    def clip_gradients(self, most: float) -> None:
        """Scales down the gradient of each run whose norm exceeds a limit."""
        clip_stacked(self.parameters.values(), most)

    def losses(self, step: Tensor) -> Tensor:
        """Each seed's training loss, with gradients, [seeds].

        Args:
            step: 0-d int64; with a run's seed, it fixes the run's dropout masks.
        """

        def loss(
            state: State, seed: Tensor, x: Inputs, targets: Task | Targets
        ) -> Tensor:
            logits = self._logits(state, x, fold_in(seed, step))
            total = loss_on("train", logits, targets)
            if self._gated:
                penalty = gate_penalty(self.model)
                total = total + self.config.gate_penalty * penalty
            return total

        self.model.train()
        return self._over_runs(loss, self.state)

    @torch.no_grad()
    def scores(self) -> tuple[Tensor, Tensor]:
        """Each seed's validation loss, [seeds], and its scores, [seeds, splits]."""

        def evaluate(
            state: State, seed: Tensor, x: Inputs, targets: Task | Targets
        ) -> tuple[Tensor, Tensor]:
            logits = self._logits(state, x)
            val_loss = loss_on("val", logits, targets)
            return val_loss.double(), self._scores(logits, targets)

        self.model.eval()
        return self._over_runs(evaluate, self.state)

    @torch.no_grad()
    def evaluation(self, state: State) -> Evaluation:
        """Further scores of all runs at given parameters and buffers."""

        def evaluate(
            state: State, seed: Tensor, x: Inputs, targets: Task | Targets
        ) -> Evaluation:
            return evaluate_parts(self._logits(state, x), targets.nodes, targets.labels)

        self.model.eval()
        return self._over_runs(evaluate, state)

    @property
    def has_learned_values(self) -> bool:
        """Whether the method has temperatures or gates."""
        return self._gated or METHODS[self.config.method].temperature is not None

    def layer_values(self, state: State) -> LayerValues:
        """Temperatures and mean gates of all seeds at given parameters and buffers."""

        def gate_means(model: NodeClassifier) -> Tensor:
            convs: Any = model.convs
            gated = [conv for conv in convs if conv.gate is not None]
            return torch.stack([conv.gate_means.take() for conv in gated])

        nothing = torch.empty(len(self.seeds), 0, device=self.task.device)
        return LayerValues(
            temperatures_of(state, len(self.model.convs), nothing),
            self.observe(state, gate_means, records_gates=True)
            if self._gated
            else nothing,
        )

    def observe(
        self,
        state: State,
        look: Callable[[NodeClassifier], Result],
        *,
        records_gates: bool = False,
    ) -> Result:
        """Values that the layers of each run record in a forward pass in evaluation.

        Args:
            state: Parameters and buffers, like `Training.best`.
            look: Takes the model after the pass and returns what its layers, or
                forward hooks on them, have recorded.
            records_gates: Whether layers record their mean gates, which `look` then
                has to take: the next one who takes them would get these too.

        Returns:
            What `look` returned, for all runs: [runs, ...].
        """

        def passed(
            state: State, seed: Tensor, x: Inputs, targets: Task | Targets
        ) -> Result:
            # Layers record their mean gates only where gradients are computed.
            with torch.set_grad_enabled(records_gates):
                self._logits(state, x)
            return look(self.model)

        self.model.eval()
        return self._over_runs(passed, {k: v.detach() for k, v in state.items()})

    def _logits(
        self, state: State, x: Inputs, dropout_seed: Tensor | None = None
    ) -> Tensor:
        options = {"dropout_seed": dropout_seed, **self.task.edge_inputs}
        logits: Tensor = functional_call(
            self.model, state, (x, self.task.graph), options
        )
        return logits

    def _scores(self, logits: Tensor, targets: Task | Targets) -> Tensor:
        """A run's scores, [splits]."""
        metric = self.task.metric
        return scores_of_parts(metric, logits, targets.nodes, targets.labels)

    def _over_runs(self, function: OfRun[Result], state: State) -> Result:
        """A function of a run's state, seed, features and targets, for all runs."""
        task = self.task
        if self._features is None:
            mapped = vmap(
                lambda s, seed: function(s, seed, task.x, task), randomness="error"
            )
            result: Result = mapped(state, self._seed_tensor)
            return result
        prepared = vmap(
            lambda s, seed, x: function(s, seed, x, task), randomness="error"
        )
        result = prepared(state, self._seed_tensor, self._features)
        return result


def loss_on(part: str, logits: Tensor, targets: Task | Targets) -> Tensor:
    """A run's mean cross-entropy over the nodes of a part.

    Args:
        part: One of the splits.
        logits: Class scores of all nodes.
        targets: The run's nodes and labels.
    """
    chosen = logits.index_select(0, targets.nodes[part])
    return cross_entropy(chosen, targets.labels[part], targets.class_weights)
