"""The models of some runs: stacked weights, or a list of modules.

Stacked, the parameters of all runs have a first dimension and the model is mapped over
it; the attention op folds that dimension into its heads. Runs share no arithmetic, so
one that diverges does not affect the others. Modules are trained one after the other:
those of users, which may do anything, and those that are trained on samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from tempergat.base import UserError
from tempergat.nn import METHODS, NodeClassifier, TypedNodeClassifier, gate_penalty
from tempergat.ops import fold_in
from tempergat.training.batches import Batch, BatchOfRuns
from tempergat.training.models import (
    State,
    explain_errors,
    initial_states,
    require_logits,
    seeded_generators,
    taken_edge_inputs,
    tensors_of,
)
from tempergat.training.optimizer import clip_gradients, clip_stacked
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import NodeClasses, Targets

Result = TypeVar("Result")

# Class scores of all runs: [runs, nodes, classes], or [nodes, classes] of each.
Logits = Tensor | list[Tensor]
# Added to the seed of a user's module in a scoring pass, where training adds the number
# of the step.
_SCORING = -1


class Runs:
    """What stacked runs and runs with modules have in common.

    Args:
        task: What is predicted.
        config: Settings of the runs.
        seeds: The seed of each run.
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

    @property
    def has_learned_values(self) -> bool:
        """Whether the models have temperatures or gates."""
        if self.is_own:
            return False
        return self.has_gates or METHODS[self.config.method].temperature is not None

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
        task: What is predicted.
        config: Settings of the runs.
        seeds: The seeds, one model each.
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
        batch: Batch,
        look: Callable[[NodeClassifier], Result],
        *,
        records_gates: bool = False,
    ) -> Result:
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

        def passed(state: State, seed: Tensor, x: Any, batch: Batch) -> Result:
            # Layers record their mean gates only where gradients are computed.
            with torch.set_grad_enabled(records_gates):
                self._call(state, x, batch)
            return look(self.model)

        self.model.eval()
        result = self._over_runs(passed, batch)
        assert not isinstance(result, list)
        return result

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


class ModuleRuns(Runs):
    """Runs with a module each, trained one after the other without vectorising.

    Args:
        task: What is predicted.
        config: Settings of the runs; those of the model itself have no effect on a
            user's own modules.
        seeds: The seeds, one module each.
        modules: The modules with their initial weights.
        example: A user's modules are called with it once: lazy layers draw their
            weights then.
        prefixed: Whether the names of parameters begin with the number of their run.

    Raises:
        UserError: A user's module cannot be called, returns something else than class
            scores, or has nothing to train.
    """

    def __init__(
        self,
        task: NodeClasses,
        config: RunConfig,
        seeds: Sequence[int],
        modules: Sequence[nn.Module],
        example: Batch | None = None,
        *,
        prefixed: bool = False,
    ) -> None:
        super().__init__(task, config, seeds, modules[0])
        self.modules: list[Any] = [module.to(task.device) for module in modules]
        self._seed_tensors = [torch.tensor(seed, device=task.device) for seed in seeds]
        if example is not None:
            with torch.no_grad():
                self.logits(example)
        self.parameters = {
            f"{run}.{name}" if prefixed else name: parameter
            for run, module in enumerate(self.modules)
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        }
        if not self.parameters:
            raise UserError(
                f"{config.method} has no parameters to train; give a module with some"
            )
        if isinstance(self.model, TypedNodeClassifier):
            # A step then costs the time of the nodes in its batch.
            for table in self.model.tables:
                table.sparse = True  # type: ignore[assignment]
            names = self.parameters
            self.tables = tuple(name for name in names if name.startswith("tables."))

    @property
    def state(self) -> State:
        """Parameters and buffers of all runs, [runs, ...] each."""
        states = [tensors_of(module) for module in self.modules]
        if len(states) == 1:
            return {name: value.unsqueeze(0) for name, value in states[0].items()}
        return {name: torch.stack([s[name] for s in states]) for name in states[0]}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Sets parameters and buffers of all runs to those of a `state`."""
        for run, module in enumerate(self.modules):
            for name, value in tensors_of(module).items():
                value.copy_(state[name][run])

    @contextmanager
    def at(self, state: State) -> Iterator[None]:
        """Gives the models other parameters and buffers inside the block."""
        current = {name: value.clone() for name, value in self.state.items()}
        self.load_state(state)
        try:
            yield
        finally:
            self.load_state(current)

    def backward(self, batch: BatchOfRuns, step: Tensor) -> Tensor:
        """Adds the gradients of each run's loss; returns the losses, [runs].

        Args:
            batch: What is trained on, shared by all runs or one for each.
            step: The number of the step since the runs began, 0-d int64; with a run's
                seed, it fixes dropout masks, or seeds the random numbers of a user's
                module.
        """
        losses = []
        for run, module in enumerate(self.modules):
            module.train()
            with self._user_code(run, step):
                one = batch[run] if isinstance(batch, list) else batch
                loss = self._loss(module, self._call(run, one, step), one)
                loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
        return torch.stack(losses)

    def clip_gradients(self, most: float) -> None:
        """Scales down the gradient of each run whose norm exceeds a limit."""
        for module in self.modules:
            clip_gradients(module.parameters(), most)

    def logits(self, batch: BatchOfRuns) -> list[Tensor]:
        """Class scores of all nodes of a batch in evaluation, for each run."""
        logits = []
        for run, module in enumerate(self.modules):
            module.eval()
            with self._user_code(run, _SCORING):
                one = batch[run] if isinstance(batch, list) else batch
                logits.append(self._call(run, one))
        return logits

    def _call(self, run: int, batch: Batch, step: Tensor | None = None) -> Tensor:
        module = self.modules[run]
        if self.is_own:
            x = batch.x[run] if batch.x_by_run else batch.x
            edges = taken_edge_inputs(module, batch.edge_inputs)
            logits = module(x, batch.edge_index, **edges)
            expected = [x.size(0), self.task.num_classes]
            return require_logits(self.config.method, logits, expected)
        seed = None if step is None else fold_in(self._seed_tensors[run], step)
        options = {"dropout_seed": seed, **batch.edge_inputs}
        scores: Tensor = module(batch.x, batch.graph, **options)
        return scores

    @contextmanager
    def _user_code(self, run: int, step: Tensor | int) -> Iterator[None]:
        """Seeds torch's generators for a user's module, and explains its errors."""
        if not self.is_own:
            yield
            return
        seed = int(fold_in(torch.tensor(self.seeds[run]), int(step)))
        with (
            seeded_generators(seed, self.task.device),
            explain_errors(self.config.method),
        ):
            yield
