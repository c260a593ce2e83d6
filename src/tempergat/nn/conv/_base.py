"""The base of the attention layers: their arguments, parameters and shared steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.inits import glorot, zeros

from tempergat.nn.conv._call import Call
from tempergat.nn.conv._inputs import check_count, check_features, check_rate
from tempergat.nn.conv._messages import MessageLayer
from tempergat.nn.gate import (
    FeatureGate,
    GateKind,
    GateLinear,
    gate_kind,
    logit_of_targets,
)
from tempergat.nn.projection import Features, make_projection, project
from tempergat.nn.skip import ResidualKind, check_residual, gated_skip, make_beta
from tempergat.nn.temperature import (
    TemperatureKind,
    check_temperature,
    make_theta,
    set_theta,
    temperature_of,
)
from tempergat.ops import (
    Epilogue,
    at_least_float32,
    attend_with,
    divide_by_temperature,
    registered,
)

# Which gate the layer has, in the metadata of a state_dict.
_METADATA_KEY = "gate"
# The names that the linear maps of a gate can have.
_GATE_MAPS = ("lin_gate", "lin_gate_src", "lin_gate_dst")


class AttentionLayer(MessageLayer):
    """Base of the attention layers; see :class:`TemperGATConv` for the arguments.

    A layer names its ``attention``, the maps whose widths inputs are checked by
    (`input_maps`) and what it draws as PyG's layer does (``drawn``), and has a
    ``forward``: it makes a `Call`, projects the features, gates them or asks for the
    gate of the output, and gives the attention's inputs to `attend`, which calls
    kernels that build no tensor per edge and channel. PyG's explainers, hooks, other
    aggregations and subclasses that override ``message`` need the messages themselves:
    then `attend_by_messages` builds them with the layer's ``edge_update`` and
    ``message``, as PyG does. `tempergat.ops.reference` is the specification of both.
    """

    # The name of a registered attention.
    attention: str
    # The modules and parameters that PyG's layer has too, in the order of its draws.
    drawn: ClassVar[tuple[str, ...]]
    # A method: the maps of messages and of targets, whose widths inputs must have.
    input_maps: Callable[[], tuple[Linear, Linear]]
    # What needs the target nodes' features, in words; None if nothing does.
    needs_targets: ClassVar[str | None] = None
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
        self.in_channels, self.out_channels = in_channels, out_channels
        self.heads, self.concat, self.dropout = heads, concat, dropout
        self.negative_slope, self.add_self_loops = negative_slope, add_self_loops
        self.edge_dim, self.fill_value, self.residual = edge_dim, fill_value, residual
        self.lin_edge: Any = None
        self.lin_beta: Any = None
        self.cache = cache
        self.temperature_kind, self.init_temp = temperature, init_temp
        self.gates = FeatureGate(gate, out_channels)
        self.gate_bias_init = gate_bias_init

    @property
    def widths(self) -> tuple[int, int]:
        """Features per source node and per target node."""
        channels = self.in_channels
        return (channels, channels) if isinstance(channels, int) else channels

    def _make_residual_and_bias(self, bias: bool) -> None:
        total = self.out_channels * (self.heads if self.concat else 1)
        if self.residual:
            self.res = make_projection(self.widths[1], total, bias=False)
        else:
            self.register_parameter("res", None)
        self.lin_beta = make_beta(total) if self.residual == "gate" else None
        given = nn.Parameter(torch.empty(total)) if bias else None
        self.register_parameter("bias", given)

    def _initialize(self, share_gate: bool = False) -> None:
        """Draws the parameters PyG's layer has too, then adds temperature and gate.

        Temperature and gate are drawn last, so that layers which differ only in them
        start from the same weights. ``share_gate`` gates sources and targets of a
        bipartite graph by one map.
        """
        self.reset_shared_parameters()
        kinds = (self.temperature_kind, self.heads, self.init_temp)
        self.register_parameter("theta", make_theta(*kinds))
        width = self.heads * (1 if self.gate == "head" else self.out_channels)
        src, dst = self.widths
        if self.gate == "first" and not isinstance(self.in_channels, int):
            lin = self.lin_gate_src = GateLinear(src, width, self.gate_bias_init)
            if not share_gate:
                lin = GateLinear(dst, width, self.gate_bias_init)
            self.lin_gate_dst = lin
        elif self.gate is not None:
            self.lin_gate = GateLinear(dst, width, self.gate_bias_init)
        # The initial weights of stored runs come from a second draw.
        self.reset_temperature_and_gate()

    def reset_parameters(self) -> None:
        """Draws all parameters again, those of temperature and gate last."""
        self.reset_shared_parameters()
        self.reset_temperature_and_gate()

    def reset_shared_parameters(self) -> None:
        """Draws the parameters that PyG's layer has too, in PyG's order."""
        super().reset_parameters()
        for name in self.drawn:
            part: Any = getattr(self, name, None)
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
            elif name == "bias":
                zeros(part)
            else:
                glorot(part)

    def reset_temperature_and_gate(self) -> None:
        """Sets theta and draws the gate."""
        if self.theta is not None:
            set_theta(self.theta, self.init_temp)
        for name in _GATE_MAPS:
            if name in self._modules:
                getattr(self, name).reset_parameters()

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
        """``x / T`` in at least float32, for factors x of the logits, [..., H, C]."""
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

    def gate_maps(self) -> tuple[Linear | None, Linear | None]:
        """The gate's linear maps of sources and of targets; None for absent ones."""
        if self.gate != "first":
            return None, None if self.gate is None else self.lin_gate
        if isinstance(self.in_channels, int):
            return self.lin_gate, self.lin_gate
        return self.lin_gate_src, self.lin_gate_dst

    def gate_logit(self, x_dst: Features) -> Tensor:
        """The logit of the gate on the output, of every channel, [num_dst, width]."""
        logit: Tensor = self.gates.widen(project(self.lin_gate, x_dst))
        return logit

    def gate_of_output(self, logit: Tensor | None) -> Tensor | None:
        """What `attend` takes, from what the gate's map gives; None without a gate."""
        if self.gate in (None, "first"):
            return None
        if logit is None:
            # Targets without features: what zeros give, as in PyG's residual.
            logit = self.lin_gate.bias.unsqueeze(0)
        return self.gates.widen(logit)

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
        x_src, x_dst = check_features(x, self.input_maps())
        lin_src, lin_dst = self.gate_maps()
        dst: Tensor | None = None
        if x_dst is not None and lin_dst is not None:
            dst = project(lin_dst, x_dst).sigmoid()
        if lin_src is None:
            return self.lin_gate.bias.unsqueeze(0).sigmoid() if dst is None else dst
        src = dst if x_dst is x_src and lin_src is lin_dst else None
        src = project(lin_src, x_src).sigmoid() if src is None else src
        return (src, dst) if isinstance(x, tuple | list) else src

    def skip_map(self) -> Any:
        """The linear map of the targets' features that is added to the output."""
        return self.res

    def split_heads(self, z: Any, count: int | None = None) -> Any:
        """Features as [num_nodes, heads, channels], perhaps of the first nodes."""
        if z is None:
            return None
        if count is not None and z.size(0) != count:
            z = z[:count]
        return z.view(-1, self.heads, self.out_channels)

    def split_map(self, lin: Linear) -> Tensor:
        """The weight of a linear map, [heads, channels, features]."""
        weight: Tensor = lin.weight
        return weight.view(self.heads, self.out_channels, -1)

    def attend(
        self,
        call: Call,
        gate_logit: Tensor | None,
        skip: Tensor | None,
        *inputs: Tensor | None,
        **settings: float,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention by one op: the output with skip and bias, and the weights.

        Args:
            call: The call.
            gate_logit: The logit of a gate on the output; None for none.
            skip: What is added to the output beside the bias; None for nothing.
            *inputs: The attention's inputs.
            **settings: The attention's numbers, in the order of its registration.
        """
        count: int | Tensor | None = None
        if gate_logit is not None:
            gate_logit, count = logit_of_targets(gate_logit, call.graph)
        # Heads are averaged, and a gated skip is taken, before anything is added.
        ends_here = self.concat and self.lin_beta is None
        given = (*inputs, call.edge_weight, call.edge_bias)
        first, bias = (skip, self.bias) if ends_here else (None, None)
        epilogue = Epilogue(gate_logit, first, bias, torch.is_grad_enabled())
        rest = (call.dropout, call.seeds, call.return_weights, epilogue, call.mode)
        kind, numbers = registered(self.attention), tuple(settings.values())
        out, alpha, total = attend_with(kind, call.graph, given, numbers, *rest)
        if count is not None:
            self.gates.keep([total], count)
        out = out.flatten(1)
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
