"""The penalty on the mean of the feature gates."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.ops import (
    in_backward,
    is_alive,
    is_exporting,
    is_tracing,
    transform_level,
)

# Passes that count even when nobody uses their output any more. In compiled code it is
# the number of passes that count at all: each length of the history is a graph to
# compile.
_RECENT_PASSES = 4
# Passes that are remembered inside one torch.func transform.
_MOST_PASSES = 256


def gate_penalty(model: nn.Module) -> Tensor:
    r"""The sum over layers of the mean gate value, :math:`\sum_l mean(g^{(l)})`.

    Call it once per step, after the forward pass and before ``backward``. The result
    is differentiable, and 0 for a model without gates.

    A layer that ran several times since the last call counts with the average over its
    passes: the last four, and all earlier ones whose output is still part of a loss or
    of anything else that is alive. So passes without a later penalty (Monte Carlo
    dropout, probing) do not keep their activations in memory. In compiled code only
    the last four passes count. Passes in evaluation mode count only where there was
    none in training mode; passes under ``torch.no_grad`` never do.

    Args:
        model: Any module that contains layers with a `FeatureGate`.
    """
    means = []
    for module in model.modules():
        recorded = getattr(module, "gate_means", None)
        if isinstance(recorded, GateMeans):
            mean = recorded.take()
            if mean is not None:
                means.append(mean)
    if means:
        return torch.stack([m.to(means[0].device) for m in means]).sum()
    parameter = next(model.parameters(), None)
    return torch.zeros((), device=None if parameter is None else parameter.device)


class _Pass:
    """The gate of one forward pass: its sums and how many values they are of.

    An object and not a bare tensor, because compiled code must pass it on without
    looking inside: a tensor left by an earlier step would become an input of the
    compiled graph, and backward would run into that step's graph.
    """

    __slots__ = ("_count", "_references", "_sums", "level", "training")

    def __init__(
        self,
        sums: list[Tensor],
        count: int | Tensor,
        training: bool,
        level: int | None = None,
    ) -> None:
        self.training = training
        # The torch.func transform it belongs to.
        self.level = level
        self._count = count
        self._sums: list[Tensor] | None = sums
        self._references: list[weakref.ref[Tensor]] = []

    def tie_to(self, output: Tensor) -> None:
        """Lets the graph of the output keep the sums alive, too.

        They must not depend on the output: that would be a cycle that Python's garbage
        collector cannot see.
        """
        if self._sums is not None and output.grad_fn is not None:
            # torch's stubs call this dictionary a method.
            metadata: Any = output.grad_fn.metadata
            metadata["tempergat.gate_sums"] = self._sums
            self._references = [weakref.ref(total) for total in self._sums]

    def release(self) -> None:
        """From now on, only the graph of the output keeps the sums alive."""
        self._sums = None

    def is_open(self, level: int | None) -> bool:
        """Whether the transform it belongs to may still be running.

        Args:
            level: The transform that is running now.
        """
        if self.level is None or level is None:
            return self.level is None
        if self.level == level:
            return self._sums is not None and all(map(is_alive, self._sums))
        return self.level < level

    def sums(self) -> list[Tensor] | None:
        """The sums, unless nothing keeps them alive."""
        if self._sums is not None or not self._references:
            return self._sums
        found = [reference() for reference in self._references]
        alive = [total for total in found if total is not None]
        return alive if len(alive) == len(found) else None

    def mean(self) -> Tensor | None:
        """The mean, computed when it is asked for; None if nothing keeps it alive."""
        sums = self.sums()
        return None if sums is None else _mean(sums, self._count)


class GateMeans:
    """The means of a layer's gate since they were last taken.

    They have gradients and belong to the running computation: copies and pickles of a
    layer start without any.
    """

    def __init__(self) -> None:
        self._passes: list[_Pass] = []
        self._compiled: tuple[_Pass, ...] = ()
        self._trained_without_gradients = False

    def are_recorded(self) -> bool:
        """Whether the next pass is recorded: gradients could flow from its mean."""
        return torch.is_grad_enabled() and not is_exporting()

    def record(
        self,
        sums: list[Tensor | None],
        count: int | Tensor,
        training: bool,
        output: Tensor,
    ) -> None:
        """Records the mean gate of one forward pass.

        Args:
            sums: The sum of each gate, or the gate itself; None where neither is known.
            count: How many gate values were summed.
            training: Whether the layer is in training mode.
            output: The gated features. The pass counts as long as their autograd graph
                is alive.
        """
        computed = [total for total in sums if total is not None]
        if not self.are_recorded() or not computed:
            if training and not is_tracing():
                self._trained_without_gradients = True
            return
        if torch.compiler.is_compiling():
            earlier = self._compiled[1 - _RECENT_PASSES :]
            self._compiled = (*earlier, _Pass([_mean(computed, count)], 1, training))
            return
        # Checkpointing runs a layer a second time during backward. Skip that pass.
        if in_backward():
            return
        level = transform_level()
        new = _Pass(computed, count, training, level)
        if level is None:
            new.tie_to(output)
        self._passes.append(new)
        self._forget(level)

    def _forget(self, level: int | None) -> None:
        """Drops passes that nobody can use any more.

        Args:
            level: The torch.func transform that is running now.
        """
        for old in self._passes[:-_RECENT_PASSES]:
            if old.level is None:
                old.release()
        usable = [p for p in self._passes if p.sums() is not None and p.is_open(level)]
        self._passes = usable if level is None else usable[-_MOST_PASSES:]

    def take(self) -> Tensor | None:
        """The average over the passes since the last call, which are then forgotten."""
        passes: list[_Pass] = []
        if self._passes:
            level = transform_level()
            passes = [p for p in self._passes if p.level == level and p.is_open(level)]
            self._passes.clear()
        passes += self._compiled
        self._compiled = ()
        trained = [p for p in passes if p.training]
        found = [p.mean() for p in trained or passes]
        means = [mean for mean in found if mean is not None]
        if self._trained_without_gradients and not means and torch.is_grad_enabled():
            warnings.warn(
                "a gate is missing from gate_penalty: its layer ran without gradients, "
                "under torch.no_grad or reentrant checkpointing; for the latter use "
                "checkpoint(..., use_reentrant=False)",
                stacklevel=3,
            )
        self._trained_without_gradients = False
        return torch.stack(means).mean() if means else None

    def __len__(self) -> int:
        """How many passes are remembered."""
        return len(self._passes) + len(self._compiled)

    def __deepcopy__(self, memo: dict[int, Any]) -> GateMeans:
        return GateMeans()

    def __reduce__(self) -> tuple[type[GateMeans], tuple[()]]:
        return GateMeans, ()


def _mean(sums: list[Tensor], count: int | Tensor) -> Tensor:
    # Kernels give partial sums. Small gates are kept as they are.
    totals = [x if x.dim() == 0 else x.sum(dtype=_wide(x)) for x in sums]
    # An empty graph has no gate values.
    least = max(count, 1) if isinstance(count, int) else count.clamp(min=1)
    return torch.stack(totals).sum() / least


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)
