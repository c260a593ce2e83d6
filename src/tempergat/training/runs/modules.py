"""Runs with a module each: those of users, and those that are trained on samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.base import UserError, is_out_of_memory
from tempergat.nn import TypedNodeClassifier
from tempergat.ops import fold_in
from tempergat.training.graphs.batches import Batch
from tempergat.training.optimizer import clip_gradients
from tempergat.training.runs.models import State, load_tensors, seeded, tensors_of
from tempergat.training.runs.own_tensors import OwnTensors
from tempergat.training.runs.stacked import Runs
from tempergat.training.runs.user_modules import explain_errors
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import NodeClasses

# Added to the seed of a user's module in a scoring pass, where training adds the number
# of the step.
_SCORING = -1


class ModuleRuns(Runs):
    """Runs with a module each, trained one after the other without vectorising.

    The methods are those of `StackedRuns`. The number of a step also seeds the random
    numbers of a user's module.

    Args:
        config: Settings of the runs; those of the model itself have no effect on a
            user's own modules.
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
        self._own = OwnTensors(config.method)
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
        states = [tensors_of(module) for module in self.modules]
        if len(states) == 1:
            return {name: value.unsqueeze(0) for name, value in states[0].items()}
        return {name: torch.stack([s[name] for s in states]) for name in states[0]}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        for run, module in enumerate(self.modules):
            load_tensors(module, state, run)

    @contextmanager
    def at(self, state: State) -> Iterator[None]:
        current = {name: value.clone() for name, value in self.state.items()}
        self.load_state(state)
        try:
            yield
        finally:
            self.load_state(current)

    def backward(self, batch: Batch, step: Tensor) -> Tensor:
        losses = []
        for run, module in enumerate(self.modules):
            module.train()
            with self._user_code(run, step):
                loss = self._loss(module, self._call(run, batch, step), batch)
                loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
        return torch.stack(losses)

    def clip_gradients(self, most: float) -> None:
        for module in self.modules:
            clip_gradients(module.parameters(), most)

    def logits(self, batch: Batch) -> list[Tensor]:
        logits = []
        for run, module in enumerate(self.modules):
            module.eval()
            with self._user_code(run, _SCORING):
                logits.append(self._call(run, batch))
        return logits

    def try_in_training(self, batch: Batch) -> None:
        """Calls a user's module once as in training, where there is memory for it."""
        self.model.train()
        try:
            with self._user_code(0, 0):
                self._call(0, batch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise

    def refuse_hidden_changes(self) -> None:
        self._own.refuse_hidden_changes()

    def observe(
        self,
        batch: Batch,
        look: Callable[[Any], Tensor],
        *,
        records_gates: bool = False,
    ) -> Tensor:
        # Layers record their mean gates only where gradients are computed.
        with torch.set_grad_enabled(records_gates):
            self.logits(batch)
        return torch.stack([look(module) for module in self.modules])

    def _call(self, run: int, batch: Batch, step: Tensor | None = None) -> Tensor:
        module = self.modules[run]
        if self.is_own:
            assert batch.edge_index is not None
            x = batch.x[run] if batch.x_by_run else batch.x
            edges, fresh = (batch.edge_index, batch.edge_inputs), batch.x_is_fresh
            classes = self.task.predicted.width
            return self._own.call(module, x, *edges, classes, x_is_fresh=fresh)
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
        with seeded(seed, self.task.device), explain_errors(self.config.method):
            yield
