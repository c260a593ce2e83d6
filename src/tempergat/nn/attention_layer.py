"""What both attention layers share: arguments, gate, temperature, graph, epilogue."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.utils import scatter

from tempergat.nn.adjacency import Adjacency, num_targets, resolve
from tempergat.nn.gate import GateLinear, GateMeans, check_gate
from tempergat.nn.projection import (
    Features,
    Projectable,
    Together,
    as_features,
    make_projection,
    many_models,
    project,
)
from tempergat.nn.temperature import (
    at_least_float32,
    check_temperature,
    make_theta,
    set_theta,
    temperature_of,
)
from tempergat.ops import (
    Graph,
    draw_seed,
    fold_in,
    is_tracing,
    keep_factor,
    sigmoid_gate,
)

Temperature = Literal["layer", "head"] | float | None
Gate = Literal["post", "first"] | None

_HOOKS = ("propagate", "message", "aggregate", "edge_update")
_OVERRIDABLE = ("message", "aggregate", "update", "edge_update")


def check_count(name: str, value: object) -> None:
    """Raises unless the value counts something that must be there."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")


class AttentionLayer(MessagePassing):  # type: ignore[misc]
    """Base of the two layers; see :class:`TemperGATConv` for the arguments."""

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int,
        concat: bool,
        negative_slope: float,
        dropout: float,
        add_self_loops: bool,
        edge_dim: int | None,
        fill_value: float | Tensor | str,
        residual: bool,
        temperature: Temperature,
        init_temp: float,
        gate: Gate,
        gate_bias_init: float,
        **kwargs: Any,
    ) -> None:
        check_count("out_channels", out_channels)
        check_count("heads", heads)
        check_temperature(temperature, init_temp)
        check_gate(gate)
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"dropout must be between 0 and 1, got {dropout!r}")
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
        self.temperature_kind = temperature
        self.init_temp = init_temp
        self.gate = gate
        self.gate_bias_init = gate_bias_init
        self.gate_means = GateMeans()
        # Set by `upgrade`: PyG's GATConv ignores edge_attr without edge_dim.
        self.ignores_edge_attr = False
        self._said_edge_attr_ignored = False

    @property
    def target_to_source(self) -> bool:
        return bool(self.flow == "target_to_source")

    def _make_residual_and_bias(self, bias: bool) -> None:
        total = self.out_channels * (self.heads if self.concat else 1)
        if self.residual:
            self.res = make_projection(self._side_channels(1), total, bias=False)
        else:
            self.register_parameter("res", None)
        if bias:
            self.bias = nn.Parameter(torch.empty(total))
        else:
            self.register_parameter("bias", None)

    def _side_channels(self, side: int) -> int:
        channels = self.in_channels
        return channels if isinstance(channels, int) else channels[side]

    def _make_temperature_and_gate(self, share_gate: bool) -> None:
        """The paper's parts, made after everything PyG's layer has.

        Their initial values are drawn last, so that layers which differ only in
        them start from the same weights.
        """
        if isinstance(self.temperature_kind, str):
            self.theta = make_theta(self.temperature_kind, self.heads)
        else:
            self.register_parameter("theta", None)
            fixed = self.temperature_kind
            self.register_buffer(
                "fixed_temperature",
                None if fixed is None else torch.tensor(float(fixed)),
                persistent=False,
            )
        width = self.heads * self.out_channels
        bias_init = self.gate_bias_init
        if self.gate == "first" and not isinstance(self.in_channels, int):
            src, dst = self.in_channels
            self.lin_gate_src = GateLinear(src, width, bias_init)
            self.lin_gate_dst = (
                self.lin_gate_src if share_gate else GateLinear(dst, width, bias_init)
            )
        elif self.gate is not None:
            self.lin_gate = GateLinear(self._side_channels(1), width, bias_init)

    def reset_parameters(self) -> None:
        """Draws all parameters anew, those of temperature and gate last."""
        self.reset_shared_parameters()
        self.reset_temperature_and_gate()

    def reset_shared_parameters(self) -> None:
        """Draws the parameters that PyG's layer has too, in PyG's order."""
        super().reset_parameters()

    def reset_temperature_and_gate(self) -> None:
        """Sets theta and draws the gate."""
        if self.theta is not None:
            set_theta(self.theta, self.init_temp)
        for name in ("lin_gate", "lin_gate_src", "lin_gate_dst"):
            if hasattr(self, name):
                getattr(self, name).reset_parameters()

    @property
    def temperature(self) -> Tensor | None:
        """The current softmax temperature: 0-d, [heads], or None when plain."""
        if self.theta is not None:
            return temperature_of(self.theta)
        if self.fixed_temperature is None:
            return None
        # From the number itself: the buffer may have been rounded on its way.
        like = at_least_float32(self.fixed_temperature)
        return torch.full_like(like, float(self.temperature_kind))

    def gate_values(
        self, x: Features | tuple[Features, Features | None]
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        """The gate for given inputs, [num_nodes, heads * out_channels].

        Args:
            x: The layer's input. For ``gate="first"`` a pair gives a pair; for
                ``gate="post"`` a pair gives the gate of the targets.
        """
        if self.gate is None:
            raise ValueError("this layer has no gate; make it with gate='post'")
        x_src, x_dst = self._sides(x)
        if self.gate == "post":
            return torch.sigmoid(self._post_logit(x_dst))
        logit_src, logit_dst = self._first_logits(x_src, x_dst)
        gate_src = torch.sigmoid(logit_src)
        if logit_dst is None:
            return gate_src, None
        if logit_dst is not logit_src:
            return gate_src, torch.sigmoid(logit_dst)
        return (gate_src, gate_src) if isinstance(x, tuple | list) else gate_src

    def _post_logit(self, x_dst: Projectable | None) -> Tensor:
        if x_dst is None:
            raise ValueError(
                "gate='post' gates by the target nodes' features, but x is "
                "(x_src, None); pass them, or use gate='first' or gate=None"
            )
        return project(self.lin_gate, x_dst)

    def _first_logits(
        self, x_src: Projectable, x_dst: Projectable | None
    ) -> tuple[Tensor, Tensor | None]:
        if hasattr(self, "lin_gate"):
            lin_src = lin_dst = self.lin_gate
        else:
            lin_src, lin_dst = self.lin_gate_src, self.lin_gate_dst
        logit_src = project(lin_src, x_src)
        if x_dst is None:
            return logit_src, None
        if x_dst is x_src and lin_dst is lin_src:
            return logit_src, logit_src
        return logit_src, project(lin_dst, x_dst)

    def _gate_first(
        self,
        z_src: Tensor,
        z_dst: Tensor | None,
        x_src: Projectable,
        x_dst: Projectable | None,
    ) -> tuple[Tensor, Tensor | None]:
        logit_src, logit_dst = self._first_logits(x_src, x_dst)
        one_gate = logit_dst is logit_src
        gated_src, total = sigmoid_gate(logit_src, z_src, self.gate_means.wanted())
        totals, count = [total], logit_src.numel()
        if z_dst is z_src and one_gate:
            z_dst = gated_src
        elif z_dst is not None and logit_dst is not None:
            wanted = self.gate_means.wanted() and not one_gate
            z_dst, total = sigmoid_gate(logit_dst, z_dst, wanted)
            if not one_gate:
                totals, count = [*totals, total], count + logit_dst.numel()
        self.gate_means.record(totals, count, self.training)
        return gated_src, z_dst

    def _maps_of_one_input(self) -> list[Linear]:
        """The linear maps of a node's features, each once."""
        names = ("lin_gate", "lin_gate_src", "lin_gate_dst", "res")
        others = [getattr(self, name, None) for name in names]
        maps = [self._projection_of(0), self._projection_of(1), *others]
        return list(dict.fromkeys(lin for lin in maps if lin is not None))

    def _sides(
        self, x: Features | tuple[Features, Features | None]
    ) -> tuple[Features, Features | None]:
        """Source and target inputs, checked."""
        x_src, x_dst = x if isinstance(x, tuple | list) else (x, x)
        if x_src is None:
            raise ValueError("x must hold the source nodes' features, got None")
        same = x_dst is x_src
        x_src = as_features(x_src)
        x_dst = x_src if same else None if x_dst is None else as_features(x_dst)
        for name, side, value in (("source", 0, x_src), ("target", 1, x_dst)):
            if value is None:
                continue
            if not isinstance(value, Features):
                raise TypeError(
                    f"x must be a tensor, got {type(value).__name__} for the {name} "
                    f"nodes; convert it with torch.as_tensor(x)"
                )
            if len(value.shape) != 2:
                raise ValueError(
                    f"x must have shape [num_nodes, channels], got "
                    f"{list(value.shape)} for the {name} nodes"
                )
            # A user's own module in the place of a map checks for itself.
            expected = getattr(self._projection_of(side), "in_channels", -1)
            if expected > 0 and value.size(-1) != expected:
                raise ValueError(
                    f"x has {value.size(-1)} {name} features per node, but the layer "
                    f"was made for in_channels={expected}"
                )
        return x_src, x_dst

    def _sizes(
        self,
        x_src: Features,
        x_dst: Features | None,
        size: tuple[int | None, int | None] | None,
        edge_index: Any,
    ) -> tuple[int, int]:
        num_src = x_src.size(0)
        given_src, given_dst = (None, None) if size is None else size
        if x_dst is not None:
            num_dst = x_dst.size(0)
        elif given_dst is not None:
            num_dst = given_dst
        else:
            num_dst = num_targets(edge_index) or num_src
        if given_src not in (None, num_src) or given_dst not in (None, num_dst):
            raise ValueError(
                f"size is {(given_src, given_dst)}, but x has {num_src} source and "
                f"{num_dst} target rows"
            )
        return num_src, num_dst

    def _resolve(
        self,
        edge_index: Any,
        size: tuple[int, int],
        x_src: Features,
        static_shapes: bool,
    ) -> Adjacency:
        device = getattr(edge_index, "device", None)
        if isinstance(device, torch.device) and device != x_src.device:
            raise ValueError(
                f"edge_index is on {device}, but x is on {x_src.device}; move one of "
                f"them with .to()"
            )
        return resolve(
            edge_index,
            size,
            self.add_self_loops,
            self.target_to_source,
            static_shapes,
        )

    def _check_edge_attr(self, edge_attr: Tensor | None) -> Tensor | None:
        if edge_attr is None:
            return None
        if self.edge_dim is None:
            if self.ignores_edge_attr:
                if not (self._said_edge_attr_ignored or is_tracing()):
                    self._said_edge_attr_ignored = True
                    warnings.warn(
                        "edge_attr is ignored, as by the PyG layer this one replaces: "
                        "it was made without edge_dim",
                        stacklevel=2,
                    )
                return None
            raise ValueError(
                f"edge_attr of shape {list(edge_attr.shape)} was given, but the layer "
                f"has no edge_dim and could not use it; make the layer with "
                f"edge_dim={edge_attr.size(-1) if edge_attr.dim() > 1 else 1}, or do "
                f"not pass edge_attr"
            )
        if edge_attr.dim() == 1:
            edge_attr = edge_attr.unsqueeze(-1)
        expected = getattr(self.lin_edge, "in_channels", self.edge_dim)
        if expected > 0 and edge_attr.size(-1) != expected:
            raise ValueError(
                f"edge_attr has {edge_attr.size(-1)} features per edge, but the layer "
                f"was made with edge_dim={expected}"
            )
        return edge_attr

    def _edge_features(self, graph: Graph, edge_attr: Tensor | None) -> Tensor | None:
        """The features of all edges of the graph, self-loops included."""
        if edge_attr is None:
            return None
        if edge_attr.size(0) != graph.num_edges:
            raise ValueError(
                f"edge_attr has {edge_attr.size(0)} rows, but edge_index has "
                f"{graph.num_edges} edges"
            )
        if not graph.self_loops:
            return edge_attr
        num_given = graph.edge_id.size(0) - graph.num_loops
        if num_given != graph.num_edges:
            edge_attr = edge_attr[graph.edge_id[:num_given]]
        fill = self.fill_value
        if isinstance(fill, str):
            # PyG reduces over row 1 of edge_index, whatever the flow.
            reverse = self.target_to_source
            rows = max(graph.num_src, graph.num_dst) + 1
            ends = (graph.src if reverse else graph.dst)[:num_given]
            if graph.padded:
                given = graph.dst[:num_given]
                ends = torch.where(given == graph.num_dst, rows - 1, ends)
            loops = scatter(edge_attr, ends.long(), 0, rows, fill)[: graph.num_loops]
        else:
            filled = torch.as_tensor(
                fill, dtype=edge_attr.dtype, device=edge_attr.device
            )
            loops = filled.expand(graph.num_loops, edge_attr.size(-1))
        return torch.cat([edge_attr, loops])

    def _head_seeds(self, given: Tensor | None, device: torch.device) -> Tensor | None:
        """One seed per head for the attention dropout of this call."""
        if not self.training or self.dropout == 0.0:
            return None
        base = draw_seed(device) if given is None else given
        return fold_in(base, torch.arange(self.heads, device=device))

    def slow_path_reason(self) -> str | None:
        """Why the layer must build every message, as PyG does; None if it need not."""
        for kind in _HOOKS:
            if any(
                getattr(self, f"_{kind}_forward_{when}")
                for when in ("pre_hooks", "hooks")
            ):
                return f"a {kind} hook is registered"
        if self.explain:
            return "an explainer is active"
        if self.aggr not in ("add", "sum"):
            return f"aggr is {self.aggr!r}, not 'add'"
        if self.decomposed_layers != 1:
            return f"decomposed_layers is {self.decomposed_layers}"
        for name in _OVERRIDABLE:
            if name in self.__dict__:
                return f"{name}() was replaced on this instance"
            own = next(c for c in type(self).__mro__ if name in c.__dict__)
            if not own.__module__.startswith(("tempergat.nn", "torch_geometric.nn")):
                return f"{own.__name__} overrides {name}()"
        return None

    def _over_t(self, att: Tensor) -> Tensor:
        """An attention vector [1, heads, channels] divided by the temperature."""
        att = at_least_float32(att)
        temperature = self.temperature
        if temperature is None:
            return att
        return att / at_least_float32(temperature).view(1, -1, 1)

    def _run(
        self,
        x_src: Features,
        x_dst: Features | None,
        size: tuple[int | None, int | None] | None,
        edge_index: Any,
        edge_attr: Tensor | None,
        return_attention_weights: bool | None,
        dropout_seed: Tensor | None,
    ) -> Any:
        """The forward pass, in terms of what the two layers do differently."""
        sizes = self._sizes(x_src, x_dst, size, edge_index)
        edge_attr = self._check_edge_attr(edge_attr)
        by_messages = self.slow_path_reason() is not None
        static_shapes = not (by_messages or return_attention_weights)
        adjacency = self._resolve(edge_index, sizes, x_src, static_shapes)
        graph = adjacency.graph
        if edge_attr is None and self.edge_dim is not None:
            edge_attr = self._check_edge_attr(adjacency.values)
        edge_attr = self._edge_features(graph, edge_attr)

        src: Projectable = x_src
        dst: Projectable | None = x_dst
        if x_dst is x_src and isinstance(x_src, Tensor) and many_models():
            src = dst = Together(x_src, self._maps_of_one_input())
        residual = None
        if self.res is not None and dst is not None:
            residual = project(self.res, dst)
        z_src, z_dst = self._project(src, dst)
        post = None
        if self.gate == "post":
            post = self._post_logit(dst)
        elif self.gate == "first":
            z_src, z_dst = self._gate_first(z_src, z_dst, src, dst)
        heads = (-1, self.heads, self.out_channels)
        same = z_dst is z_src
        z_src = z_src.view(heads)
        z_dst = z_src if same else None if z_dst is None else z_dst.view(heads)

        seeds = self._head_seeds(dropout_seed, z_src.device)
        if by_messages:
            edges = graph.edge_index
            if self.target_to_source:
                edges = edges.flip(0)
            out, alpha = self._attend_by_messages(
                edges, z_src, z_dst, edge_attr, graph.edge_id, seeds, sizes
            )
        else:
            out, alpha = self._attend(
                graph,
                z_src,
                z_dst,
                edge_attr,
                negative_slope=self.negative_slope,
                dropout=0.0 if seeds is None else self.dropout,
                dropout_seed=seeds,
                return_weights=bool(return_attention_weights),
            )
        out = self._finish(out, post, residual)
        if return_attention_weights:
            return out, adjacency.pack(alpha.to(out.dtype))
        return out

    def _drop(self, alpha: Tensor, edge_id: Tensor, seeds: Tensor | None) -> Tensor:
        """Dropout on attention weights where they are formed edge by edge."""
        if seeds is None:
            return alpha
        edge_id = edge_id.unsqueeze(-1)
        return alpha * keep_factor(seeds, edge_id, self.dropout, alpha.dtype)

    def _finish(
        self, out: Tensor, gate_logit: Tensor | None, residual: Tensor | None
    ) -> Tensor:
        """Post-gate, heads, residual, bias: what follows the aggregation."""
        if gate_logit is not None:
            logit = gate_logit.view(-1, self.heads, self.out_channels)
            out, total = sigmoid_gate(logit, out, self.gate_means.wanted())
            self.gate_means.record([total], logit.numel(), self.training)
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if residual is not None:
            out = out + residual
        if self.bias is not None:
            out = out + self.bias
        return out

    def __prepare_scriptable__(self) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot be scripted, and torch.jit.script is "
            f"deprecated; use torch.compile or torch.export"
        )

    def __repr__(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, heads={self.heads}"]
        parts.append(f"temperature={self.temperature_kind!r}, gate={self.gate!r}")
        return f"{self.__class__.__name__}({', '.join(parts)})"
