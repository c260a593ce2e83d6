"""The base of the attention layers: PyG's layer interface and the forward pass."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense.linear import Linear

from tempergat.nn.conv._edges import EdgeLayer, EdgeValues, pack_weights
from tempergat.nn.conv._inputs import (
    check_count,
    check_device,
    check_features,
    check_rate,
    count_nodes,
    stack_sets,
)
from tempergat.nn.conv._messages import MessageLayer
from tempergat.nn.gate import FeatureGate, GateKind, gate_kind
from tempergat.nn.projection import Features, NodeInputs, Sides
from tempergat.nn.skip import ResidualKind, SkipLayer, check_residual
from tempergat.nn.temperature import Temperature, TemperatureKind, check_temperature
from tempergat.ops import (
    Graph,
    compile_ahead,
    draw_seed,
    execution_mode,
    fold_in,
)


class AttentionLayer(
    Temperature,
    FeatureGate,
    EdgeLayer,
    SkipLayer,
    MessageLayer,
    MessagePassing,  # type: ignore[misc]
):
    """Base of the attention layers; see :class:`TemperGATConv` for the arguments.

    A layer names its ``attention`` and defines its linear maps (``_projections``,
    ``_project``), the attention's inputs (``_attention_inputs``), and
    ``_attend_by_messages`` with PyG's ``edge_update`` and ``message``.

    The weighted sum thus exists three times. `ops.attend_and_gate` calls kernels, which
    build no tensor per edge and channel. PyG's explainers, hooks, other aggregations
    and subclasses that override ``message`` need the messages themselves, so the
    second way builds them as PyG does. The third is `tempergat.ops.reference`, the
    specification of the kernels, which also serves where no kernel can.
    ``tests/nn/test_three_ways.py`` compares them.
    """

    # The name of a registered attention.
    attention: str
    # PyG's layers hold the weights of a call here while it runs; ours do not.
    _alpha: Tensor | None = None
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
        *,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int,
        concat: bool,
        dropout: float,
        add_self_loops: bool,
        edge_dim: int | None,
        temperature: TemperatureKind,
        init_temp: float,
        gate: GateKind | bool,
        gate_bias_init: float,
        cache: bool,
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
        # Registered by `_initialize`, after the parameters that PyG's layers have.
        self.temperature_kind, self.init_temp = temperature, init_temp
        self._gate, self.gate_bias_init = gate, gate_bias_init

    def _side_channels(self, side: int) -> int:
        channels = self.in_channels
        return channels if isinstance(channels, int) else channels[side]

    def _initialize(self, share_gate: bool) -> None:
        """Draws the parameters PyG's layer has too, then adds temperature and gate.

        Temperature and gate are drawn last, so that layers which differ only in them
        start from the same weights.
        """
        self.reset_shared_parameters()
        self.add_temperature(self.temperature_kind, self.heads, self.init_temp)
        self.add_gate(
            self._gate,
            self.in_channels,
            self.heads * self.out_channels,
            self.gate_bias_init,
            share_gate,
            self.heads,
        )
        # The initial weights of stored runs come from a second draw.
        self.reset_gate()

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
        self.reset_temperature()
        self.reset_gate()

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
        sides = check_features(x, self._projections())
        if self.gate != "first":
            # The channels of a head repeat the logit of a head's gate.
            return self.gate_logit(sides.dst)[..., :: self._gate_repeats].sigmoid()
        gate = self.gate_logits(sides).map(torch.sigmoid)
        if gate.is_shared and not isinstance(x, tuple | list):
            return gate.src
        return gate.src, gate.dst

    def _run(
        self,
        features: Features | tuple[Features, Features | None],
        size: tuple[int | None, int | None] | None,
        edge_index: Any,
        of_edges: EdgeValues,
        return_attention_weights: bool | None,
        dropout_seed: Tensor | None,
    ) -> Any:
        """The forward pass: edges, linear maps, gate, attention, gate, output.

        ``of_edges`` are edge_attr, edge_weight and edge_bias.
        """
        mode = execution_mode()
        lins = self._projections()
        x = check_features(features, lins)
        sets = () if len(x.src.shape) == 2 else tuple(x.src.shape[:-2])
        by_messages = self.slow_path_reason() is not None
        return_weights = bool(return_attention_weights)
        sizes = count_nodes(x, size, edge_index)
        check_device(edge_index, x.src)
        if mode == "eager" and x.src.device.type == "cuda" and not by_messages:
            self._compile_kernels(x.src, return_weights)
        fixed = not (by_messages or return_weights)
        adjacency, edge_attr, edge_weight, edge_bias = self._resolve_edges(
            edge_index, sizes, of_edges, sets, fixed, mode
        )
        graph = adjacency.graph
        if sets:
            x, graph = stack_sets(x, graph), graph.repeat(math.prod(sets))

        res = self.skip_map()
        inputs = self._inputs(x, graph, lins, res, mode)
        residual = None
        if res is not None and inputs.dst is not None:
            residual = inputs.dst.project_targets(res)
        z = self._project(inputs, lins)
        gate_logit = None
        if self._gate == "first":
            in_use = None if graph.in_use is None else graph.in_use[0]
            z = self.gate_features(z, inputs, in_use, mode)
        elif self._gate is not None:
            gate_logit = self.gate_logit(inputs.dst)
        z = z.map(self._split_heads)

        seeds = self._head_seeds(dropout_seed, x.src.device)
        # The op adds a bias or a residual; heads are joined before that.
        added = self.bias if res is None else residual
        ends_here = self.concat and (res is None or self._adds_residual_alone())
        alpha: Tensor | None
        if by_messages:
            of_edges = (edge_attr, edge_weight, edge_bias)
            out, alpha = self._sum_by_messages(graph, z, of_edges, seeds)
            if gate_logit is not None:
                out = self.gate_output(out, gate_logit, graph, mode)
        else:
            out, alpha = self.attend(
                self.attention,
                graph,
                self._attention_inputs(graph, z, edge_attr),
                gate_logit,
                added if ends_here else None,
                mode=mode,
                edge_weight=edge_weight,
                edge_bias=edge_bias,
                dropout=0.0 if seeds is None else self.dropout,
                dropout_seed=seeds,
                return_weights=return_weights,
                **self._settings(),
            )
        if by_messages or not ends_here:
            out = self._combine(out, residual)
        if sets:
            out = out.view(*sets, sizes[1], out.size(-1))
        if return_weights:
            assert alpha is not None
            alpha = alpha.to(out.dtype)
            return out, pack_weights(adjacency, alpha, sets, edge_index)
        return out

    def _compile_kernels(self, x: Features, return_weights: bool) -> None:
        """Has the GPU kernels of a whole step compiled in parallel.

        Otherwise each kernel would be compiled when it is first launched, one after the
        other. Only the first call of its kind does anything.
        """
        half = torch.is_autocast_enabled("cuda")
        compile_ahead(
            self.attention,
            self.heads,
            self.out_channels,
            dtype=torch.get_autocast_dtype("cuda") if half else x.dtype,
            dropout=self.training and self.dropout > 0.0,
            gate=self.gate is not None,
            edge=self.edge_dim is not None,
            learnt=self.theta is not None and self.theta.dim() == 0,
            weights=return_weights,
            training=torch.is_grad_enabled(),
            device=x.device,
        )

    def _inputs(
        self,
        x: Sides[Features],
        graph: Graph,
        lins: Sides[Linear],
        res: Linear | None,
        mode: str,
    ) -> Sides[NodeInputs]:
        """The inputs by side, multiplied by all maps at once where that pays."""
        if x.is_shared:
            fewer = graph.num_dst < graph.num_src
            both = NodeInputs(x.src, mode, graph.num_dst if fewer else None)
            if both.joins:
                both.multiply_all((*self._node_maps(), *self.gate_maps(), res))
            return Sides(both, both)
        dst = None if x.dst is None else NodeInputs(x.dst, mode)
        return Sides(NodeInputs(x.src, mode), dst)

    def _node_maps(self) -> tuple[Linear | None, ...]:
        """The linear maps of the nodes' features that give the attention's inputs."""
        lins = self._projections()
        return lins.src, lins.dst

    def message_map(self) -> Linear:
        """The linear map of the sources' features that gives the messages."""
        return self._projections().src

    def _settings(self) -> dict[str, Any]:
        """The attention's numbers by name."""
        return {"negative_slope": self.negative_slope}

    def _split_heads(self, z: Any) -> Any:
        return z.view(-1, self.heads, self.out_channels)

    def _head_seeds(self, given: Tensor | None, device: torch.device) -> Tensor | None:
        """One seed per head for the attention dropout of this call."""
        if not self.training or self.dropout == 0.0:
            return None
        base = draw_seed(device) if given is None else given
        return fold_in(base, torch.arange(self.heads, device=device))

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
