"""Runs of a user's own module, trained one after the other without vectorising.

The module is any `nn.Module` that is called as ``module(x, edge_index)`` with dense
features and a plain ``edge_index`` tensor, and returns one row of class scores for
each node. Edge features and weights that are used are passed as ``edge_attr`` and
``edge_weight`` where its ``forward`` has an argument of that name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from tempergat.base import UserError
from tempergat.data import Dataset
from tempergat.nn import TypedFeatures
from tempergat.ops import fold_in
from tempergat.training.evaluate import (
    Evaluation,
    cross_entropy,
    evaluate_parts,
    scores_of_parts,
)
from tempergat.training.seeds import LayerValues, SeedGroup, State, own_features
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import Task, task_of
from tempergat.training.user_methods.user_code import (
    BuildModule,
    build_user_module,
    explain_errors,
    require_logits,
    seeded_generators,
    taken_edge_inputs,
    tensors_of,
)

if TYPE_CHECKING:
    from tempergat.training.preparation import Preparation

# Added to the seed in a scoring pass, where training adds the number of the step.
_SCORING = -1


class ModuleGroup:
    """Several runs of a user's own module, one module per run.

    Args:
        task: The features, edges and labels.
        config: Settings of the runs; those of the model itself have no effect.
        seeds: One run each.
        build: Called with the number of features and of classes, returns the module.
        preparation: As in `SeedGroup`.

    Attributes:
        seeds: The seed of each run.
        model: The module of the first run.
        parameters: All parameters that are trained, by run and name.

    Raises:
        UserError: The module cannot be built or called, or returns something else
            than class scores.
    """

    # A user's code may read values back or branch on them.
    can_be_captured = False

    def __init__(
        self,
        task: Task,
        config: RunConfig,
        seeds: Sequence[int],
        build: BuildModule,
        preparation: Preparation | None = None,
    ) -> None:
        self.task = task
        self.config = config
        self.seeds = tuple(seeds)
        self._features = own_features(task, seeds, preparation)
        self._modules = [
            self._initial_module(run, build) for run in range(len(self.seeds))
        ]
        self.model = self._modules[0]
        self.parameters: State = {
            f"{run}.{name}": parameter
            for run, module in enumerate(self._modules)
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        }
        if not self.parameters:
            raise UserError(
                f"{config.method} has no parameters to train; give a module with some"
            )

    @property
    def state(self) -> State:
        """Parameters and buffers of all runs, stacked: [runs, ...] each."""
        states = [tensors_of(module) for module in self._modules]
        return {name: torch.stack([s[name] for s in states]) for name in states[0]}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Sets parameters and buffers of all runs to those of a `state`."""
        for run, module in enumerate(self._modules):
            for name, value in tensors_of(module).items():
                value.copy_(state[name][run])

    def backward(self, step: Tensor) -> Tensor:
        """Adds the gradients of each run's training loss; returns the losses, [runs].

        Args:
            step: 0-d int64; with a run's seed, it seeds the module's random numbers.
        """
        task = self.task
        nodes, labels = task.nodes["train"], task.labels["train"]
        losses = []
        for run, module in enumerate(self._modules):
            module.train()
            with self._user_code(run, int(step)):
                logits = self._logits(run, module)
                loss = cross_entropy(
                    logits.index_select(0, nodes), labels, task.class_weights
                )
                loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach().float())
        return torch.stack(losses)

    def clip_gradients(self, most: float) -> None:
        """Scales down the gradient of each run whose norm exceeds a limit."""
        for module in self._modules:
            torch.nn.utils.clip_grad_norm_(module.parameters(), most)

    @torch.no_grad()
    def scores(self) -> tuple[Tensor, Tensor]:
        """Each run's validation loss, [runs], and its scores, [runs, splits]."""
        task = self.task
        val_losses, scores = [], []
        for run, module in enumerate(self._modules):
            logits = self._scoring_logits(run, module)
            loss = cross_entropy(
                logits.index_select(0, task.nodes["val"]),
                task.labels["val"],
                task.class_weights,
            )
            val_losses.append(loss.double())
            scores.append(scores_of_parts(task.metric, logits, task.nodes, task.labels))
        return torch.stack(val_losses), torch.stack(scores)

    @torch.no_grad()
    def evaluation(self, state: State) -> Evaluation:
        """As `SeedGroup.evaluation`."""
        task, current = self.task, self.state
        self.load_state(state)
        found = [
            evaluate_parts(self._scoring_logits(run, module), task.nodes, task.labels)
            for run, module in enumerate(self._modules)
        ]
        self.load_state(current)
        return Evaluation(
            torch.stack([one.confusion for one in found]),
            {
                name: torch.stack([one.scores[name] for one in found])
                for name in found[0].scores
            },
        )

    def layer_values(self, state: State) -> LayerValues:
        """No temperatures and gates: which layers a module has is not known."""
        nothing = torch.empty(len(self.seeds), 0, device=self.task.device)
        return LayerValues(nothing, nothing)

    def _initial_module(self, run: int, build: BuildModule) -> nn.Module:
        task = self.task
        module = build_user_module(
            build,
            self.config.method,
            task.in_channels,
            task.num_classes,
            self.seeds[run],
        ).to(task.device)
        # Lazy layers draw their weights at the first call.
        with torch.no_grad():
            self._scoring_logits(run, module)
        return module

    def _scoring_logits(self, run: int, module: nn.Module) -> Tensor:
        module.eval()
        with self._user_code(run, _SCORING):
            return self._logits(run, module)

    def _logits(self, run: int, module: nn.Module) -> Tensor:
        x = self.task.x
        # Refused where the task was made.
        assert not isinstance(x, TypedFeatures)
        if self._features is not None:
            x = self._features[run]
        expected = [x.size(0), self.task.num_classes]
        edges = taken_edge_inputs(module, self.task.edge_inputs)
        logits = module(x, self.task.edge_index, **edges)
        return require_logits(self.config.method, logits, expected)

    @contextmanager
    def _user_code(self, run: int, step: int) -> Iterator[None]:
        seed = int(fold_in(torch.tensor(self.seeds[run]), step))
        with (
            seeded_generators(seed, self.task.device),
            explain_errors(self.config.method),
        ):
            yield


def make_group(
    task: Task,
    config: RunConfig,
    seeds: Sequence[int],
    *,
    build: BuildModule | None = None,
    preparation: Preparation | None = None,
) -> SeedGroup | ModuleGroup:
    """The runs of several seeds: stacked for a built-in method, or of a user's module.

    Args:
        task: The features, edges and labels.
        config: Settings of the runs.
        seeds: One run each.
        build: Builds a user's own module; None for the built-in methods.
        preparation: As in `SeedGroup`.
    """
    if build is None:
        return SeedGroup(task, config, seeds, preparation)
    return ModuleGroup(task, config, seeds, build, preparation)


def check_user_module(
    dataset: Dataset, config: RunConfig, device: torch.device, build: BuildModule
) -> None:
    """Builds a user's module and runs it once, before any run is trained.

    Raises:
        UserError: The module cannot be built or called, or returns something else
            than class scores.
    """
    ModuleGroup(task_of(dataset, config, device), config, [0], build)
