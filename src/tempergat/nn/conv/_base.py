"""The base of the attention layers: their arguments, parameters and shared steps."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear

from tempergat.nn.conv._call import Call
from tempergat.nn.conv._inputs import check_count, check_features, check_rate
from tempergat.nn.conv._messages import MessageLayer
from tempergat.nn.gate import FeatureGate, GateKind, GateLinear, gate_kind
from tempergat.nn.projection import (
    Features,
    NodeInputs,
    Sides,
    make_projection,
    project,
)
from tempergat.nn.skip import ResidualKind, check_residual, gated_skip, make_beta
from tempergat.nn.temperature import (
    TemperatureKind,
    check_temperature,
    make_theta,
    set_theta,
    temperature_of,
)
from tempergat.ops import at_least_float32, divide_by_temperature

# Which gate the layer has, in the metadata of a state_dict.
_METADATA_KEY = "gate"


class AttentionLayer(MessageLayer):
    """Base of the attention layers; see :class:`TemperGATConv` for the arguments.

    A layer names its ``attention``, has its linear maps (`input_maps`) and a
    ``forward``: it makes a `Call`, projects the features, gates them or asks for the
    gate of the output, and gives the attention's inputs to `attend`, which calls
    kernels that build no tensor per edge and channel. PyG's explainers, hooks, other
    aggregations and subclasses that override ``message`` need the messages themselves:
    then `attend_by_messages` builds them with the layer's ``edge_update`` and
    ``message``, as PyG does. `tempergat.ops.reference` is the specification of both.
    """

    # The name of a registered attention.
    attention: str
    # PyG's layers hold the weights of a call here while it runs; ours do not.
    _alpha: Tensor | None = None
    # Set by `upgrade`: PyG's GATConv ignores edge_attr without edge_dim.
    ignores_edge_attr = False
    _warned_about_edge_attr = False
    # Shown by `repr` only where a layer differs from them.
    shown: ClassVar[dict[str, Any]] = {
        "concat": True,
        "dropout": 0.0,
        "add_self_loops": True,
        "edge_dim": None,
        "residual": False,
    }

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int,
        concat: bool,
        dropout: float,
        edge_dim: int | None,
        *,
        temperature: TemperatureKind,
        init_temp: float,
        gate: GateKind | bool,
        gate_bias_init: float,
        cache: bool,
        add_self_loops: bool = False,
        negative_slope: float = 0.2,
        fill_value: float | Tensor | str = "mean",
        residual: ResidualKind = False,
        **kwargs: Any,
    ) -> None:
        check_count("out_channels", out_channels)
        check_count("heads", heads)
        check_temperature(temperature, init_temp)
        gate = gate_kind(gate)
        check_residual(residual)
        check_rate("dropout", dropout)
        super().__init__(node_dim=0, **kwargs)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.heads = heads
        self.concat = concat
        self.negative_slope = negative_slope
        self.dropout = dropout
        self.add_self_loops = add_self_loops
        self.edge_dim = edge_dim
        self.fill_value = fill_value
        self.residual = residual
        self.lin_beta = None
        self.cache = cache
        self.temperature_kind, self.init_temp = temperature, init_temp
        self.gates = FeatureGate(gate, out_channels)
        self.gate_bias_init = gate_bias_init

    def _side_channels(self, side: int) -> int:
        channels = self.in_channels
        return channels if isinstance(channels, int) else channels[side]

    def _make_residual_and_bias(self, bias: bool) -> None:
        total = self.out_channels * (self.heads if self.concat else 1)
        if self.residual:
            self.res = make_projection(self._side_channels(1), total, bias=False)
        else:
            self.register_parameter("res", None)
        self.lin_beta = make_beta(total) if self.residual == "gate" else None
        given = nn.Parameter(torch.empty(total)) if bias else None
        self.register_parameter("bias", given)

    def _initialize(self, share_gate: bool) -> None:
        """Draws the parameters PyG's layer has too, then adds temperature and gate.

        Temperature and gate are drawn last, so that layers which differ only in them
        start from the same weights.

        Args:
            share_gate: Gate sources and targets of a bipartite graph by one map.
        """
        self.reset_shared_parameters()
        kinds = (self.temperature_kind, self.heads, self.init_temp)
        self.register_parameter("theta", make_theta(*kinds))
        self._make_gate(share_gate)
        # The initial weights of stored runs come from a second draw.
        self.reset_temperature_and_gate()

    def _make_gate(self, share: bool) -> None:
        width = self.heads * (1 if self.gate == "head" else self.out_channels)

        def linear(side: int) -> GateLinear:
            return GateLinear(self._side_channels(side), width, self.gate_bias_init)

        if self.gate == "first" and not isinstance(self.in_channels, int):
            self.lin_gate_src = linear(0)
            self.lin_gate_dst = self.lin_gate_src if share else linear(1)
        elif self.gate is not None:
            self.lin_gate = linear(1)

    def reset_parameters(self) -> None:
        """Draws all parameters again, those of temperature and gate last."""
        self.reset_shared_parameters()
        self.reset_temperature_and_gate()

    def reset_shared_parameters(self) -> None:
        """Draws the parameters that PyG's layer has too, in PyG's order."""
        super().reset_parameters()

    @staticmethod
    def _reset(*modules: Any) -> None:
        """Draws the parameters of these modules; None for absent ones."""
        for module in modules:
            if module is not None:
                module.reset_parameters()

    def reset_temperature_and_gate(self) -> None:
        """Sets theta and draws the gate."""
        if self.theta is not None:
            set_theta(self.theta, self.init_temp)
        self._reset(*self.gate_maps())

    @property
    def temperature(self) -> Tensor | None:
        """The current softmax temperature: 0-d, [heads], or None when plain."""
        if (theta := self.theta) is not None:
            return temperature_of(theta)
        kind = self.temperature_kind
        if kind is None or isinstance(kind, str):
            return None
        like = next(self.parameters())
        dtype = torch.promote_types(like.dtype, torch.float32)
        return torch.full((), float(kind), dtype=dtype, device=like.device)

    def divide_by_temperature(self, x: Tensor) -> Tensor:
        """``x / T`` in at least float32.

        Args:
            x: A factor of the logits, [..., heads, channels].
        """
        return self.divide_by_fixed_temperature(divide_by_temperature(x, self.theta))

    def divide_by_fixed_temperature(self, x: Tensor) -> Tensor:
        """``x / T`` if T is fixed; x itself for an op that takes ``theta``."""
        kind = self.temperature_kind
        if kind is None or isinstance(kind, str):
            return x
        temperature = self.temperature
        assert temperature is not None
        return at_least_float32(x) / temperature

    @property
    def gate(self) -> GateKind:
        """Which gate the layer has: ``"post"``, ``"first"``, ``"head"`` or None."""
        return self.gates.kind

    def gate_maps(self) -> list[Linear]:
        """The linear maps of the layer's input that the gate has."""
        names = ("lin_gate", "lin_gate_src", "lin_gate_dst")
        maps = [getattr(self, name, None) for name in names]
        return [lin for lin in maps if lin is not None]

    def gate_logit(self, x_dst: Features | NodeInputs | None) -> Tensor:
        """The logit of the gate on the output, [num_dst, width].

        Targets without features share one row. It is what zeros give, as in PyG's
        logits and residual.
        """
        if x_dst is None:
            return self.gates.widen(self.lin_gate.bias.unsqueeze(0))
        if isinstance(x_dst, NodeInputs):
            return self.gates.widen(x_dst.project_targets(self.lin_gate))
        return self.gates.widen(project(self.lin_gate, x_dst))

    def gate_logits(self, x: Sides[Any]) -> Sides[Tensor]:
        """The logits of the gate on the projected features, [num_nodes, width].

        Args:
            x: The layer's inputs by side: features or `NodeInputs`.
        """
        maps = self.gate_maps()
        return Sides(maps[0], maps[-1]).map(_project_all, x)

    def gate_values(
        self, x: Features | tuple[Features, Features | None]
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        """The gate of given inputs, [num_nodes, heads * out_channels].

        For ``gate="head"`` it is [num_nodes, heads].

        Args:
            x: The layer's input. For ``gate="first"`` a pair gives a pair; for other
                gates it gives the gate of the targets.
        """
        if self.gate is None:
            raise ValueError("this layer has no gate; make it with gate='post'")
        sides = check_features(x, self.input_maps())
        if self.gate != "first":
            # The channels of a head repeat the logit of a head's gate.
            return self.gate_logit(sides.dst)[..., :: self.gates.repeats].sigmoid()
        gate = self.gate_logits(sides).map(torch.sigmoid)
        if gate.is_shared and not isinstance(x, tuple | list):
            return gate.src
        return gate.src, gate.dst

    def input_maps(self) -> Sides[Linear]:
        """A linear map for each side, whose widths inputs are checked by."""
        raise NotImplementedError

    def node_maps(self) -> tuple[Linear | None, ...]:
        """All linear maps of the nodes' features."""
        maps = self.input_maps()
        return maps.src, maps.dst, *self.gate_maps(), self.skip_map()

    def message_map(self) -> Linear:
        """The linear map of the sources' features that gives the messages."""
        return self.input_maps().src

    def skip_map(self) -> Linear | None:
        """The linear map of the targets' features that is added to the output."""
        res: Linear | None = self.res
        return res

    def skip(self, x_dst: NodeInputs | None) -> Tensor | None:
        """What is added to the output beside the bias, [num_dst, total]."""
        lin = self.skip_map()
        return None if lin is None or x_dst is None else x_dst.project_targets(lin)

    def split_heads(self, z: Any) -> Any:
        """Features as [num_nodes, heads, channels]."""
        if isinstance(z, tuple):
            return tuple([part.view(-1, self.heads, self.out_channels) for part in z])
        return z.view(-1, self.heads, self.out_channels)

    def attend(
        self,
        call: Call,
        inputs: tuple[Tensor | None, ...],
        gate_logit: Tensor | None,
        skip: Tensor | None,
        **settings: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention by one op: the output with skip and bias, and the weights.

        Args:
            call: The call.
            inputs: The attention's inputs.
            gate_logit: The logit of a gate on the output; None for none.
            skip: What is added to the output beside the bias; None for nothing.
            **settings: The attention's numbers by name.
        """
        # Heads are averaged, and a gated skip is taken, before anything is added.
        ends_here = self.concat and self.lin_beta is None
        out, alpha = self.gates.attend(
            self.attention,
            call.graph,
            inputs,
            gate_logit,
            skip if ends_here else None,
            self.bias if ends_here else None,
            **call.options(),
            **settings,
        )
        return out if ends_here else self.join(out, skip), alpha

    def join(self, out: Tensor, skip: Tensor | None) -> Tensor:
        """Joins the heads, then adds skip and bias; a gated skip mixes both."""
        if not self.concat:
            # Other aggregations may give several values per channel.
            channels = out.size(1) // self.heads
            out = out.view(-1, self.heads, channels).mean(dim=1)
        if self.lin_beta is not None:
            # Targets without features count as zeros.
            skipped = torch.zeros_like(out) if skip is None else skip
            out = gated_skip(out, skipped, self.lin_beta)
        elif skip is not None:
            out = out + skip
        return out if self.bias is None else out + self.bias

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        # A plain dictionary has no metadata.
        metadata = getattr(destination, "_metadata", None)
        if metadata is not None and prefix[:-1] in metadata:
            metadata[prefix[:-1]][_METADATA_KEY] = self.gate

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *others: Any
    ) -> None:
        # Weights of "post" and "first" have the same names and shapes.
        # Weights that were saved by PyG do not say where a gate was.
        saved = local_metadata.get(_METADATA_KEY)
        if None not in (saved, self.gate) and saved != self.gate:
            remedy = ", or load dict(state_dict) to use them all the same"
            # torch's last argument is the list of error messages.
            others[-1].append(
                f"the weights of {prefix[:-1] or 'the layer'} are of gate={saved!r}, "
                f"but it has gate={self.gate!r}; make it with gate={saved!r}"
                + ("" if "head" in (saved, self.gate) else remedy)
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self.shown}
        shown = {
            "heads": self.heads,
            **{name: x for name, x in given.items() if x != self.shown[name]},
            "temperature": self.temperature_kind,
            "gate": self.gate,
        }
        settings = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        channels = f"{self.in_channels}, {self.out_channels}"
        return f"{type(self).__name__}({channels}, {settings})"


def _project_all(lin: Linear, x: Features | NodeInputs) -> Tensor:
    return x.project(lin) if isinstance(x, NodeInputs) else project(lin, x)
