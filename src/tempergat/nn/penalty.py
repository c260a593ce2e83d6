"""The penalty on the mean of the feature gates."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.ops import (
    execution_mode,
    in_backward,
    is_alive,
    is_exporting,
    transform_level,
)


def gate_penalty(model: nn.Module) -> Tensor:
    r"""The sum over layers of the mean gate value, :math:`\sum_l mean(g^{(l)})`.

    Call it once per step, after the forward pass and before ``backward``. The result
    is differentiable, and 0 for a model without gates.

    A layer counts with its last pass since the last call: a second pass replaces the
    first. A pass in evaluation mode counts only where there was none in training mode;
    passes under ``torch.no_grad`` never do. A layer that is used several times in one
    step counts once; to average over its passes, call this after each of them.

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

    __slots__ = ("count", "level", "sums")

    def __init__(
        self, sums: list[Tensor], count: int | Tensor, level: int | None
    ) -> None:
        self.sums = sums
        self.count = count
        # The torch.func transform it belongs to.
        self.level = level


class GateMeans:
    """The mean of a layer's gate in its last pass, until it is taken.

    It has a gradient and belongs to the running computation: copies and pickles of a
    layer start without one.
    """

    def __init__(self) -> None:
        self._in_training: _Pass | None = None
        self._in_evaluation: _Pass | None = None
        self._trained_without_gradients = False

    def record(
        self,
        sums: list[Tensor | None],
        count: int | Tensor,
        training: bool,
        mode: str | None = None,
    ) -> None:
        """Records the mean gate of one forward pass.

        Args:
            sums: Tensors whose elements add up to the sum of the gate; None where
                gradients are off.
            count: How many gate values were summed.
            training: Whether the layer is in training mode.
            mode: The `execution_mode`, where it is known.
        """
        mode = execution_mode() if mode is None else mode
        traced = mode == "traced"
        if not torch.is_grad_enabled() or (traced and is_exporting()):
            if training and not traced:
                self._trained_without_gradients = True
            return
        given = [total for total in sums if total is not None]
        if traced and torch.compiler.is_compiling():
            new = _Pass([_mean(given, count)], 1, None)
        # Checkpointing runs a layer a second time during backward. Skip that pass.
        elif in_backward():
            return
        else:
            new = _Pass(given, count, None if mode == "eager" else transform_level())
        if training:
            self._in_training = new
        else:
            self._in_evaluation = new

    def take(self) -> Tensor | None:
        """The mean gate of the last pass, which is then forgotten."""
        passes = [self._in_training, self._in_evaluation]
        usable = [p for p in passes if p is not None]
        if not torch.compiler.is_compiling():
            # A transform that has ended, or one around this one, has other tensors.
            level = transform_level()
            usable = [
                p for p in usable if p.level == level and all(map(is_alive, p.sums))
            ]
        ran_without = self._trained_without_gradients and torch.is_grad_enabled()
        self._in_training = self._in_evaluation = None
        self._trained_without_gradients = False
        if usable:
            return _mean(usable[0].sums, usable[0].count)
        if ran_without:
            warnings.warn(
                "a gate is missing from gate_penalty: its layer ran without gradients, "
                "under torch.no_grad or reentrant checkpointing; for the latter use "
                "checkpoint(..., use_reentrant=False)",
                stacklevel=3,
            )
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> GateMeans:
        return GateMeans()

    def __reduce__(self) -> tuple[type[GateMeans], tuple[()]]:
        return GateMeans, ()


def _mean(sums: list[Tensor], count: int | Tensor) -> Tensor:
    # Kernels give partial sums.
    totals = [x if x.dim() == 0 else x.sum() for x in sums]
    # An empty graph has no gate values.
    least = max(count, 1) if isinstance(count, int) else count.clamp(min=1)
    return torch.stack(totals).sum() / least
