"""The feature gate of an attention layer."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear

from tempergat.nn.penalty import GateMeans
from tempergat.nn.projection import Features, NodeInputs, Sides, project
from tempergat.ops import (
    Graph,
    attend_and_gate,
    close_rows,
    execution_mode,
    sigmoid_gate,
)

GateKind = Literal["post", "first", "head"] | None

# Where the gate is, in the metadata of a state_dict.
_METADATA_KEY = "gate"
_MAPS = ("lin_gate", "lin_gate_src", "lin_gate_dst")
_USE_ALL_THE_SAME = ", or load dict(state_dict) to use them all the same"


class FeatureGate:
    r"""A gate :math:`g = \sigma(W_g h + b_g)` that any attention layer can have.

    It multiplies the aggregated output (``"post"``) or the projected features before
    attention sees them (``"first"``), element by element, or the output of each head by
    one number (``"head"``). It is a base class of the layer, whose submodule
    ``lin_gate`` is the linear map (``lin_gate_src`` and ``lin_gate_dst`` for a gate
    before attention on a bipartite graph)::

        class MyLayer(FeatureGate, nn.Module):
            def __init__(self, in_channels, width):
                super().__init__()
                self.add_gate("post", in_channels, width)

            def forward(self, x, graph, value, key, query):
                logit = self.gate_logit(x)
                out, _ = self.attend("dot", graph, (value, key, query), logit)

    Attributes:
        gate_means: The mean gate of the last pass, which `gate_penalty` reads.
        gate_bias_init: The initial value of the gate's bias.
    """

    gate_means: GateMeans
    gate_bias_init: float
    training: bool
    _gate: GateKind
    # Features that one gate on the output multiplies.
    _gate_repeats: int = 1

    def add_gate(
        self,
        kind: GateKind | bool,
        in_channels: int | tuple[int, int],
        width: int,
        bias_init: float = 2.0,
        share_sides: bool = False,
        heads: int = 1,
    ) -> None:
        """Registers the gate's linear maps and draws their parameters.

        Args:
            kind: ``"post"`` or True, ``"first"``, ``"head"``, None or False for none.
            in_channels: Input features per node, or a pair for sources and targets.
            width: Features that are gated, heads * channels.
            bias_init: Initial value of the gate's bias.
            share_sides: Gate sources and targets of a bipartite graph by one map.
            heads: How many gates of ``"head"`` share the width.

        Raises:
            ValueError: The word names no gate.
        """
        kind = gate_kind(kind)
        self.gate_means = GateMeans()
        self._gate, self.gate_bias_init = kind, bias_init
        if kind is None:
            return
        if kind == "head":
            self._gate_repeats, width = width // heads, heads
        if isinstance(in_channels, int):
            self.lin_gate = GateLinear(in_channels, width, bias_init)
        elif kind != "first":
            self.lin_gate = GateLinear(in_channels[1], width, bias_init)
        else:
            self.lin_gate_src = GateLinear(in_channels[0], width, bias_init)
            self.lin_gate_dst = (
                self.lin_gate_src
                if share_sides
                else GateLinear(in_channels[1], width, bias_init)
            )

    @property
    def gate(self) -> GateKind:
        """Which gate the layer has: ``"post"``, ``"first"``, ``"head"`` or None."""
        return self._gate

    def reset_gate(self) -> None:
        """Draws the gate's parameters again."""
        for lin in [getattr(self, name, None) for name in _MAPS]:
            if lin is not None:
                lin.reset_parameters()

    def gate_maps(self) -> list[Linear]:
        """The linear maps of the layer's input that the gate has."""
        if self._gate is None:
            return []
        maps = [getattr(self, name, None) for name in _MAPS]
        return [lin for lin in maps if lin is not None]

    def gate_logit(self, x_dst: Features | NodeInputs | None) -> Tensor:
        """The logit of the gate on the output, [num_dst, width].

        Targets without features share one row. It is what zeros give, as in PyG's
        logits and residual.
        """
        logit: Tensor
        if x_dst is None:
            logit = self.lin_gate.bias.unsqueeze(0)
        elif isinstance(x_dst, NodeInputs):
            logit = x_dst.project_targets(self.lin_gate)
        else:
            logit = project(self.lin_gate, x_dst)
        if self._gate_repeats == 1:
            return logit
        # The tracing ONNX exporter gets repeat_interleave wrong.
        wide = logit.unsqueeze(-1).expand(*logit.shape, self._gate_repeats)
        return wide.contiguous().flatten(-2)

    def gate_logits(self, x: Sides[Any]) -> Sides[Tensor]:
        """The logits of the gate on the projected features, [num_nodes, width].

        Args:
            x: The layer's inputs by side: features or `NodeInputs`.
        """
        lin = getattr(self, "lin_gate", None)
        maps = Sides(lin, lin)
        if lin is None:
            maps = Sides(self.lin_gate_src, self.lin_gate_dst)
        return maps.map(_project_all, x)

    def attend(
        self,
        attention: str,
        graph: Graph,
        inputs: tuple[Tensor | None, ...],
        gate_logit: Tensor | None = None,
        bias: Tensor | None = None,
        *,
        mode: str | None = None,
        edge_weight: Tensor | None = None,
        edge_bias: Tensor | None = None,
        dropout: float = 0.0,
        dropout_seed: Tensor | None = None,
        return_weights: bool = False,
        **settings: float,
    ) -> tuple[Tensor, Tensor | None]:
        """Runs an attention, gates its output and records the mean gate.

        Args:
            attention: The name of a registered attention.
            graph: The graph.
            inputs: The attention's inputs, as for `ops.attend`.
            gate_logit: From `gate_logit`, one row for all nodes or one for each; None
                for no gate on the output.
            bias: What is added after the gate, to every row, [width], or to each its
                own, [num_dst, width].
            mode: The `execution_mode`, where it is known.
            edge_weight: A factor of each attention weight, [E] or [E, heads].
            edge_bias: What is added to each logit, [E] or [E, heads].
            dropout: Rate of dropout on the attention weights.
            dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
            return_weights: Also return the attention weights.
            settings: The attention's numbers by name, such as ``negative_slope``.

        Returns:
            The output, [num_dst, width], and the weights.
        """
        count: int | Tensor = 0
        if gate_logit is not None:
            gate_logit, count = _logit_of_targets(gate_logit, graph)
        mode = execution_mode() if mode is None else mode
        out, weights, total = attend_and_gate(
            attention,
            graph,
            inputs,
            gate_logit,
            bias,
            eager=mode == "eager",
            edge_weight=edge_weight,
            edge_bias=edge_bias,
            dropout=dropout,
            dropout_seed=dropout_seed,
            return_weights=return_weights,
            **settings,
        )
        if gate_logit is not None:
            self.gate_means.record([total], count, self.training, mode)
        return out, weights

    def gate_output(
        self, out: Tensor, gate_logit: Tensor, graph: Graph, mode: str | None = None
    ) -> Tensor:
        """Gates features that were aggregated elsewhere and records the mean gate.

        Args:
            out: The aggregated features, [num_dst, width].
            gate_logit: From `gate_logit`.
            graph: The graph.
            mode: The `execution_mode`, where it is known.
        """
        gate_logit, count = _logit_of_targets(gate_logit, graph)
        out, total = sigmoid_gate(gate_logit, out)
        self.gate_means.record([total], count, self.training, mode)
        return out

    def gate_features(
        self,
        z: Sides[Any],
        x: Sides[Any],
        in_use: Tensor | None = None,
        mode: str | None = None,
    ) -> Sides[Any]:
        """Gates the projected features and records the mean gate.

        Args:
            z: The projected features, [num_nodes, width], or a tuple of several, such
                as keys and values, that are all multiplied by the same gate.
            x: The layer's inputs, which the gate is computed from.
            in_use: How many rows there are, 0-d, if the last ones are padding; their
                gate is 0 and does not count.
            mode: The `execution_mode`, where it is known.
        """
        logit = self.gate_logits(x)
        sums: list[Tensor | None] = []
        counts: list[int | Tensor] = []

        def gate_side(logit_side: Tensor, z_side: Any) -> Any:
            parts = z_side if isinstance(z_side, tuple) else (z_side,)
            # The targets may be the first of the nodes that the gate was computed for.
            if logit_side.size(0) > parts[0].size(0):
                logit_side = logit_side[: parts[0].size(0)]
            count = _close_padding(logit_side, in_use)
            out, totals = zip(
                *(sigmoid_gate(logit_side, z) for z in parts), strict=True
            )
            # A gate that both sides share counts once in the mean.
            if not (sums and logit.is_shared):
                sums.append(totals[0])
                counts.append(count)
            return out if isinstance(z_side, tuple) else out[0]

        gated = logit.map(gate_side, z)
        self.gate_means.record(sums, sum(counts), self.training, mode)
        return gated

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(  # type: ignore[misc]
            destination, prefix, keep_vars
        )
        # A plain dictionary has no metadata.
        metadata = getattr(destination, "_metadata", None)
        if metadata is not None and prefix[:-1] in metadata:
            metadata[prefix[:-1]][_METADATA_KEY] = self._gate

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *others: Any
    ) -> None:
        # Weights of "post" and "first" have the same names and shapes.
        # Weights that were saved by PyG do not say where a gate was.
        saved = local_metadata.get(_METADATA_KEY)
        if None not in (saved, self._gate) and saved != self._gate:
            # torch's last argument is the list of error messages.
            others[-1].append(
                f"the weights of {prefix[:-1] or 'the layer'} are of gate={saved!r}, "
                f"but it has gate={self._gate!r}; make it with gate={saved!r}"
                + ("" if "head" in (saved, self._gate) else _USE_ALL_THE_SAME)
            )
        super()._load_from_state_dict(  # type: ignore[misc]
            state_dict, prefix, local_metadata, *others
        )


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


def _project_all(lin: Linear, x: Features | NodeInputs) -> Tensor:
    return x.project(lin) if isinstance(x, NodeInputs) else project(lin, x)


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
    """The linear map inside a gate's sigmoid, with a chosen initial bias."""

    def __init__(self, in_channels: int, out_channels: int, bias_init: float) -> None:
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
