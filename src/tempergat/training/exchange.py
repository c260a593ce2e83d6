"""One run by several processes: what each is trained on, and what they exchange.

On samples, each process computes the gradient of its part of a batch. The gradient of
the batch is their mean, weighted by the numbers of seeds, as one process would have
computed it.

On the whole graph, a process computes each layer for its own part of the nodes. What a
layer gives is gathered from all processes before the next one, and the gradient of the
gathered rows is added up and goes back to their owners. So no process holds the
attention, the gates and the activations of other nodes. Batch norm's sums are those
over all processes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from tempergat.base import UserError
from tempergat.data import Dataset
from tempergat.nn import BACKBONES, METHODS
from tempergat.ops import Graph
from tempergat.sampling import Topology
from tempergat.training.graphs.batches import Batch
from tempergat.training.graphs.sampled import SampledGraph, once_per_graph
from tempergat.training.graphs.sampled_batches import LargeGraph
from tempergat.training.ranks import Ranks
from tempergat.training.runs.models import State
from tempergat.training.runs.modules import ModuleRuns
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import NodeClasses

# Dropout masks depend on the number of the step; other processes count from here.
_STEPS_OF_A_RANK = 2**40


class GraphPart(LargeGraph):
    """The part of a graph that this process trains on: consecutive nodes.

    All processes have about as many. Without dropout, training losses are those of one
    process up to rounding.

    Attributes:
        batch: The nodes of all processes, those of this one first, and the edges to
            its own nodes.
        sizes: How many nodes each process has, by rank.

    Raises:
        UserError: The method or its norm cannot be divided, or there are fewer nodes
            than processes.
    """

    is_whole = True

    def __init__(
        self,
        graph: SampledGraph,
        config: RunConfig,
        task: NodeClasses,
        seed: int,
        ranks: Ranks,
    ) -> None:
        super().__init__(graph, config, task, seed)
        nodes, count, device = graph.num_nodes, ranks.world_size, ranks.device
        _refuse_parts(config, nodes, count)
        bounds = [nodes * rank // count for rank in range(count + 1)]
        first, last = bounds[ranks.rank], bounds[ranks.rank + 1]
        source, target = graph.edge_index
        chosen = ((target >= first) & (target < last)).nonzero().squeeze(1)
        # All nodes in turn, beginning with the first of this process.
        edges = torch.stack([(source[chosen] - first) % nodes, target[chosen] - first])
        train = task.examples.numbers["train"]
        own = ((train >= first) & (train < last)).nonzero().squeeze(1)
        order = torch.arange(first, first + nodes) % nodes
        labels = task.examples.targets["train"][own.to(device)]
        self.sizes = tuple(end - begin for begin, end in pairwise(bounds))
        self.batch = Batch(
            graph.features.rows(order).to(device),
            Graph(edges.to(device), (nodes, last - first)),
            labels,
            edge_inputs={
                name: value[chosen].to(device)
                for name, value in graph.edge_inputs.items()
            },
            rows=(train[own] - first).to(device),
            # The part of the mean over all training nodes that this process has.
            share=task.total_weight(labels)
            / task.total_weight(task.examples.targets["train"]),
            share_of_rows=(last - first) / nodes,
        )

    def __len__(self) -> int:
        return 1


def _refuse_parts(config: RunConfig, nodes: int, processes: int) -> None:
    is_own = config.source_hash is not None
    if is_own or not BACKBONES[METHODS[config.method].backbone].has_attention:
        raise UserError(
            f"several processes can train {config.method} only on sampled batches; "
            "give --training sampled, or start without torchrun"
        )
    if config.norm not in (None, "batch"):
        raise UserError(
            f"the norm {config.norm} needs the rows of all processes at once; take "
            "the norm batch or none, or start without torchrun"
        )
    if nodes < processes:
        raise UserError(
            f"the graph has {nodes} nodes, fewer than the {processes} processes; "
            "start fewer processes"
        )


class Exchange:
    """Gives all processes the gradients of the whole batch, and the same scores.

    Args:
        ranks: The processes.
        sizes: How many nodes of the whole graph each process has, by rank; empty for
            training on samples.
    """

    def __init__(self, ranks: Ranks, sizes: Sequence[int] = ()) -> None:
        self._ranks = ranks
        self._sizes = tuple(sizes)

    def backward(
        self, runs: ModuleRuns, batch: Batch, step: Tensor
    ) -> tuple[Tensor, int]:
        """Adds the gradients of the loss over all processes.

        Returns:
            That loss, [1], and the number of nodes that it is about.
        """
        ranks, count = self._ranks, batch.labels.size(0)
        step = step + ranks.rank * _STEPS_OF_A_RANK
        parameters = list(runs.parameters.values())
        if batch.share is not None:
            with self._gathered_rows(runs.model):
                loss = runs.backward(batch, step)
            return self.add_gradients(parameters, loss), count
        loss = weight = torch.zeros((), device=ranks.device)
        # The last batch of an epoch may have no seed for some processes.
        if count:
            (loss,) = runs.backward(batch, step)
            weight = torch.as_tensor(
                runs.task.total_weight(batch.labels), device=ranks.device
            )
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad *= weight
        seeds = torch.tensor(float(count), device=ranks.device)
        numbers = torch.stack([loss * weight, weight, seeds])
        loss_sum, weight_sum, count_sum = self.add_gradients(parameters, numbers)
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad /= weight_sum
        # Batch norm sees this process's part; the first one's statistics are kept.
        ranks.copy_from_first(runs.model.buffers())
        return (loss_sum / weight_sum).unsqueeze(0), int(count_sum)

    def add_gradients(self, parameters: Sequence[Tensor], numbers: Tensor) -> Tensor:
        """Puts the sum over all processes in the place of the parameters' gradients.

        They are added up in one vector that always has the same layout: torch's own
        wrapper for models (DistributedDataParallel) arranges gradients differently
        after its first step, and a run that continues from a checkpoint would then end
        with other last bits. A parameter that has a gradient in no process has none
        afterwards: the optimizer leaves it as it is.

        Args:
            parameters: The parameters, in the same order in all processes.
            numbers: Further numbers to add up, [n].

        Returns:
            The sums of the numbers.
        """
        ranks = self._ranks
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for parameter in parameters
        ]
        has_gradient = [float(p.grad is not None) for p in parameters]
        vector = torch.cat(
            [
                *(gradient.flatten() for gradient in gradients),
                numbers.to(ranks.device),
                torch.tensor(has_gradient, device=ranks.device),
            ]
        )
        ranks.add_up(vector)
        counted = [numbers.numel(), len(parameters)]
        sizes = [*(parameter.numel() for parameter in parameters), *counted]
        *sums, totals, counts = torch.split(vector, sizes)
        for parameter, gradient, count in zip(
            parameters, sums, counts.tolist(), strict=True
        ):
            parameter.grad = gradient.view_as(parameter) if count else None
        return totals

    def from_first(self, compute: Callable[[], State]) -> State:
        """The tensors that the first process computes, on the device of this one."""
        ranks = self._ranks
        tensors = ranks.from_first(
            lambda: {name: value.cpu() for name, value in compute().items()}
        )
        return {name: value.to(ranks.device) for name, value in tensors.items()}

    @contextmanager
    def _gathered_rows(self, model: Any) -> Iterator[None]:
        """All layers but the first get all rows, and batch norm their sums."""
        ranks, sizes = self._ranks, self._sizes

        def gather(conv: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            h, *others = inputs
            rows = _GatheredRows.apply(h, ranks, sizes)  # type: ignore[no-untyped-call]
            return rows, *others

        def add_up(values: Tensor) -> Tensor:
            total: Tensor = _Sum.apply(values, ranks)  # type: ignore[no-untyped-call]
            return total

        hooks = [
            conv.register_forward_pre_hook(gather) for conv in list(model.convs)[1:]
        ]
        for norm in model.norms:
            norm.add_up = add_up
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            for norm in model.norms:
                norm.add_up = None


class _GatheredRows(torch.autograd.Function):
    """The rows of all processes by rank, beginning with this one."""

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


def prepare_ranks(dataset: Dataset, ranks: Ranks) -> None:
    """Checks that all processes have the same graph, and lets them share its edges.

    Raises:
        UserError: The graph has node types, or the processes have different graphs.
    """
    if dataset.is_heterogeneous:
        raise UserError(
            "a graph with node types is trained by one process; start without torchrun"
        )
    prints = ranks.from_all(dataset.fingerprint)
    if len(set(prints)) > 1:
        other = next(rank for rank, seen in enumerate(prints) if seen != prints[0])
        raise UserError(
            f"the graph of process {other} differs from that of process 0; give all "
            "machines the same files"
        )
    _share_edges(dataset.data, ranks)


def _share_edges(data: Data, ranks: Ranks) -> None:
    """Lets all processes of a machine map the grouped edges from one file."""
    if all(count == 1 for count in ranks.from_all(ranks.local_world_size)):
        return
    edges, nodes = data.edge_index, int(data.num_nodes)
    is_writer = ranks.local_rank == 0
    folder = tempfile.mkdtemp(prefix="tempergat-edges-") if is_writer else ""
    try:
        if is_writer:
            Topology.of(edges, nodes).save(folder)
        # The processes of a machine have consecutive ranks.
        place = ranks.from_all(folder)[ranks.rank - ranks.local_rank]
        once_per_graph(edges, nodes, lambda: Topology.open(place))
        ranks.from_all(None)
    finally:
        if is_writer:
            # Mapped files stay readable.
            shutil.rmtree(folder, ignore_errors=True)


def require_same_progress(ranks: Ranks, steps: int) -> None:
    """Refuses processes that continue from different checkpoints.

    Raises:
        UserError: They do.
    """
    done = ranks.from_all(steps)
    if len(set(done)) > 1:
        raise UserError(
            f"the processes continue from different checkpoints, after {min(done)} and "
            f"after {max(done)} steps; put --out (out= in Python) into a folder that "
            "all machines share"
        )
