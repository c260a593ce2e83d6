"""Dot-product attention with temperature and gate, as PyG's ``TransformerConv``."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.utils import is_torch_sparse_tensor

from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.conv._call import Call
from tempergat.nn.gate import GateKind
from tempergat.nn.projection import Features, is_plain
from tempergat.nn.temperature import TemperatureKind
from tempergat.ops import at_least_float32

# Arguments that the other attention layers have.
_OF_OTHERS = {"add_self_loops", "fill_value", "negative_slope", "residual"}


class TemperTransformerConv(AttentionLayer):
    r"""A graph transformer with a learnable softmax temperature and a feature gate.

    .. math::
        e_{ij} = \frac{q_i^\top (k_j + W_e x_{ij})}{\sqrt{C}}, \qquad
        \alpha_{ij} = \frac{\exp(e_{ij} / T)}{\sum_r \exp(e_{ir} / T)}, \qquad
        h'_i = \left( \sum_j \alpha_{ij} (v_j + W_e x_{ij}) \right) \odot g_i + W_s h_i

    with linear maps :math:`q_i, k_j, v_j` of the nodes' features, which have biases,
    edge features :math:`x_{ij}`, :math:`C` channels per head,
    :math:`T = \mathrm{softplus}(\theta) + 10^{-6}` and
    :math:`g_i = \sigma(W_g h_i + b_g)`. With ``gate="first"`` the queries, keys and
    values of a node are multiplied by its gate instead. With ``gate="head"`` the output
    of head :math:`k` is multiplied by one number, :math:`\sigma(W_g h_i + b_g)_k`
    (GaAN, Zhang et al., 2018; Qiu et al., 2025). Edge features are never projected edge
    by edge. With ``temperature=None, gate=None`` it is PyG's ``TransformerConv``, whose
    ``state_dict`` it loads.

    Args:
        in_channels: As in :class:`TemperGATConv`.
        out_channels: Features per head.
        heads: Number of attention heads.
        concat: Concatenate the heads; otherwise average them.
        beta: Whether a layer with ``root_weight`` learns, for every node, which share
            of its output is the linear map of its own features; otherwise both are
            added.
        dropout: Dropout rate on the attention weights.
        edge_dim: Features per edge, if there are any.
        bias: Whether the maps of nodes have biases.
        root_weight: Whether to add a linear map of the target's input. The layer adds
            no self-loops: without it a node's output does not depend on its own
            features other than through the attention weights and the gate.
        temperature: As in :class:`TemperGATConv`.
        init_temp: Initial value of a learnable temperature.
        gate: ``"post"`` (on the aggregated output, before the root's map is added, one
            number per channel), ``"head"`` (there, one per head), ``"first"`` (on
            queries, keys and values) or None.
        gate_bias_init: Initial value of the gate's bias.
        qk_norm: Whether queries and keys are divided by their root mean square in
            every head, and multiplied by a learnable scale per channel, before a gate.
        cache: As in :class:`TemperGATConv`.
        **kwargs: Arguments of PyG's ``MessagePassing``.

    Shapes:
        As :class:`TemperGATConv`.
    """

    attention = "dot_product"
    drawn = (
        *("lin_key", "lin_query", "lin_value", "lin_edge", "lin_skip", "lin_beta"),
        *("norm_query", "norm_key"),
    )
    needs_targets = "the queries"
    shown: ClassVar[dict[str, Any]] = {
        "concat": True,
        "beta": False,
        "dropout": 0.0,
        "edge_dim": None,
        "root_weight": True,
        "qk_norm": False,
    }

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        beta: bool = False,
        dropout: float = 0.0,
        edge_dim: int | None = None,
        bias: bool = True,
        root_weight: bool = True,
        *,
        temperature: TemperatureKind = "layer",
        init_temp: float = 1.0,
        gate: GateKind | bool = "post",
        gate_bias_init: float = 2.0,
        qk_norm: bool = False,
        cache: bool = True,
        **kwargs: Any,
    ) -> None:
        unknown = _OF_OTHERS & kwargs.keys()
        if unknown:
            raise TypeError(
                f"{type(self).__name__} takes no {', '.join(sorted(unknown))}: it adds "
                f"no self-loops (add them to edge_index), has no LeakyReLU, and its "
                f"residual is root_weight; leave it out"
            )
        kwargs.setdefault("aggr", "add")
        super().__init__(
            in_channels,
            out_channels,
            heads,
            concat,
            dropout,
            edge_dim,
            temperature=temperature,
            init_temp=init_temp,
            gate=gate,
            gate_bias_init=gate_bias_init,
            cache=cache,
            **kwargs,
        )
        self.beta = beta and root_weight
        self.root_weight = root_weight
        self.qk_norm = qk_norm
        width = heads * out_channels
        self.lin_key = Linear(self.widths[0], width, bias=bias)
        self.lin_query = Linear(self.widths[1], width, bias=bias)
        self.lin_value = Linear(self.widths[0], width, bias=bias)
        if edge_dim is not None:
            self.lin_edge = Linear(edge_dim, width, bias=False)
        total = width if concat else out_channels
        self.lin_skip = Linear(self.widths[1], total, bias=bias)
        if self.beta:
            self.lin_beta = Linear(3 * total, 1, bias=False)
        self.register_parameter("bias", None)
        if qk_norm:
            self.norm_query = nn.RMSNorm(out_channels)
            self.norm_key = nn.RMSNorm(out_channels)
        self._initialize()

    def forward(
        self,
        x: Features | tuple[Features, Features],
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
        dropout_seed: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        edge_bias: Tensor | None = None,
    ) -> Any:
        """Runs the layer.

        Args:
            x: Node features, or a pair for source and target nodes, of one or many
                feature sets, as in :meth:`TemperGATConv.forward`.
            edge_index: The edges, as in :meth:`TemperGATConv.forward`.
            edge_attr: Edge features, [E, D] for all feature sets or [..., E, D]; needed
                if the layer has an ``edge_dim``.
            return_attention_weights: Whether to return the edges and their attention
                weights, after dropout, too; a torch sparse matrix comes back as it is.
            dropout_seed: A 0-d int64 tensor that fixes the dropout mask; drawn from
                torch's generator when absent.
            edge_weight: A factor of each attention weight, as in
                :meth:`TemperGATConv.forward`.
            edge_bias: What is added to each logit, likewise.
        """
        edges = (edge_index, edge_attr, edge_weight, edge_bias)
        call = Call(self, x, *edges, return_attention_weights, dropout_seed)
        graph, edge_attr = call.graph, call.edge_attr
        if edge_attr is None and self.edge_dim is not None:
            raise ValueError(
                f"the layer was made with edge_dim={self.edge_dim}, but edge_attr was "
                f"not given; pass it, or make the layer without edge_dim"
            )
        # Keys k_j and values v_j, queries q_i; the logits of the gate, W_g h + b_g.
        sources = (self.lin_key, self.lin_value)
        (key, value), query, gate, skip = call.project(
            sources, self.lin_query, self.gate_maps(), self.skip_map()
        )
        if self.qk_norm:
            key = self._normalize(self.norm_key, key)
            query = self._normalize(self.norm_query, query)
        if self.gate == "first":
            gates = (gate[0], *gate)
            key, value, query = self.gates.features((key, value, query), gates, graph)
        key, value = self.split_heads(key), self.split_heads(value)
        query = self.split_heads(query, graph.num_dst)
        gate_logit = self.gate_of_output(gate[1])
        if call.by_messages:
            edge = None
            if edge_attr is not None:
                edge = self.split_heads(self.lin_edge(edge_attr))
            features = {"query": query, "key": key, "value": value, "edge": edge}
            out, alpha = self.attend_by_messages(
                call, gate_logit, skip, value.dtype, **features
            )
        else:
            # The logits are e_ij = q_i^T (k_j + W_e x_ij) * scale / T. Their softmax
            # over j weighs v_j + W_e x_ij; the sum is multiplied by the sigmoid of the
            # gate's logit; the skip is added.
            edge_map = None if edge_attr is None else self.split_map(self.lin_edge)
            inputs = (value, key, query, edge_attr, edge_map, self.temperature)
            scale = self.out_channels**-0.5
            out, alpha = self.attend(call, gate_logit, skip, *inputs, scale=scale)
        found = call.result(out, alpha)
        if return_attention_weights and is_torch_sparse_tensor(edge_index):
            # As in PyG, the matrix comes back as it is.
            out, (_, alpha) = found
            return out, (edge_index, alpha)
        return found

    def slow_path_reason(self) -> str | None:
        reason = super().slow_path_reason()
        if reason is None and self.edge_dim is not None and not is_plain(self.lin_edge):
            # The op takes edge features with their linear map.
            return "lin_edge has hooks or is no plain linear map"
        return reason

    def input_maps(self) -> tuple[Linear, Linear]:
        return self.lin_value, self.lin_query

    def skip_map(self) -> Linear | None:
        return self.lin_skip if self.root_weight else None

    def _normalize(self, norm: nn.Module, z: Tensor) -> Tensor:
        """Divides every head by its root mean square."""
        split: Tensor = norm(at_least_float32(self.split_heads(z)))
        return split.flatten(-2).to(z.dtype)

    def edge_update(
        self,
        query_i: Tensor,
        key_j: Tensor,
        edge: Tensor | None,
        edge_bias: Tensor | None,
        edge_id: Tensor,
        head_seeds: Tensor | None,
        index: Tensor,
        ptr: Tensor | None,
        dim_size: int | None,
    ) -> Tensor:
        key = key_j if edge is None else key_j + edge
        alpha = (at_least_float32(query_i) * key).sum(dim=-1)
        alpha = alpha * self.out_channels**-0.5
        if self.temperature is not None:
            alpha = alpha / self.temperature
        return self.softmax(alpha, edge_bias, edge_id, head_seeds, index, ptr, dim_size)

    def message(self, value_j: Tensor, alpha: Tensor, edge: Tensor | None) -> Tensor:
        value = value_j if edge is None else value_j + edge
        return value * alpha.unsqueeze(-1)
