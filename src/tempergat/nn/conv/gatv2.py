"""GATv2 with temperature and gate, a drop-in for PyG's ``GATv2Conv``."""

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
from tempergat.ops import at_least_float32


class TemperGATv2Conv(AttentionLayer):
    r"""GATv2 with a learnable softmax temperature and a feature gate.

    .. math::
        e_{ij} = a^\top \mathrm{LeakyReLU}(W_r h_i + W_l h_j), \qquad
        \alpha_{ij} = \frac{\exp(e_{ij} / T)}{\sum_r \exp(e_{ir} / T)}, \qquad
        h'_i = \left( \sum_j \alpha_{ij} W_l h_j \right) \odot g_i + b

    with :math:`T = \mathrm{softplus}(\theta) + 10^{-6}` and
    :math:`g_i = \sigma(W_g h_i + b_g)`; the bias :math:`b` of PyG's layer, which the
    paper's equations do not have, is not gated (``bias=False`` leaves it out).
    With ``gate="first"`` both projections are gated before they serve in the logits and
    the messages instead. With ``gate="head"`` the output of head :math:`k` is
    multiplied by one number, :math:`\sigma(W_g h_i + b_g)_k` (GaAN, Zhang et al., 2018;
    Qiu et al., 2025). With ``temperature=None, gate=None`` it is PyG's ``GATv2Conv``,
    whose ``state_dict`` it loads.

    Args:
        share_weights: Whether sources and targets are projected by the same matrix.
        **kwargs: All other arguments are those of :class:`TemperGATConv`.

    Shapes:
        As :class:`TemperGATConv`.
    """

    attention = "gatv2"
    drawn = ("lin_l", "lin_r", "lin_edge", "res", "att", "bias", "lin_beta")
    needs_targets = "GATv2's logits"

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
        share_weights: bool = False,
        residual: ResidualKind = False,
        *,
        temperature: TemperatureKind = "layer",
        init_temp: float = 1.0,
        gate: GateKind | bool = "post",
        gate_bias_init: float = 2.0,
        cache: bool = True,
        **kwargs: Any,
    ) -> None:
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
        self.share_weights = share_weights
        width = heads * out_channels
        self.lin_l = make_projection(self.widths[0], width, bias)
        self.lin_r = self.lin_l
        if not share_weights:
            self.lin_r = make_projection(self.widths[1], width, bias)
        self.att = nn.Parameter(torch.empty(1, heads, out_channels))
        if edge_dim is not None:
            self.lin_edge = make_projection(edge_dim, width, bias=False)
        self._make_residual_and_bias(bias)
        self._initialize(share_gate=share_weights)

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
            edge_attr: Edge features, [E, D] for all feature sets or [..., E, D].
            return_attention_weights: Whether to return the edges and their attention
                weights, too, as PyG does.
            dropout_seed: A 0-d int64 tensor that fixes the dropout mask; drawn from
                torch's generator when absent.
            edge_weight: A factor of each attention weight, as in
                :meth:`TemperGATConv.forward`.
            edge_bias: What is added to each logit, likewise.
        """
        edges = (edge_index, edge_attr, edge_weight, edge_bias)
        call = Call(self, x, *edges, return_attention_weights, dropout_seed)
        graph, edge_attr = call.graph, call.edge_attr
        # z_src = W_l h_j and z_dst = W_r h_i; the logits of the gate, W_g h + b_g.
        (z_src,), z_dst, gate, skip = call.project(
            (self.lin_l,), self.lin_r, self.gate_maps(), self.res
        )
        if self.gate == "first":
            z_src, z_dst = self.gates.features((z_src, z_dst), gate, graph)
        z_src, z_dst = self.split_heads(z_src), self.split_heads(z_dst, graph.num_dst)
        gate_logit = self.gate_of_output(gate[1])
        if call.by_messages:
            x = self.pair(z_src, z_dst)
            out, alpha = self.attend_by_messages(
                call, gate_logit, skip, z_src.dtype, x=x, edge_attr=edge_attr
            )
            return call.result(out, alpha)
        edge: tuple[Tensor | None, ...] = (None, None, None)
        if edge_attr is not None and is_plain(self.lin_edge):
            # The op multiplies by W_e, edge by edge.
            edge = (None, edge_attr, self.split_map(self.lin_edge))
        elif edge_attr is not None:
            edge = (self.split_heads(self.lin_edge(edge_attr)), None, None)
        # The logits are e_ij = a^T LeakyReLU(z_src[j] + z_dst[i] + W_e x_ij) / T with
        # T = softplus(theta) + 1e-6. Their softmax over j weighs z_src[j]; the sum is
        # multiplied by the sigmoid of the gate's logit; skip and bias are added.
        att = self.divide_by_fixed_temperature(self.att).squeeze(0)
        inputs = (z_src, z_dst, att, *edge, self.theta)
        slope = self.negative_slope
        out, alpha = self.attend(call, gate_logit, skip, *inputs, negative_slope=slope)
        return call.result(out, alpha)

    def input_maps(self) -> tuple[Linear, Linear]:
        return self.lin_l, self.lin_r

    def edge_update(
        self,
        x_j: Tensor,
        x_i: Tensor,
        edge_attr: Tensor | None,
        edge_bias: Tensor | None,
        edge_id: Tensor,
        head_seeds: Tensor | None,
        index: Tensor,
        ptr: Tensor | None,
        dim_size: int | None,
    ) -> Tensor:
        x = x_i + x_j
        if edge_attr is not None:
            x = x + self.split_heads(self.lin_edge(edge_attr))
        x = F.leaky_relu(at_least_float32(x), self.negative_slope)
        alpha = (x * self.divide_by_temperature(self.att)).sum(dim=-1)
        return self.softmax(alpha, edge_bias, edge_id, head_seeds, index, ptr, dim_size)

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return x_j * alpha.unsqueeze(-1)
