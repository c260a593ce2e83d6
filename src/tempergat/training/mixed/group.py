"""The models of runs that may have different splits, stacked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import vmap
from torch.nn.utils.rnn import pad_sequence

from tempergat.training.evaluate import Evaluation, evaluate_parts
from tempergat.training.seeds import (
    ChangeModel,
    OfRun,
    Result,
    SeedGroup,
    State,
)
from tempergat.training.settings import RunConfig
from tempergat.training.task import SPLITS, Inputs, Targets, Task

# The label of a place without a node; torch's cross-entropy leaves it out of its mean.
_NO_NODE = -100


class MixedGroup(SeedGroup):
    """The models of several runs, each with its own split.

    The nodes of a split are padded to the longest among the runs, and the padding does
    not count. Weights and dropout masks depend on the seed alone, as in `SeedGroup`.

    Args:
        task: The features, graph and labels.
        config: Settings that all runs share.
        seeds: The seed of each run; a seed may occur several times.
        targets: The split of each run, judged by accuracy.
        change_model: As in `SeedGroup`.
    """

    def __init__(
        self,
        task: Task,
        config: RunConfig,
        seeds: Sequence[int],
        targets: Sequence[Targets],
        change_model: ChangeModel | None = None,
    ) -> None:
        super().__init__(task, config, seeds, change_model=change_model)
        self._of_runs = [_on_device(found, task.device) for found in targets]
        self._nodes = {
            s: _padded([t.nodes[s] for t in self._of_runs], 0) for s in SPLITS
        }
        self._labels = {
            s: _padded([t.labels[s] for t in self._of_runs], _NO_NODE) for s in SPLITS
        }

    @torch.no_grad()
    def evaluation(self, state: State) -> Evaluation:
        """Further scores of all runs at given parameters and buffers."""

        def class_scores(
            state: State, seed: Tensor, x: Inputs, targets: Task | Targets
        ) -> Tensor:
            return self._logits(state, x)

        self.model.eval()
        logits = self._over_runs(class_scores, state)
        found = [
            evaluate_parts(of_run, targets.nodes, targets.labels)
            for of_run, targets in zip(logits, self._of_runs, strict=True)
        ]
        # A metric may be undefined on the split of one run.
        names = [n for n in found[0].scores if all(n in one.scores for one in found)]
        return Evaluation(
            torch.stack([one.confusion for one in found]),
            {name: torch.stack([one.scores[name] for one in found]) for name in names},
        )

    def _scores(self, logits: Tensor, targets: Task | Targets) -> Tensor:
        predicted = logits.argmax(dim=-1)
        found = []
        for split in SPLITS:
            labels = targets.labels[split]
            is_right = predicted.index_select(0, targets.nodes[split]) == labels
            found.append(is_right.sum().double() / (labels != _NO_NODE).sum())
        return torch.stack(found)

    def _over_runs(self, function: OfRun[Result], state: State) -> Result:
        task = self.task

        def of_run(state: State, seed: Tensor, nodes: State, labels: State) -> Result:
            targets = Targets(nodes, labels, task.metric, None)
            return function(state, seed, task.x, targets)

        mapped = vmap(of_run, randomness="error")
        result: Result = mapped(state, self._seed_tensor, self._nodes, self._labels)
        return result


def _on_device(targets: Targets, device: torch.device) -> Targets:
    nodes = {split: found.to(device) for split, found in targets.nodes.items()}
    labels = {split: found.to(device) for split, found in targets.labels.items()}
    return targets._replace(nodes=nodes, labels=labels)


def _padded(rows: list[Tensor], value: int) -> Tensor:
    """Rows of different lengths as one tensor, [rows, longest]."""
    return pad_sequence(rows, batch_first=True, padding_value=value)
