"""The feature gate of an attention layer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear

from tempergat.ops import (
    Graph,
    close_rows,
    in_backward,
    is_alive,
    is_exporting,
    is_tracing,
    sigmoid_gate,
)

GateKind = Literal["post", "first", "head"] | None


def gate_kind(given: GateKind | bool) -> GateKind:
    """The gate that an argument names: True is ``"post"`` and False is None.

    Raises:
        ValueError: It names none.
    """
    if isinstance(given, bool):
        return "post" if given else None
    if given not in ("post", "first", "head", None):
        raise ValueError(
            f"gate must be one of None, 'post', 'first' and 'head', got {given!r}"
        )
    return given


def gate_penalty(model: nn.Module) -> Tensor:
    r"""The sum over layers of the mean gate value, :math:`\sum_l mean(g^{(l)})`.

    Call it once per step, after the forward pass and before ``backward``. The result
    is differentiable, and 0 for a model without gates. A layer counts with its last
    pass since the last call; passes under ``torch.no_grad`` never count. To average
    over several passes of a layer in one step, call this after each of them.

    Args:
        model: Any module that contains layers with a `FeatureGate`.
    """
    means: list[Tensor] = []
    for module in model.modules():
        gates = getattr(module, "gates", None)
        mean = gates.take_mean() if isinstance(gates, FeatureGate) else None
        if mean is not None:
            means.append(mean.to(means[0].device) if means else mean)
    if means:
        return torch.stack(means).sum()
    parameter = next(model.parameters(), None)
    return torch.zeros((), device=None if parameter is None else parameter.device)


class FeatureGate:
    r"""What a layer does with its gate :math:`g = \sigma(W_g h + b_g)`.

    The gate multiplies the aggregated output (``"post"``) or the projected features
    before attention sees them (``"first"``), element by element, or the output of each
    head by one number (``"head"``). The layer has it as its attribute ``gates``, where
    `gate_penalty` finds it, and the linear map as a module of its own::

        class MyLayer(nn.Module):
            def __init__(self, in_channels, width):
                super().__init__()
                self.lin_gate = GateLinear(in_channels, width)
                self.gates = FeatureGate("post")

            def forward(self, x, graph, value, key, query):
                out, _ = ops.attend("dot", graph, value, key, query)
                return self.gates.output(out.flatten(1), self.lin_gate(x), graph)

    Args:
        kind: ``"post"``, ``"first"``, ``"head"`` or None.
        channels: For ``"head"``: how many features one gate multiplies.

    Attributes:
        kind: As given.
    """

    def __init__(self, kind: GateKind, channels: int = 1) -> None:
        self.kind = kind
        self.repeats = channels if kind == "head" else 1
        self._last: _Pass | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # The pass stays behind: copies and pickles of a layer start without one.
        return FeatureGate, (self.kind, self.repeats)

    def widen(self, logit: Tensor) -> Tensor:
        """The logit of every feature, from that of each head for ``"head"``."""
        if self.repeats == 1:
            return logit
        # The tracing ONNX exporter gets repeat_interleave wrong.
        wide = logit.unsqueeze(-1).expand(*logit.shape, self.repeats)
        return wide.contiguous().flatten(-2)

    def output(self, out: Tensor, gate_logit: Tensor, graph: Graph) -> Tensor:
        """Gates the aggregated features and keeps the mean gate.

        Args:
            out: The aggregated features, [num_dst, width].
            gate_logit: The gate before its sigmoid, [num_dst, width], or one row for
                all nodes.
            graph: The graph.
        """
        gate_logit, count = logit_of_targets(gate_logit, graph)
        out, total = sigmoid_gate(gate_logit, out)
        self.keep([total], count)
        return out

    def features(
        self,
        z: Sequence[Any],
        gate_logits: Sequence[Any],
        graph: Graph,
    ) -> list[Any]:
        """Gates the projected features and keeps the mean gate.

        Args:
            z: The projected features, [num_nodes, width], such as those of sources
                and of targets; None for absent ones.
            gate_logits: The gate of each before its sigmoid. One that several share
                counts once, and may have more rows: they are the first of its nodes.
            graph: The graph. The gate of rows that are its padding is 0 and does not
                count.
        """
        in_use = None if graph.in_use is None else graph.in_use[0]
        gated: list[Any] = []
        sums: list[Tensor | None] = []
        count: int | Tensor = 0
        before: Any = None
        for k, (part, logit) in enumerate(zip(z, gate_logits, strict=True)):
            if part is None or (k and part is z[k - 1] and logit is before):
                gated.append(None if part is None else gated[-1])
                continue
            is_new, before = logit is not before, logit
            if logit.size(0) != part.size(0):
                logit = logit[: part.size(0)]
            new_values = _close_padding(logit, in_use) if is_new else 0
            out, total = sigmoid_gate(logit, part)
            gated.append(out)
            if is_new:
                sums.append(total)
                count = count + new_values
        self.keep(sums, count)
        return gated

    def keep(self, sums: list[Tensor | None], count: int | Tensor) -> None:
        """Keeps the gate of a pass: tensors that add up to its sum, and their count."""
        if not torch.is_grad_enabled():
            if self._last is None and not is_tracing():
                self._last = _WITHOUT_GRADIENTS
        elif torch.compiler.is_compiling():
            if not is_exporting():
                self._last = _Pass([_mean(sums, count)], 1)
        # Checkpointing runs a layer a second time during backward. Skip that pass.
        elif not is_exporting() and not in_backward():
            self._last = _Pass(sums, count)

    def take_mean(self) -> Tensor | None:
        """The mean gate of the last pass, which is then forgotten."""
        last, self._last = self._last, None
        if last is None:
            return None
        if last is _WITHOUT_GRADIENTS:
            if torch.is_grad_enabled():
                warnings.warn(
                    "a gate is missing from gate_penalty: its layer ran without "
                    "gradients, under torch.no_grad or reentrant checkpointing; for "
                    "the latter use checkpoint(..., use_reentrant=False)",
                    stacklevel=3,
                )
            return None
        # Tensors of a transform that has ended cannot be used.
        if not torch.compiler.is_compiling() and not all(map(is_alive, last.sums)):
            return None
        return _mean(last.sums, last.count)


class _Pass:
    """The gate of one forward pass: its sums and how many values they are of.

    An object, because compiled code must pass it on without looking inside: a tensor
    left by an earlier step would become an input of the compiled graph.
    """

    __slots__ = ("count", "sums")

    def __init__(self, sums: list[Any], count: int | Tensor) -> None:
        self.sums = sums
        self.count = count


_WITHOUT_GRADIENTS = _Pass([], 0)


def _mean(sums: list[Any], count: int | Tensor) -> Tensor:
    # Kernels give partial sums.
    totals = [x if x.dim() == 0 else x.sum() for x in sums]
    # An empty graph has no gate values.
    least = max(count, 1) if isinstance(count, int) else count.clamp(min=1)
    return torch.stack(totals).sum() / least


def logit_of_targets(logit: Tensor, graph: Graph) -> tuple[Tensor, int | Tensor]:
    """The logit of every target, and how many gate values count in the mean."""
    if logit.size(0) != graph.num_dst:
        logit = logit.expand(graph.num_dst, -1).contiguous()
    if graph.in_use is None:
        return logit, logit.numel()
    return logit, _close_padding(logit, graph.in_use[1])


def _close_padding(logit: Tensor, in_use: Tensor | None) -> int | Tensor:
    """Closes the gate of rows that are padding; returns how many values are left."""
    if in_use is None:
        return logit.numel()
    close_rows(logit, in_use)
    return in_use * logit[0].numel()


class GateLinear(Linear):  # type: ignore[misc]
    """The linear map inside a gate's sigmoid, with a chosen initial bias.

    Args:
        in_channels: Features per node; -1 to take it from the first input.
        out_channels: Features that are gated.
        bias_init: Initial value of the bias. 2 opens the gate.
    """

    def __init__(
        self, in_channels: int, out_channels: int, bias_init: float = 2.0
    ) -> None:
        self.bias_init = bias_init
        super().__init__(in_channels, out_channels, weight_initializer="glorot")

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.constant_(self.bias, self.bias_init)

    def _load_from_state_dict(self, *given: Any) -> None:
        super()._load_from_state_dict(*given)
        # torch's order: the state, the prefix, metadata, strict, the missing names.
        _, prefix, _, _, missing, *_ = given
        explained = any(isinstance(key, _OfAbsentGate) for key in missing)
        if missing and missing[-1].startswith(prefix) and not explained:
            missing[-1] = _OfAbsentGate(missing[-1])


class _OfAbsentGate(str):
    """The name of a missing weight; in torch's error message it says what to do.

    A module is not told whether loading is strict, so it cannot raise the error itself.
    """

    def __format__(self, form: str) -> str:
        return (
            f"{format(str(self), form)} (weights of layers without a gate: load them "
            "into PyG's layers, or into GATConv, GATv2Conv or TransformerConv of "
            "tempergat.nn, and call tempergat.nn.upgrade(model))"
        )
