"""The base of the attention layers: PyG's layer interface and the forward pass."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense.linear import Linear

from tempergat.nn.adjacency import resolve
from tempergat.nn.conv._description import describe
from tempergat.nn.conv._inputs import (
    add_loop_features,
    check_count,
    check_device,
    check_features,
    check_rate,
    count_nodes,
)
from tempergat.nn.conv._kernels import compile_kernels
from tempergat.nn.conv._messages import why_messages
from tempergat.nn.conv._one_node import run_as_one_node
from tempergat.nn.gate import FeatureGate, GateKind
from tempergat.nn.projection import (
    BatchedProjection,
    Features,
    Projectable,
    first_rows,
    make_projection,
    models_are_batched,
    project,
)
from tempergat.nn.sides import Sides
from tempergat.nn.temperature import Temperature, TemperatureKind
from tempergat.ops import Graph, draw_seed, fold_in, is_tracing, keep_factor


class AttentionLayer(MessagePassing):  # type: ignore[misc]
    """Base of the attention layers; see :class:`TemperGATConv` for the arguments.

    A layer defines its linear maps (``_projections``, ``_project``) and its attention:
    ``_attend`` for a whole graph at once, and ``_attend_by_messages`` with PyG's
    ``edge_update`` and ``message``.

    The weighted sum thus exists three times. ``_attend`` calls a fused kernel, which
    builds no tensor per edge and channel. PyG's explainers, hooks, other aggregations
    and subclasses that override ``message`` need the messages themselves, so the
    second way builds them as PyG does. The third is `tempergat.ops.reference`, the
    specification of the kernels, which also serves where no kernel can.
    ``tests/nn/test_three_ways.py`` compares them.
    """

    # The op that `_attend` calls, whose kernels are compiled in advance.
    attention: str | None = None

    def __init__(
        self,
        *,
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
        temperature: TemperatureKind,
        init_temp: float,
        gate: GateKind,
        gate_bias_init: float,
        cache: bool,
        **kwargs: Any,
    ) -> None:
        check_count("out_channels", out_channels)
        check_count("heads", heads)
        softmax_temperature = Temperature(temperature, init_temp)
        feature_gate = FeatureGate(gate, gate_bias_init)
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
        self.cache = cache
        self.softmax_temperature = softmax_temperature
        self.feature_gate = feature_gate
        # Set by `upgrade`: PyG's GATConv ignores edge_attr without edge_dim.
        self.ignores_edge_attr = False
        self._warned_about_edge_attr = False

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

    def _initialize(self, share_gate: bool) -> None:
        """Draws the parameters PyG's layer has too, then adds temperature and gate.

        Temperature and gate are drawn last, so that layers which differ only in them
        start from the same weights.
        """
        self.reset_shared_parameters()
        width = self.heads * self.out_channels
        self.softmax_temperature.add_to(self, self.heads)
        self.feature_gate.add_to(self, self.in_channels, width, share_gate)
        # The initial weights of stored runs come from a second draw.
        self.feature_gate.reset(self)

    def reset_parameters(self) -> None:
        """Draws all parameters again, those of temperature and gate last."""
        self.reset_shared_parameters()
        self.reset_temperature_and_gate()

    def reset_shared_parameters(self) -> None:
        """Draws the parameters that PyG's layer has too, in PyG's order."""
        super().reset_parameters()

    def reset_temperature_and_gate(self) -> None:
        """Sets theta and draws the gate."""
        self.softmax_temperature.reset(self)
        self.feature_gate.reset(self)

    @property
    def temperature(self) -> Tensor | None:
        """The current softmax temperature: 0-d, [heads], or None when plain."""
        return self.softmax_temperature.value(self)

    @property
    def gate(self) -> GateKind:
        """Which gate the layer has: ``"post"``, ``"first"`` or None."""
        return self.feature_gate.kind

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self.feature_gate.save_kind(destination, prefix)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *others: Any
    ) -> None:
        # torch's last argument is the list of error messages.
        self.feature_gate.refuse_other_kind(local_metadata, prefix, others[-1])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)

    @property
    def target_to_source(self) -> bool:
        """Whether messages run from row 1 of ``edge_index`` to row 0."""
        return bool(self.flow == "target_to_source")

    def gate_values(
        self, x: Features | tuple[Features, Features | None]
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        """The gate of given inputs, [num_nodes, heads * out_channels].

        Args:
            x: The layer's input. For ``gate="first"`` a pair gives a pair; for
                ``gate="post"`` a pair gives the gate of the targets.
        """
        if self.gate is None:
            raise ValueError("this layer has no gate; make it with gate='post'")
        sides = self._check_features(x)
        if self.gate == "post":
            return torch.sigmoid(self.feature_gate.output_logit(self, sides.dst))
        gate = self.feature_gate.feature_logits(self, sides).map(torch.sigmoid)
        if gate.is_shared and not isinstance(x, tuple | list):
            return gate.src
        return gate.src, gate.dst

    def slow_path_reason(self) -> str | None:
        """Why the layer must build every message, as PyG does; None if it need not."""
        return why_messages(self)

    def _check_features(
        self, x: Features | tuple[Features, Features | None]
    ) -> Sides[Features]:
        return check_features(x, self._projections())

    def _run(
        self,
        x: Sides[Features],
        size: tuple[int | None, int | None] | None,
        edge_index: Any,
        edge_attr: Tensor | None,
        return_attention_weights: bool | None,
        dropout_seed: Tensor | None,
    ) -> Any:
        """The forward pass: edges, linear maps, gate, attention, gate, output."""
        sizes = count_nodes(x, size, edge_index)
        edge_attr = self._check_edge_attr(edge_attr)
        by_messages = self.slow_path_reason() is not None
        check_device(edge_index, x.src)
        if self.attention is not None and not by_messages:
            compile_kernels(self, x.src, bool(return_attention_weights))
        adjacency = resolve(
            edge_index,
            sizes,
            self_loops=self.add_self_loops,
            reverse=self.target_to_source,
            static_shapes=not (by_messages or return_attention_weights),
            cache=self.cache,
        )
        graph = adjacency.graph
        if edge_attr is None and self.edge_dim is not None:
            edge_attr = self._check_edge_attr(adjacency.values)
        if edge_attr is not None:
            edge_attr = add_loop_features(
                graph, edge_attr, self.fill_value, self.target_to_source
            )

        seeds = self._head_seeds(dropout_seed, x.src.device)
        if edge_attr is None and not (by_messages or return_attention_weights):
            whole = run_as_one_node(self, x, graph, seeds)
            if whole is not None:
                return whole

        inputs = self._batched(x)
        targets = inputs.dst
        if inputs.is_shared and graph.num_dst < graph.num_src:
            targets = first_rows(inputs.src, graph.num_dst)
        residual = None
        if self.res is not None and targets is not None:
            residual = project(self.res, targets)
        z = self._project(inputs, targets)
        gate_logit = None
        if self.gate == "post":
            gate_logit = self.feature_gate.output_logit(self, targets)
        elif self.gate == "first":
            in_use = None if graph.in_use is None else graph.in_use[0]
            z = self.feature_gate.gate_features(self, z, inputs, in_use)
        z = z.map(self._split_heads)

        if by_messages:
            out, alpha = self._attend_by_messages(graph, z, edge_attr, seeds)
        else:
            out, alpha = self._attend(
                graph,
                z,
                edge_attr,
                negative_slope=self.negative_slope,
                dropout=0.0 if seeds is None else self.dropout,
                dropout_seed=seeds,
                return_weights=bool(return_attention_weights),
            )
        if gate_logit is not None:
            in_use = None if graph.in_use is None else graph.in_use[1]
            out = self.feature_gate.gate_output(self, out, gate_logit, in_use)
        out = self._combine(out, residual)
        if return_attention_weights:
            return out, adjacency.pack(alpha.to(out.dtype))
        return out

    def _check_edge_attr(self, edge_attr: Tensor | None) -> Tensor | None:
        if edge_attr is None:
            return None
        if self.edge_dim is None:
            if self.ignores_edge_attr:
                self._warn_about_edge_attr()
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

    def _warn_about_edge_attr(self) -> None:
        if self._warned_about_edge_attr or is_tracing():
            return
        self._warned_about_edge_attr = True
        warnings.warn(
            "edge_attr is ignored, as by the PyG layer this one replaces: it was made "
            "without edge_dim",
            stacklevel=3,
        )

    def _batched(self, x: Sides[Features]) -> Sides[Projectable]:
        """The inputs, with all their linear maps as one product where that pays."""
        if not (x.is_shared and isinstance(x.src, Tensor) and models_are_batched()):
            return Sides(x.src, x.dst)
        projections = self._projections()
        maps: list[Linear | None] = [projections.src, projections.dst]
        maps += [*self.feature_gate.maps(self), self.res]
        once = dict.fromkeys(lin for lin in maps if lin is not None)
        batched = BatchedProjection(x.src, list(once))
        return Sides(batched, batched)

    def _split_heads(self, z: Tensor) -> Tensor:
        return z.view(-1, self.heads, self.out_channels)

    def _head_seeds(self, given: Tensor | None, device: torch.device) -> Tensor | None:
        """One seed per head for the attention dropout of this call."""
        if not self.training or self.dropout == 0.0:
            return None
        base = draw_seed(device) if given is None else given
        return fold_in(base, torch.arange(self.heads, device=device))

    def _message_edges(self, graph: Graph) -> Tensor:
        """The edges in the order of rows that PyG's ``propagate`` expects."""
        edges = graph.edge_index
        return edges.flip(0) if self.target_to_source else edges

    def _pair(self, values: Sides[Any], reader: Any) -> tuple[Any, Any]:
        """Values of sources and targets in the order in which PyG reads them.

        PyG writes ``propagate`` and ``edge_updater`` from templates, which take the
        sources' value first. If it cannot, and for explainers, it uses the methods of
        ``MessagePassing`` instead, which take it in the order of ``edge_index``.

        Args:
            values: The values.
            reader: ``self.propagate`` or ``self.edge_updater``.
        """
        in_order_of_rows = reader.__module__ == MessagePassing.__module__
        if self.target_to_source and in_order_of_rows:
            return values.dst, values.src
        return values.src, values.dst

    def _sum_messages(
        self, edge_index: Tensor, z: Sides[Tensor], alpha: Tensor, size: tuple[int, int]
    ) -> tuple[Tensor, Tensor]:
        """Builds all messages and sums them, as PyG does; also returns the weights."""
        alpha = alpha.to(z.src.dtype)
        x = self._pair(z, self.propagate)
        # propagate_type: (x: OptPairTensor, alpha: Tensor)
        out = self.propagate(edge_index, x=x, alpha=alpha, size=size)
        return out, alpha

    def _drop(self, alpha: Tensor, edge_id: Tensor, seeds: Tensor | None) -> Tensor:
        """Dropout on attention weights that are computed edge by edge."""
        if seeds is None:
            return alpha
        edge_id = edge_id.unsqueeze(-1)
        return alpha * keep_factor(seeds, edge_id, self.dropout, alpha.dtype)

    def _combine(self, out: Tensor, residual: Tensor | None) -> Tensor:
        """Joins the heads, then adds residual and bias."""
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
        return describe(self)
