"""One full-batch run, its target nodes divided over several processes.

A process computes each layer for its own part of the nodes. What a layer gives is
gathered from all processes before the next one, and the gradient of the gathered rows
is added up and goes back to their owners. So no process holds the attention, the gates
and the activations of other nodes. Batch norm's sums are those over all processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.nn import BACKBONES, METHODS, gate_penalty
from tempergat.ops import Graph, fold_in
from tempergat.training.evaluate import cross_entropy
from tempergat.training.loop import EpochLoop
from tempergat.training.optimizer import set_learning_rate
from tempergat.training.ranks.exchange import STEPS_OF_A_RANK, add_gradients
from tempergat.training.ranks.processes import Ranks
from tempergat.training.ranks.ranked import RankedGroup
from tempergat.training.sampled.task import SampledTask
from tempergat.training.settings.config import RunConfig


class Part(NamedTuple):
    """The nodes of one process, and what they need.

    Attributes:
        sizes: How many nodes each process has, by rank.
        x: The features of all nodes, those of this process first.
        graph: The edges to its nodes.
        edge_inputs: Features of these edges.
        rows: The places of its training nodes among its nodes.
        labels: Their classes.
    """

    sizes: tuple[int, ...]
    x: Tensor
    graph: Graph
    edge_inputs: dict[str, Tensor]
    rows: Tensor
    labels: Tensor


def part_of(task: SampledTask, ranks: Ranks) -> Part:
    """The part of this process: consecutive nodes, about as many as the others have."""
    nodes, device = task.num_nodes, ranks.device
    bounds = [nodes * rank // ranks.world_size for rank in range(ranks.world_size + 1)]
    first, last = bounds[ranks.rank], bounds[ranks.rank + 1]
    source, target = task.edge_index
    chosen = ((target >= first) & (target < last)).nonzero().squeeze(1)
    # All nodes in turn, beginning with the first of this process.
    edges = torch.stack([(source[chosen] - first) % nodes, target[chosen] - first])
    train = task.nodes["train"]
    own = ((train >= first) & (train < last)).nonzero().squeeze(1)
    order = torch.arange(first, first + nodes) % nodes
    return Part(
        tuple(end - begin for begin, end in pairwise(bounds)),
        task.features.rows(order).to(device),
        Graph(edges.to(device), (nodes, last - first)),
        {name: value[chosen].to(device) for name, value in task.edge_inputs.items()},
        (train[own] - first).to(device),
        task.labels["train"][own.to(device)],
    )


class RankedFullTraining(EpochLoop):
    """The full-batch training of one run by several processes.

    Without dropout, training losses are those of one process up to rounding.

    Args:
        group: The model.
        config: Settings of the run.

    Raises:
        UserError: The method or its norm cannot be divided, or there are fewer nodes
            than processes.
    """

    group: RankedGroup

    def __init__(self, group: RankedGroup, config: RunConfig) -> None:
        super().__init__(group, config)
        task, ranks = group.task, group.ranks
        if config.source_hash is not None or not _has_attention(config.method):
            raise UserError(
                f"several processes can train {config.method} only on sampled batches; "
                "give --training sampled, or start without torchrun"
            )
        if config.norm not in (None, "batch"):
            raise UserError(
                f"the norm {config.norm} needs the rows of all processes at once; take "
                "the norm batch or none, or start without torchrun"
            )
        if task.num_nodes < ranks.world_size:
            raise UserError(
                f"the graph has {task.num_nodes} nodes, fewer than the "
                f"{ranks.world_size} processes; start fewer processes"
            )
        self._part = part_of(task, ranks)

    @contextmanager
    def _over_processes(self) -> Iterator[None]:
        """All layers but the first get all rows, and batch norm their sums."""
        ranks, sizes = self.group.ranks, self._part.sizes

        def gather(conv: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            h, *others = inputs
            return _GatheredRows.apply(h, ranks, sizes), *others  # type: ignore[no-untyped-call]

        def add_up(values: Tensor) -> Tensor:
            found: Tensor = _Sum.apply(values, ranks)  # type: ignore[no-untyped-call]
            return found

        convs = list(self.group.model.convs)[1:]
        hooks = [conv.register_forward_pre_hook(gather) for conv in convs]
        norms: Any = self.group.model.norms
        for norm in norms:
            norm.add_up = add_up
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            for norm in norms:
                norm.add_up = None

    def _one_epoch(self) -> None:
        self.optimizer.zero_grad()
        loss = self._backward()
        if self.config.clip_norm is not None:
            self.group.clip_gradients(self.config.clip_norm)
        set_learning_rate(self.optimizer, self.config, self.epoch, self.config.epochs)
        self.optimizer.step()
        val_loss, scores = self.group.scores()
        self._record(loss.double().unsqueeze(0), val_loss, scores)

    def _backward(self) -> Tensor:
        """Adds the gradients of the loss over all nodes; returns that loss."""
        part, group = self._part, self.group
        ranks, weights = group.ranks, group.task.class_weights
        labels = group.task.labels["train"]
        group.model.train()
        seed = torch.tensor(group.seeds[0], device=ranks.device)
        seed = fold_in(seed, self.epoch + ranks.rank * STEPS_OF_A_RANK)
        with self._over_processes():
            logits = group.model(
                part.x, part.graph, dropout_seed=seed, **part.edge_inputs
            )
        # The part of the mean over all training nodes that this process has.
        share = _weight(part.labels, weights) / _weight(labels, weights)
        loss = logits.sum() * 0.0
        if part.rows.numel():
            loss = cross_entropy(logits[part.rows], part.labels, weights) * share
        if METHODS[self.config.method].gate is not None:
            rows = part.graph.num_dst / part.graph.num_src
            penalty = gate_penalty(group.model)
            loss = loss + self.config.gate_penalty * rows * penalty
        loss.backward()
        parameters = list(group.parameters.values())
        return add_gradients(ranks, parameters, loss.detach().view(1))[0]


class _GatheredRows(torch.autograd.Function):
    """The rows of all processes, those of this one first, in turn."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, ranks: Ranks, sizes: tuple[int, ...]) -> Tensor:
        ctx.ranks, ctx.sizes = ranks, sizes
        parts = ranks.gather_rows(h, sizes)
        return torch.cat([*parts[ranks.rank :], *parts[: ranks.rank]])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        ranks, sizes = ctx.ranks, list(ctx.sizes)
        turned = sizes[ranks.rank :] + sizes[: ranks.rank]
        parts = list(torch.split(gradients[0], turned))
        first = len(sizes) - ranks.rank
        return ranks.add_rows(parts[first:] + parts[:first]), None, None


class _Sum(torch.autograd.Function):
    """The sum over all processes; their gradients are added up too."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks = ranks
        total = values.clone()
        ranks.add_up(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].clone()
        ctx.ranks.add_up(total)
        return total, None


def _has_attention(method: str) -> bool:
    return BACKBONES[METHODS[method].backbone].has_attention


def _weight(labels: Tensor, weights: Tensor | None) -> Tensor | float:
    return float(labels.numel()) if weights is None else weights[labels].sum()
