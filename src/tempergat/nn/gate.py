"""The feature gate of an attention layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear

from tempergat.nn.penalty import GateMeans
from tempergat.nn.projection import Projectable, project
from tempergat.nn.sides import Sides
from tempergat.ops import close_rows, is_tracing, sigmoid_gate

GateKind = Literal["post", "first"] | None

# Where the gate is, in the metadata of a state_dict.
_METADATA_KEY = "gate"
_MAPS = ("lin_gate", "lin_gate_src", "lin_gate_dst")


class FeatureGate:
    r"""A gate :math:`g = \sigma(W_g h + b_g)` that any attention layer can have.

    It multiplies the aggregated output (``"post"``) or the projected features before
    attention sees them (``"first"``), element by element.

    This object holds the settings; what changes is on the layer itself: the linear map
    ``lin_gate`` (``lin_gate_src`` and ``lin_gate_dst`` for a gate before attention on
    a bipartite graph) and ``gate_means``, which `gate_penalty` reads. So they move,
    copy and save with the layer. Every method takes the layer::

        self.feature_gate = FeatureGate("post")
        self.feature_gate.add_to(self, in_channels, heads * out_channels)
        ...
        logit = self.feature_gate.output_logit(self, x)
        out = self.feature_gate.gate_output(self, out, logit)

    Args:
        kind: ``"post"``, ``"first"`` or None for no gate.
        bias_init: Initial value of the gate's bias.

    Raises:
        ValueError: The word names no gate.
    """

    def __init__(self, kind: GateKind, bias_init: float = 2.0) -> None:
        if kind not in ("post", "first", None):
            raise ValueError(f"gate must be 'post', 'first' or None, got {kind!r}")
        self.kind = kind
        self.bias_init = bias_init

    def add_to(
        self,
        layer: Any,
        in_channels: int | tuple[int, int],
        width: int,
        share_sides: bool = False,
    ) -> None:
        """Registers the gate's linear maps on the layer and draws their parameters.

        Args:
            layer: The layer.
            in_channels: Input features per node, or a pair for sources and targets.
            width: Features that are gated, heads * channels.
            share_sides: Gate sources and targets of a bipartite graph by one map.
        """
        layer.gate_means = GateMeans()
        if self.kind is None:
            return
        if isinstance(in_channels, int):
            layer.lin_gate = GateLinear(in_channels, width, self.bias_init)
        elif self.kind == "post":
            layer.lin_gate = GateLinear(in_channels[1], width, self.bias_init)
        else:
            layer.lin_gate_src = GateLinear(in_channels[0], width, self.bias_init)
            layer.lin_gate_dst = (
                layer.lin_gate_src
                if share_sides
                else GateLinear(in_channels[1], width, self.bias_init)
            )

    def reset(self, layer: Any) -> None:
        """Draws the gate's parameters again."""
        for name in _MAPS:
            lin = getattr(layer, name, None)
            if lin is not None:
                lin.reset_parameters()

    def save_kind(self, state: Any, prefix: str) -> None:
        """Writes where the gate is into the metadata of a ``state_dict``.

        Args:
            state: The dictionary that `state_dict` fills. A plain one has no metadata.
            prefix: What the names of the layer's weights begin with in it.
        """
        metadata = getattr(state, "_metadata", None)
        if metadata is not None and prefix[:-1] in metadata:
            metadata[prefix[:-1]][_METADATA_KEY] = self.kind

    def refuse_other_kind(
        self, metadata: Mapping[str, Any], prefix: str, errors: list[str]
    ) -> None:
        """Adds an error if weights are those of a gate in another place.

        The names and shapes of the weights are the same for both places.

        Args:
            metadata: The layer's metadata in a ``state_dict``. Weights that were saved
                by PyG do not say where a gate was.
            prefix: What the names of the layer's weights begin with.
            errors: The messages that `load_state_dict` raises.
        """
        saved = metadata.get(_METADATA_KEY)
        if None in (saved, self.kind) or saved == self.kind:
            return
        errors.append(
            f"the weights of {prefix[:-1] or 'the layer'} are of gate={saved!r}, but "
            f"it has gate={self.kind!r}; make it with gate={saved!r}, or load "
            "dict(state_dict) to use them all the same"
        )

    def maps(self, layer: Any) -> list[Linear]:
        """The gate's linear maps."""
        if self.kind is None:
            return []
        maps = [getattr(layer, name, None) for name in _MAPS]
        return [lin for lin in maps if lin is not None]

    def output_logit(self, layer: Any, x_dst: Projectable | None) -> Tensor:
        """The logit of the gate on the output, [num_dst, width].

        Targets without features share one row. It is what zeros give, as in PyG's
        logits and residual.
        """
        lin: Linear = layer.lin_gate
        return lin.bias.unsqueeze(0) if x_dst is None else project(lin, x_dst)

    def gate_output(
        self, layer: Any, out: Tensor, logit: Tensor, in_use: Tensor | None = None
    ) -> Tensor:
        """Gates the aggregated features and records the mean gate.

        Args:
            layer: The layer.
            out: The aggregated features, [num_dst, heads, channels].
            logit: From `output_logit`; one row serves all.
            in_use: How many rows there are, 0-d, if the last ones are padding; their
                gate is 0 and does not count.
        """
        if logit.size(0) != out.size(0):
            logit = logit.expand(out.size(0), -1).contiguous()
        gate, rows = Sides(logit.view_as(out), None), Sides(out, None)
        return self._gated(layer, gate, rows, in_use).src

    def record_output(self, layer: Any, out: Tensor, total: Tensor | None) -> Tensor:
        """Records the mean gate of an output that was gated elsewhere.

        Args:
            layer: The layer.
            out: The gated features.
            total: A tensor whose elements add up to the sum of the gate.

        Returns:
            The features, as the layer must pass them on.
        """
        means: GateMeans = layer.gate_means
        if not means.are_recorded():
            total = None
        out = _behind(out, total)
        means.record([total], out.numel(), layer.training, out)
        return out

    def gate_features(
        self,
        layer: Any,
        z: Sides[Tensor],
        x: Sides[Projectable],
        in_use: Tensor | None = None,
    ) -> Sides[Tensor]:
        """Gates the projected features and records the mean gate.

        Args:
            layer: The layer.
            z: The projected features, [num_nodes, width].
            x: The layer's inputs, which the gate is computed from.
            in_use: As in `gate_output`.
        """
        return self._gated(layer, self.feature_logits(layer, x), z, in_use)

    def feature_logits(self, layer: Any, x: Sides[Projectable]) -> Sides[Tensor]:
        """The logits of the gate on the projected features, [num_nodes, width]."""
        lin = getattr(layer, "lin_gate", None)
        if lin is not None:
            return Sides(lin, lin).map(project, x)
        return Sides(layer.lin_gate_src, layer.lin_gate_dst).map(project, x)

    def _gated(
        self,
        layer: Any,
        logit: Sides[Tensor],
        z: Sides[Tensor],
        in_use: Tensor | None,
    ) -> Sides[Tensor]:
        means: GateMeans = layer.gate_means
        sums: list[Tensor | None] = []
        count: int | Tensor = 0

        def gate_side(logit_side: Tensor, z_side: Tensor) -> Tensor:
            nonlocal count
            # A gate that both sides share counts once in the mean.
            counts = not (sums and logit.is_shared)
            # The targets may be the first of the nodes that the gate was computed for.
            if logit_side.size(0) > z_side.size(0):
                logit_side = logit_side[: z_side.size(0)]
            values: int | Tensor = logit_side.numel()
            if in_use is not None:
                close_rows(logit_side, in_use)
                values = in_use * logit_side[0].numel()
            wanted = counts and means.are_recorded()
            out, total = sigmoid_gate(logit_side, z_side, wanted)
            if counts:
                sums.append(total)
                count = count + values
            return _behind(out, total)

        gated = logit.map(gate_side, z)
        means.record(sums, count, layer.training, gated.src)
        return gated


def _behind(out: Tensor, total: Tensor | None) -> Tensor:
    """The output under an autograd node that the gate's sum does not depend on.

    `GateMeans` needs it. The fused kernel gives both results one node.
    """
    if total is None or is_tracing():
        return out
    one_node = out.grad_fn is not None and out.grad_fn is total.grad_fn
    return out.view_as(out) if one_node else out


class GateLinear(Linear):  # type: ignore[misc]
    """The linear map inside a gate's sigmoid, with a chosen initial bias."""

    def __init__(self, in_channels: int, out_channels: int, bias_init: float) -> None:
        self.bias_init = bias_init
        super().__init__(in_channels, out_channels, weight_initializer="glorot")

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.constant_(self.bias, self.bias_init)
