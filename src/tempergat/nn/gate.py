"""The feature gate of an attention layer."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear

from tempergat.nn.projection import Sides
from tempergat.ops import (
    Epilogue,
    Graph,
    attend_and_gate,
    close_rows,
    execution_mode,
    in_backward,
    is_alive,
    is_exporting,
    sigmoid_gate,
    transform_level,
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
                inputs = (value, key, query)
                return self.gates.attend("dot", graph, inputs, self.lin_gate(x))[0]

    Args:
        kind: ``"post"``, ``"first"``, ``"head"`` or None.
        channels: For ``"head"``: how many features one gate multiplies.

    Attributes:
        kind: As given.
    """

    def __init__(self, kind: GateKind, channels: int = 1) -> None:
        self.kind = kind
        self.repeats = channels if kind == "head" else 1
        # A pass that is running: copies and pickles of a layer start without one.
        self._last: _Pass | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> FeatureGate:
        return FeatureGate(self.kind, self.repeats)

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureGate, (self.kind, self.repeats)

    def widen(self, logit: Tensor) -> Tensor:
        """The logit of every feature, from that of each head for ``"head"``."""
        if self.repeats == 1:
            return logit
        # The tracing ONNX exporter gets repeat_interleave wrong.
        wide = logit.unsqueeze(-1).expand(*logit.shape, self.repeats)
        return wide.contiguous().flatten(-2)

    def attend(
        self,
        attention: str,
        graph: Graph,
        inputs: tuple[Tensor | None, ...],
        gate_logit: Tensor | None = None,
        skip: Tensor | None = None,
        bias: Tensor | None = None,
        *,
        mode: str | None = None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Runs an attention, gates its output and keeps the mean gate.

        Args:
            attention: The name of a registered attention.
            graph: The graph.
            inputs: The attention's inputs, as for `ops.attend`.
            gate_logit: The gate before its sigmoid, [num_dst, width], or one row for
                all nodes; None for no gate on the output.
            skip: What is added after the gate to each row, [num_dst, width].
            bias: What is added to all rows alike, [width].
            mode: The `execution_mode`, where it is known.
            **options: Further arguments of `ops.attend`.

        Returns:
            The output, [num_dst, width], and the weights, where they are wanted.
        """
        count: int | Tensor = 0
        if gate_logit is not None:
            gate_logit, count = _logit_of_targets(gate_logit, graph)
        mode = execution_mode() if mode is None else mode
        epilogue = Epilogue(gate_logit, skip, bias, torch.is_grad_enabled())
        out, weights, total = attend_and_gate(
            attention, graph, inputs, epilogue, mode=mode, **options
        )
        if gate_logit is not None:
            self._keep([total], count, mode)
        return out, weights

    def output(
        self, out: Tensor, gate_logit: Tensor, graph: Graph, mode: str | None = None
    ) -> Tensor:
        """Gates features that were aggregated elsewhere and keeps the mean gate.

        Args:
            out: The aggregated features, [num_dst, width].
            gate_logit: As for `attend`.
            graph: The graph.
            mode: The `execution_mode`, where it is known.
        """
        gate_logit, count = _logit_of_targets(gate_logit, graph)
        out, total = sigmoid_gate(gate_logit, out)
        self._keep([total], count, mode)
        return out

    def features(
        self,
        z: Sides[Any],
        gate_logit: Sides[Tensor],
        in_use: Tensor | None = None,
        mode: str | None = None,
    ) -> Sides[Any]:
        """Gates the projected features and keeps the mean gate.

        Args:
            z: The projected features, [num_nodes, width], or a tuple of several, such
                as keys and values, that are all multiplied by the same gate.
            gate_logit: The gate before its sigmoid.
            in_use: How many rows there are, 0-d, if the last ones are padding; their
                gate is 0 and does not count.
            mode: The `execution_mode`, where it is known.
        """
        sums: list[Tensor | None] = []
        counts: list[int | Tensor] = []

        def gate_side(logit: Tensor, z_side: Any) -> Any:
            parts = z_side if isinstance(z_side, tuple) else (z_side,)
            # The targets may be the first of the nodes that the gate was computed for.
            if logit.size(0) > parts[0].size(0):
                logit = logit[: parts[0].size(0)]
            count = _close_padding(logit, in_use)
            out, totals = zip(*(sigmoid_gate(logit, z) for z in parts), strict=True)
            # A gate that both sides share counts once in the mean.
            if not (sums and gate_logit.is_shared):
                sums.append(totals[0])
                counts.append(count)
            return out if isinstance(z_side, tuple) else out[0]

        gated = gate_logit.map(gate_side, z)
        self._keep(sums, sum(counts), mode)
        return gated

    def _keep(
        self, sums: list[Tensor | None], count: int | Tensor, mode: str | None
    ) -> None:
        """Keeps the gate of a pass: tensors that add up to its sum, and their count."""
        mode = execution_mode() if mode is None else mode
        traced = mode == "traced"
        if not torch.is_grad_enabled() or (traced and is_exporting()):
            if not traced and self._last is None:
                self._last = _WITHOUT_GRADIENTS
            return
        given = [total for total in sums if total is not None]
        if traced and torch.compiler.is_compiling():
            self._last = _Pass([_mean(given, count)], 1)
        # Checkpointing runs a layer a second time during backward. Skip that pass.
        elif not in_backward():
            level = None if mode == "eager" else transform_level()
            self._last = _Pass(given, count, level)

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
        # A transform that has ended, or one around this one, has other tensors.
        if not torch.compiler.is_compiling() and (
            last.level != transform_level() or not all(map(is_alive, last.sums))
        ):
            return None
        return _mean(last.sums, last.count)


class _Pass:
    """The gate of one forward pass: its sums and how many values they are of.

    An object and not a bare tensor, because compiled code must pass it on without
    looking inside: a tensor left by an earlier step would become an input of the
    compiled graph, and backward would run into that step's graph.
    """

    __slots__ = ("count", "level", "sums")

    def __init__(
        self, sums: list[Tensor], count: int | Tensor, level: int | None = None
    ) -> None:
        self.sums = sums
        self.count = count
        # The torch.func transform it belongs to.
        self.level = level


_WITHOUT_GRADIENTS = _Pass([], 0)


def _mean(sums: list[Tensor], count: int | Tensor) -> Tensor:
    # Kernels give partial sums.
    totals = [x if x.dim() == 0 else x.sum() for x in sums]
    # An empty graph has no gate values.
    least = max(count, 1) if isinstance(count, int) else count.clamp(min=1)
    return torch.stack(totals).sum() / least


def _logit_of_targets(logit: Tensor, graph: Graph) -> tuple[Tensor, int | Tensor]:
    """The logit of every target, and how many gate values count in the mean."""
    if logit.size(0) != graph.num_dst:
        logit = logit.expand(graph.num_dst, -1).contiguous()
    in_use = None if graph.in_use is None else graph.in_use[1]
    return logit, _close_padding(logit, in_use)


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
