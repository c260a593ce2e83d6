"""Runs with stacked weights, and what they share with runs that have a module each.

The parameters of all runs have a first dimension and the model is mapped over it; the
attention op folds that dimension into its heads. Runs share no arithmetic, so one that
diverges does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from tempergat.nn import METHODS, NodeClassifier, gate_penalty
from tempergat.ops import fold_in
from tempergat.training.examples import Judged
from tempergat.training.graphs.batches import Batch
from tempergat.training.optimizer import clip_stacked
from tempergat.training.runs.models import State, initial_states
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import NodeClasses


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

    def refuse_hidden_changes(self) -> None:
        """Refuses a user's module that changes its input where torch does not see it.

        Raises:
            UserError: It does.
        """

    def each(
        self,
        function: Callable[[Tensor, Judged], State],
        logits: Tensor | list[Tensor],
        judged: Judged,
    ) -> State:
        """What a function of a run's class scores and targets returns, [runs, ...].

        Args:
            function: The function.
            logits: The class scores of all runs.
            judged: What they are judged by.
        """
        if isinstance(logits, Tensor):
            stacked: State = vmap(lambda of_run: function(of_run, judged))(logits)
            return stacked
        results = [function(of_run, judged) for of_run in logits]
        return {name: torch.stack([r[name] for r in results]) for name in results[0]}

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

    def backward(self, batch: Batch, step: Tensor) -> Tensor:
        """Adds the gradients of each run's loss; returns the losses, [runs].

        Args:
            batch: What is trained on.
            step: The number of the step since the runs began, 0-d int64; with a run's
                seed, it fixes the run's dropout masks.
        """
        self.model.train()
        losses = self._over_runs(partial(self._loss, self.model), batch, step)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        return losses.detach()

    def clip_gradients(self, most: float) -> None:
        """Scales down the gradient of each run whose norm exceeds a limit."""
        clip_stacked(self.parameters.values(), most)

    def logits(self, batch: Batch) -> Tensor:
        """Class scores of a batch in evaluation, [runs, nodes, classes]."""
        self.model.eval()
        return self._over_runs(lambda logits, _: logits, batch)

    def observe(
        self,
        batch: Batch,
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
        self.model.eval()
        # Layers record their mean gates only where gradients are computed.
        with torch.set_grad_enabled(records_gates):
            return self._over_runs(lambda *_: look(self.model), batch)

    def _over_runs(
        self,
        function: Callable[[Tensor, Batch], Tensor],
        batch: Batch,
        step: Tensor | None = None,
    ) -> Tensor:
        """What a function of a run's class scores and batch returns, [runs, ...].

        Args:
            step: The number of the step in training; None in evaluation.
        """

        def of_run(state: State, seed: Tensor, *own: Tensor) -> Tensor:
            x = own[0] if own else batch.x
            dropout_seed = None if step is None else fold_in(seed, step)
            options = {"dropout_seed": dropout_seed, **batch.edge_inputs}
            logits = functional_call(self.model, state, (x, batch.graph), options)
            return function(logits, batch)

        state = self.state if self._other_state is None else self._other_state
        # Shared features are no argument: vmap would take sparse ones apart each time.
        own = (batch.x,) if batch.x_by_run else ()
        values: Tensor = vmap(of_run)(state, self._seed_tensor, *own)
        return values
