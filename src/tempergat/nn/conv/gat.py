"""GAT with temperature and gate, a drop-in for PyG's ``GATConv``."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear

from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.conv._call import Call
from tempergat.nn.gate import GateKind
from tempergat.nn.projection import Features, is_plain, make_projection
from tempergat.nn.skip import ResidualKind
from tempergat.nn.temperature import TemperatureKind
from tempergat.ops import at_least_float32, dense_linear, execution_mode


class TemperGATConv(AttentionLayer):
    r"""GAT with a learnable softmax temperature and a feature gate.

    .. math::
        e_{ij} = \mathrm{LeakyReLU}(a^\top [W h_i \Vert W h_j]), \qquad
        \alpha_{ij} = \frac{\exp(e_{ij} / T)}{\sum_r \exp(e_{ir} / T)}, \qquad
        h'_i = \left( \sum_j \alpha_{ij} W h_j \right) \odot g_i + b

    with :math:`T = \mathrm{softplus}(\theta) + 10^{-6}` and
    :math:`g_i = \sigma(W_g h_i + b_g)`; the bias :math:`b` of PyG's layer, which the
    paper's equations do not have, is not gated (``bias=False`` leaves it out).
    With ``gate="first"`` the gated features :math:`W h_j \odot g_j` take the place of
    :math:`W h_j` in the logits and in the messages instead. With ``gate="head"`` the
    whole output of head :math:`k` is multiplied by one number,
    :math:`g_{ik} = \sigma(W_g h_i + b_g)_k`, with :math:`W_g` of shape [heads, in]: the
    gate of each head in Qiu et al. (2025) and in GaAN (Zhang et al., 2018), whose gate
    reads the neighbours, too. With ``temperature=None, gate=None`` it is PyG's
    ``GATConv``, whose ``state_dict`` it loads.

    Args:
        in_channels: Features per node; -1 to take it from the first input; a pair
            for source and target nodes of a bipartite graph.
        out_channels: Features per head.
        heads: Number of attention heads.
        concat: Concatenate the heads; otherwise average them.
        negative_slope: LeakyReLU's slope below zero.
        dropout: Dropout rate on the attention weights.
        add_self_loops: Give every node exactly one self-loop.
        edge_dim: Features per edge, if there are any.
        fill_value: The self-loops' edge features: a number, a tensor, or how to
            reduce those of the incoming edges.
        bias: Whether to add a bias.
        residual: Whether to add a linear map of the target's input; ``"gate"`` to
            interpolate between it and the aggregated output by a learned share of each
            node, as PyG's ``TransformerConv(beta=True)`` does.
        temperature: ``"layer"`` (one learnable scalar), ``"head"`` (one per head), a
            number (fixed) or None (plain attention).
        init_temp: Initial value of a learnable temperature.
        gate: ``"post"`` or True (on the aggregated output, one number per channel),
            ``"head"`` (there, one per head), ``"first"`` (on the projected features),
            or None or False.
        gate_bias_init: Initial value of the gate's bias. 2 opens the gate (a mean of
            about 0.88), the paper's 0 starts it near one half.
        cache: Sort the edges of an ``edge_index`` once and use the result until the
            tensor changes; False sorts them in every call. See :meth:`forward`.
        **kwargs: Arguments of PyG's ``MessagePassing``.

    Shapes:
        - **input:** node features [N, F] or ([N_s, F_s], [N_t, F_t]), edges [2, E],
          edge features [E, D]; for many feature sets on one graph node features
          [..., N, F] and edge features [E, D] or [..., E, D]
        - **output:** [N_t, heads * out_channels], or [N_t, out_channels] without
          ``concat``; with ``return_attention_weights`` also ([2, E'], [E', heads]).
          For many feature sets [..., N_t, heads * out_channels] and [..., E', heads]
    """

    attention = "gat"
    drawn = (
        *("lin", "lin_src", "lin_dst", "lin_edge", "res"),
        *("att_src", "att_dst", "att_edge", "bias", "lin_beta"),
    )

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | Tensor | str = "mean",
        bias: bool = True,
        residual: ResidualKind = False,
        *,
        temperature: TemperatureKind = "layer",
        init_temp: float = 1.0,
        gate: GateKind | bool = "post",
        gate_bias_init: float = 2.0,
        cache: bool = True,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("aggr", "add")
        super().__init__(
            in_channels,
            out_channels,
            heads,
            concat,
            dropout,
            edge_dim,
            add_self_loops=add_self_loops,
            negative_slope=negative_slope,
            fill_value=fill_value,
            residual=residual,
            temperature=temperature,
            init_temp=init_temp,
            gate=gate,
            gate_bias_init=gate_bias_init,
            cache=cache,
            **kwargs,
        )
        width = heads * out_channels
        self.lin = self.lin_src = self.lin_dst = None
        if isinstance(in_channels, int):
            self.lin = make_projection(in_channels, width, bias=False)
        else:
            self.lin_src = make_projection(in_channels[0], width, bias=False)
            self.lin_dst = make_projection(in_channels[1], width, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_channels))
        att_edge = None
        if edge_dim is not None:
            self.lin_edge = make_projection(edge_dim, width, bias=False)
            att_edge = nn.Parameter(torch.empty(1, heads, out_channels))
        self.register_parameter("att_edge", att_edge)
        self._make_residual_and_bias(bias)
        self._initialize()

    def forward(
        self,
        x: Features | tuple[Features, Features | None],
        edge_index: Any,
        edge_attr: Tensor | None = None,
        size: tuple[int | None, int | None] | None = None,
        return_attention_weights: bool | None = None,
        dropout_seed: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        edge_bias: Tensor | None = None,
    ) -> Any:
        """Runs the layer.

        Args:
            x: Node features, or a pair for source and target nodes. Dimensions before
                those of nodes and channels are many feature sets on one graph, such as
                [batch, time, N, F]; each set has its own dropout.
            edge_index: The edges, in any form PyG takes, or a ``tempergat.Graph``. If
                the graph has fewer targets than x has rows, they are the first rows. A
                tensor is sorted once and the result is used again until the tensor
                changes. What writes into its memory without torch (a NumPy view,
                ``.data``, DLPack, another process) is noticed on the CPU: all of it
                up to 1,024 edges, by samples in larger graphs. It is not noticed on a
                GPU; there, make the layer with ``cache=False`` or call
                ``tempergat.nn.forget_graphs()`` after such a change.
            edge_attr: Edge features, [E, D] for all feature sets or [..., E, D].
            size: Number of source and target nodes; None for one that x determines.
            return_attention_weights: If true, also return the edges and their
                attention weights, as PyG does.
            dropout_seed: A 0-d int64 tensor that fixes the dropout mask; drawn from
                torch's generator when absent.
            edge_weight: A factor of each attention weight after softmax and dropout,
                [E] or [E, heads], as DGL's layers take it; with feature sets also
                [..., E] or [..., E, heads]. Of two dimensions, it is [E, heads] if the
                first is the number of edges. Added self-loops have the factor 1.
            edge_bias: What is added to each logit, likewise; minus infinity removes an
                edge. Added self-loops have the bias 0.
        """
        edges = (edge_index, edge_attr, edge_weight, edge_bias)
        call = Call(self, x, *edges, return_attention_weights, dropout_seed, size)
        graph, edge_attr = call.graph, call.edge_attr
        # z_src = W h_j and z_dst = W h_i; the logits of the gate, W_g h + b_g.
        lin_src, lin_dst = self.input_maps()
        (z_src,), z_dst, gate, skip = call.project(
            (lin_src,), lin_dst, self.gate_maps(), self.res
        )
        if self.gate == "first":
            z_src, z_dst = self.gates.features((z_src, z_dst), gate, graph)
        is_shared = z_dst is z_src
        z_src = self.split_heads(z_src)
        gate_logit = self.gate_of_output(gate[1])
        if call.by_messages:
            z_dst = self.split_heads(z_dst, graph.num_dst)
            score = self._score(z_src, self.att_src)
            # PyG counts the targets by their scores.
            score_dst = score.new_zeros(graph.num_dst, self.heads)
            if z_dst is not None:
                score_dst = self._score(z_dst, self.att_dst)
            pairs = {"x": self.pair(z_src, z_dst), "alpha": self.pair(score, score_dst)}
            out, alpha = self.attend_by_messages(
                call, gate_logit, skip, z_src.dtype, edge_attr=edge_attr, **pairs
            )
            return call.result(out, alpha)
        # The logits are e_ij = LeakyReLU(a_src^T z_src[j] + a_dst^T z_dst[i] + the
        # edge's part) / T with T = softplus(theta) + 1e-6. Their softmax over j weighs
        # z_src[j]; the sum is multiplied by the sigmoid of the gate's logit; skip and
        # bias are added. Without z_dst the targets are the first of the sources.
        att_src = self.divide_by_fixed_temperature(self.att_src).squeeze(0)
        att_dst = edge_score = None
        if z_dst is not None:
            att_dst = self.divide_by_fixed_temperature(self.att_dst).squeeze(0)
            z_dst = None if is_shared else self.split_heads(z_dst, graph.num_dst)
        if edge_attr is not None:
            edge_score = self._edge_score(edge_attr)
        inputs = (z_src, att_src, att_dst, z_dst, edge_score, self.theta)
        slope = self.negative_slope
        out, alpha = self.attend(call, gate_logit, skip, *inputs, negative_slope=slope)
        return call.result(out, alpha)

    def input_maps(self) -> tuple[Linear, Linear]:
        lin: Any = self.lin
        return (self.lin_src, self.lin_dst) if lin is None else (lin, lin)

    def _score(self, z: Tensor, att: Tensor) -> Tensor:
        """One side's part of the logits, in PyG's order of operations."""
        return (at_least_float32(z) * self.divide_by_temperature(att)).sum(-1)

    def _edge_score(self, edge_attr: Tensor) -> Tensor:
        """The edges' part of the logits over T, [E, heads].

        No projected vector per edge is built: ``lin_edge`` is multiplied by the
        attention vector first.
        """
        if not is_plain(self.lin_edge):
            edge = self.split_heads(self.lin_edge(edge_attr))
            return self._score(edge, self.att_edge)
        att = self.divide_by_temperature(self.att_edge).squeeze(0)
        folded = (self.split_map(self.lin_edge) * att.unsqueeze(-1)).sum(1)
        edge_attr, device = at_least_float32(edge_attr), edge_attr.device.type
        product = dense_linear if execution_mode() == "transformed" else F.linear
        if not torch.is_autocast_enabled(device):
            return product(edge_attr, folded)
        # It would round the logits to half precision.
        with torch.autocast(device, enabled=False):
            return product(edge_attr, folded)

    def edge_update(
        self,
        alpha_j: Tensor,
        alpha_i: Tensor | None,
        edge_attr: Tensor | None,
        edge_bias: Tensor | None,
        edge_id: Tensor,
        head_seeds: Tensor | None,
        index: Tensor,
        ptr: Tensor | None,
        dim_size: int | None,
    ) -> Tensor:
        alpha = alpha_j if alpha_i is None else alpha_j + alpha_i
        if edge_attr is not None:
            alpha = alpha + self._edge_score(edge_attr)
        alpha = F.leaky_relu(alpha, self.negative_slope)
        return self.softmax(alpha, edge_bias, edge_id, head_seeds, index, ptr, dim_size)

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha.unsqueeze(-1) * x_j
