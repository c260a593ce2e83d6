"""Feature gates and the penalty on their mean."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear

from tempergat.ops import (
    in_backward,
    is_alive,
    is_exporting,
    is_tracing,
    transform_level,
)

# How many calls a layer remembers when no one asks for the penalty: fewer in
# evaluation, where no backward frees what they hold on to, and in compiled code, where
# each number of calls so far is a graph of its own.
_CALLS_KEPT = 256
_FEW_CALLS_KEPT = 4


def check_gate(gate: str | None) -> None:
    """Raises unless the word names a gate."""
    if gate not in ("post", "first", None):
        raise ValueError(f"gate must be 'post', 'first' or None, got {gate!r}")


class GateLinear(Linear):  # type: ignore[misc]
    """The projection before a gate's sigmoid, with a chosen initial bias."""

    def __init__(self, in_channels: int, out_channels: int, bias_init: float) -> None:
        self.bias_init = bias_init
        super().__init__(in_channels, out_channels, weight_initializer="glorot")

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.constant_(self.bias, self.bias_init)


class _Kept:
    """A mean that compiled code passes on without looking at it.

    A bare tensor left by an earlier step would become an input of the compiled
    graph, and backward would run on into that step's graph.
    """

    def __init__(self, mean: Tensor, training: bool) -> None:
        self.mean = mean
        self.training = training


class GateMeans:
    """The means of a layer's gate since they were last taken.

    They carry gradients, so they belong to the running computation: copies and
    pickles of a layer start without any.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[int | None, _Kept]] = []
        self._compiled: tuple[_Kept, ...] = ()
        self._trained_without_gradients = False

    def wanted(self) -> bool:
        """Whether gradients can come of a mean."""
        return torch.is_grad_enabled() and not is_exporting()

    def record(self, totals: list[Tensor | None], count: int, training: bool) -> None:
        """Keeps one mean over a call's gates, unless none is wanted.

        Args:
            totals: The sum of each gate.
            count: How many values they have together.
            training: Whether the layer is in training mode.
        """
        sums = [total for total in totals if total is not None]
        if not self.wanted() or not sums:
            if training and not is_tracing():
                self._trained_without_gradients = True
            return
        if torch.compiler.is_compiling():
            earlier = self._compiled[1 - _FEW_CALLS_KEPT :]
            self._compiled = (*earlier, _Kept(_joint_mean(sums, count), training))
            return
        # Checkpointing runs a layer again during backward: the same call, twice.
        if in_backward():
            return
        kept = _Kept(_joint_mean(sums, count), training)
        self._calls.append((transform_level(), kept))
        del self._calls[: -(_CALLS_KEPT if training else _FEW_CALLS_KEPT)]

    def take(self) -> Tensor | None:
        """The average over the calls so far, which are then forgotten.

        Calls in evaluation count only where there were none in training.
        """
        kept: list[_Kept] = []
        if self._calls:
            # A tensor of a torch.func transform that has ended is dead.
            level = transform_level()
            kept = [k for made_at, k in self._calls if made_at == level]
            kept = [k for k in kept if is_alive(k.mean)]
            self._calls.clear()
        kept += self._compiled
        self._compiled = ()
        trained = [k for k in kept if k.training]
        means = [k.mean for k in trained or kept]
        if self._trained_without_gradients and not means and torch.is_grad_enabled():
            warnings.warn(
                "a gate is missing from gate_penalty: its layer ran without gradients, "
                "under torch.no_grad or reentrant checkpointing; for the latter use "
                "checkpoint(..., use_reentrant=False)",
                stacklevel=3,
            )
        self._trained_without_gradients = False
        return torch.stack(means).mean() if means else None

    def __deepcopy__(self, memo: dict[int, Any]) -> GateMeans:
        return GateMeans()

    def __reduce__(self) -> tuple[type[GateMeans], tuple[()]]:
        return GateMeans, ()


def gate_penalty(model: nn.Module) -> Tensor:
    r"""The sum over layers of the mean gate value, :math:`\sum_l mean(g^{(l)})`.

    Call it once per step, after the forward pass and before ``backward``; a layer
    called several times since the last call counts with its average (in compiled code,
    of its last four calls). The result is differentiable, and 0 for a model without
    gates.

    Args:
        model: Any module that contains tempergat layers.
    """
    means = []
    for module in model.modules():
        holder = getattr(module, "gate_means", None)
        if isinstance(holder, GateMeans):
            mean = holder.take()
            if mean is not None:
                means.append(mean)
    if means:
        return torch.stack([m.to(means[0].device) for m in means]).sum()
    parameter = next(model.parameters(), None)
    return torch.zeros((), device=None if parameter is None else parameter.device)


def _joint_mean(sums: list[Tensor], count: int) -> Tensor:
    # An empty graph has no gate values to average.
    return torch.stack(sums).sum() / max(count, 1)
