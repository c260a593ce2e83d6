"""Runs with stacked weights, and what they share with runs that have a module each.

The parameters of all runs have a first dimension and the model is mapped over it; the
attention op folds that dimension into its heads. Runs share no arithmetic, so one that
diverges does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from tempergat.nn import METHODS, NodeClassifier, gate_penalty
from tempergat.ops import fold_in
from tempergat.training.graphs.batches import Batch, BatchOfRuns
from tempergat.training.optimizer import clip_stacked
from tempergat.training.runs.models import State, initial_states
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import NodeClasses, Targets

Result = TypeVar("Result")

# Class scores of all runs: [runs, nodes, classes], or [nodes, classes] of each.
Logits = Tensor | list[Tensor]


class Runs:
    """What stacked runs and runs with modules have in common.

    Args:
        model: The model of the first run.

    Attributes:
        parameters: The parameters that are trained, by name.
        tables: The names of those whose gradient is sparse.
        can_be_captured: Whether every step does the same work on the same tensors and
            reads no value back.
        is_own: Whether the models are a user's own modules.
        has_gates: Whether they have feature gates.
    """

    parameters: State
    tables: tuple[str, ...] = ()
    can_be_captured = False

    def __init__(
        self, task: NodeClasses, config: RunConfig, seeds: Sequence[int], model: Any
    ) -> None:
        self.task = task
        self.config = config
        self.seeds = tuple(seeds)
        self.model = model
        self.is_own = config.source_hash is not None
        self.has_gates = not self.is_own and METHODS[config.method].gate is not None

    def each(
        self,
        function: Callable[[Tensor, Targets], State],
        logits: Logits,
        targets: Targets | list[Targets],
    ) -> State:
        """What a function returns for each run, [runs, ...].

        Args:
            function: Takes a run's class scores and targets.
            logits: The class scores of all runs.
            targets: The targets of all runs, or those of each.
        """
        if isinstance(targets, list):
            of_runs = list(map(function, logits, targets))
        elif isinstance(logits, list):
            of_runs = [function(of_run, targets) for of_run in logits]
        else:
            mapped = vmap(lambda of_run: function(of_run, targets), randomness="error")
            stacked: State = mapped(logits)
            return stacked
        return {name: torch.stack([r[name] for r in of_runs]) for name in of_runs[0]}

    def _loss(self, model: nn.Module, logits: Tensor, batch: Batch) -> Tensor:
        """The loss of one run, 0-d."""
        chosen = logits[: batch.labels.size(0)]
        if batch.rows is not None:
            chosen = logits.index_select(0, batch.rows)
        if not batch.labels.size(0):
            # A process may have no nodes of a batch.
            loss = logits.sum() * 0.0
        else:
            loss = self.task.loss(chosen, batch.labels)
            if batch.share is not None:
                loss = loss * batch.share
        if self.has_gates:
            factor = self.config.gate_penalty * batch.share_of_rows
            loss = loss + factor * gate_penalty(model)
        return loss


class StackedRuns(Runs):
    """Runs of a built-in method as one vectorised computation.

    Args:
        model: The model whose layers every run goes through.

    Attributes:
        parameters: The models' parameters by name, [runs, ...] each.
        buffers: Their buffers, likewise.
    """

    can_be_captured = True
    model: NodeClassifier

    def __init__(
        self,
        task: NodeClasses,
        config: RunConfig,
        seeds: Sequence[int],
        model: NodeClassifier,
    ) -> None:
        super().__init__(task, config, seeds, model)
        state = {
            name: value.to(task.device)
            for name, value in initial_states(model, seeds).items()
        }
        # Its own parameters are not used from here on: every call replaces them.
        model.to(task.device)
        names = {name for name, _ in model.named_parameters()}
        self.parameters = {
            name: value.requires_grad_()
            for name, value in state.items()
            if name in names
        }
        self.buffers: State = {k: v for k, v in state.items() if k not in names}
        self._other_state: State | None = None
        self._seed_tensor = torch.tensor(list(seeds), device=task.device)

    @property
    def state(self) -> State:
        """Parameters and buffers of all runs, [runs, ...] each."""
        return {**self.parameters, **self.buffers}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Sets parameters and buffers of all runs to those of a `state`."""
        for name, value in self.state.items():
            value.copy_(state[name])

    @contextmanager
    def at(self, state: State) -> Iterator[None]:
        """Gives the models other parameters and buffers inside the block."""
        self._other_state = {name: value.detach() for name, value in state.items()}
        try:
            yield
        finally:
            self._other_state = None

    def backward(self, batch: BatchOfRuns, step: Tensor) -> Tensor:
        """Adds the gradients of each run's loss; returns the losses, [runs].

        Args:
            batch: What is trained on, shared by all runs or one for each.
            step: The number of the step since the runs began, 0-d int64; with a run's
                seed, it fixes the run's dropout masks.
        """
        losses = self.losses(batch, step)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        return losses.detach()

    def losses(self, batch: BatchOfRuns, step: Tensor) -> Tensor:
        """Each run's loss at a step, with gradients, [runs]."""

        def loss(state: State, seed: Tensor, x: Any, batch: Batch) -> Tensor:
            logits = self._call(state, x, batch, fold_in(seed, step))
            return self._loss(self.model, logits, batch)

        self.model.train()
        losses = self._over_runs(loss, batch)
        return torch.stack(losses) if isinstance(losses, list) else losses

    def clip_gradients(self, most: float) -> None:
        """Scales down the gradient of each run whose norm exceeds a limit."""
        clip_stacked(self.parameters.values(), most)

    def logits(self, batch: BatchOfRuns) -> Logits:
        """Class scores of all nodes of a batch in evaluation, for each run."""

        def score(state: State, seed: Tensor, x: Any, batch: Batch) -> Tensor:
            return self._call(state, x, batch)

        self.model.eval()
        return self._over_runs(score, batch)

    def observe(
        self,
        batch: BatchOfRuns,
        look: Callable[[NodeClassifier], Tensor],
        *,
        records_gates: bool = False,
    ) -> Tensor:
        """Values that the layers of each run record in a forward pass in evaluation.

        Args:
            batch: What the models are called with.
            look: Takes the model after the pass and returns what its layers, or
                forward hooks on them, have recorded.
            records_gates: Whether layers record their mean gates, which `look` then
                has to take: the next one who takes them would get these too.

        Returns:
            What `look` returned, for all runs: [runs, ...].
        """

        def passed(state: State, seed: Tensor, x: Any, batch: Batch) -> Tensor:
            # Layers record their mean gates only where gradients are computed.
            with torch.set_grad_enabled(records_gates):
                self._call(state, x, batch)
            return look(self.model)

        self.model.eval()
        values = self._over_runs(passed, batch)
        return torch.stack(values) if isinstance(values, list) else values

    def _call(
        self, state: State, x: Any, batch: Batch, dropout_seed: Tensor | None = None
    ) -> Tensor:
        options = {"dropout_seed": dropout_seed, **batch.edge_inputs}
        logits: Tensor = functional_call(self.model, state, (x, batch.graph), options)
        return logits

    def _over_runs(
        self,
        function: Callable[[State, Tensor, Any, Batch], Result],
        batch: BatchOfRuns,
    ) -> Result | list[Result]:
        """A function of a run's state, seed, features and batch, for all runs.

        Runs with a batch each are called one after the other: the attention op folds
        runs into heads of one graph.
        """
        state = self.state if self._other_state is None else self._other_state
        if isinstance(batch, list):
            return [
                function({k: v[run] for k, v in state.items()}, seed, one.x, one)
                for run, (seed, one) in enumerate(
                    zip(self._seed_tensor, batch, strict=True)
                )
            ]
        own = (batch.x,) if batch.x_by_run else ()

        def of_run(state: State, seed: Tensor, *own: Tensor) -> Result:
            return function(state, seed, own[0] if own else batch.x, batch)

        mapped = vmap(of_run, randomness="error")
        result: Result = mapped(state, self._seed_tensor, *own)
        return result
