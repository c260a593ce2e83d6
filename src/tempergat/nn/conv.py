"""Graph attention layers with temperature and gates, as drop-ins for PyG's."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.inits import glorot, zeros
from torch_geometric.utils import softmax

from tempergat import ops
from tempergat.nn.attention_layer import AttentionLayer, Gate, Temperature
from tempergat.nn.projection import (
    Features,
    Projectable,
    is_product,
    make_projection,
    multiply,
    project,
)
from tempergat.nn.temperature import at_least_float32
from tempergat.ops import Graph


class TemperGATConv(AttentionLayer):
    r"""GAT with a learnable softmax temperature and a feature gate.

    .. math::
        e_{ij} = \mathrm{LeakyReLU}(a^\top [W h_i \Vert W h_j]), \qquad
        \alpha_{ij} = \frac{\exp(e_{ij} / T)}{\sum_r \exp(e_{ir} / T)}, \qquad
        h'_i = \Big( \sum_j \alpha_{ij} W h_j \Big) \odot g_i

    with :math:`T = \mathrm{softplus}(\theta) + 10^{-6}` and
    :math:`g_i = \sigma(W_g h_i + b_g)`. With ``gate="first"`` the gated features
    :math:`W h_j \odot g_j` take the place of :math:`W h_j` in the logits and in the
    messages instead. With ``temperature=None, gate=None`` it is PyG's ``GATConv``,
    whose ``state_dict`` it loads.

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
        residual: Whether to add a linear map of the target's input.
        temperature: ``"layer"`` (one learnable scalar), ``"head"`` (one per head), a
            number (fixed) or None (plain attention).
        init_temp: Where a learnable temperature starts.
        gate: ``"post"`` (on the aggregated output), ``"first"`` (on the projected
            features) or None.
        gate_bias_init: Where the gate's bias starts.
        **kwargs: Arguments of PyG's ``MessagePassing``.

    Shapes:
        - **input:** node features [N, F] or ([N_s, F_s], [N_t, F_t]), edges [2, E],
          edge features [E, D]
        - **output:** [N_t, heads * out_channels], or [N_t, out_channels] without
          ``concat``; with ``return_attention_weights`` also ([2, E'], [E', heads])
    """

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
        residual: bool = False,
        *,
        temperature: Temperature = "layer",
        init_temp: float = 1.0,
        gate: Gate = "post",
        gate_bias_init: float = 0.0,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("aggr", "add")
        super().__init__(
            in_channels,
            out_channels,
            heads,
            concat,
            negative_slope,
            dropout,
            add_self_loops,
            edge_dim,
            fill_value,
            residual,
            temperature,
            init_temp,
            gate,
            gate_bias_init,
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
        if edge_dim is not None:
            self.lin_edge = make_projection(edge_dim, width, bias=False)
            self.att_edge = nn.Parameter(torch.empty(1, heads, out_channels))
        else:
            self.lin_edge = None
            self.register_parameter("att_edge", None)
        self._make_residual_and_bias(bias)
        self.reset_shared_parameters()
        self._make_temperature_and_gate(share_gate=False)
        self.reset_temperature_and_gate()

    def reset_shared_parameters(self) -> None:
        super().reset_shared_parameters()
        for lin in (self.lin, self.lin_src, self.lin_dst, self.lin_edge, self.res):
            if lin is not None:
                lin.reset_parameters()
        glorot(self.att_src)
        glorot(self.att_dst)
        glorot(self.att_edge)
        zeros(self.bias)

    def forward(
        self,
        x: Features | tuple[Features, Features | None],
        edge_index: Any,
        edge_attr: Tensor | None = None,
        size: tuple[int | None, int | None] | None = None,
        return_attention_weights: bool | None = None,
        *,
        dropout_seed: Tensor | None = None,
    ) -> Any:
        """Runs the layer.

        Args:
            x: Node features, or a pair for source and target nodes.
            edge_index: The edges, in any form PyG takes, or a ``tempergat.Graph``. What
                was made of a tensor serves again until the tensor is changed; changes
                behind torch's back (``.data``, a NumPy view) go unnoticed.
            edge_attr: Edge features.
            size: Number of source and target nodes; None for one that x tells.
            return_attention_weights: If true, also return the edges and their
                attention weights, as PyG does.
            dropout_seed: A 0-d int64 tensor that fixes the dropout mask; drawn from
                torch's generator when absent.
        """
        arguments = (edge_index, edge_attr, return_attention_weights, dropout_seed)
        return self._run(*self._sides(x), size, *arguments)

    def _project(
        self, x_src: Projectable, x_dst: Projectable | None
    ) -> tuple[Tensor, Tensor | None]:
        z_src = project(self._projection_of(0), x_src)
        if x_dst is None:
            return z_src, None
        if x_dst is x_src and self.lin is not None:
            return z_src, z_src
        return z_src, project(self._projection_of(1), x_dst)

    def _projection_of(self, side: int) -> Linear:
        return self.lin if self.lin is not None else (self.lin_src, self.lin_dst)[side]

    def _scores(
        self, z_src: Tensor, z_dst: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The ends' parts of the logits, over T, as one matrix product."""
        # Autocast would round the logits to half precision.
        with torch.autocast(z_src.device.type, enabled=False):
            flat = at_least_float32(z_src.flatten(1))
            if z_dst is None:
                return multiply(flat, self._score_matrix(self.att_src)), None
            if z_dst is z_src:
                both = torch.cat([self.att_src, self.att_dst])
                scores = multiply(flat, self._score_matrix(both))
                score_src, score_dst = scores.view(-1, 2, self.heads).unbind(1)
                return score_src, score_dst
            flat_dst = at_least_float32(z_dst.flatten(1))
            by_source = self._score_matrix(self.att_src)
            by_target = self._score_matrix(self.att_dst)
            return multiply(flat, by_source), multiply(flat_dst, by_target)

    def _score(self, z: Tensor, att: Tensor) -> Tensor:
        """One end's part of the logits in PyG's order of operations."""
        with torch.autocast(z.device.type, enabled=False):
            return (at_least_float32(z) * self._over_t(att)).sum(-1)

    def _score_matrix(self, att: Tensor) -> Tensor:
        """Attention vectors [A, heads, channels] over T, block-diagonal.

        Returns:
            The weight, [A * heads, heads * channels], of a linear map that gives the
            scores of the first vector, then those of the second.
        """
        own = torch.eye(self.heads, dtype=torch.bool, device=att.device).unsqueeze(-1)
        att_AHHC = self._over_t(att).unsqueeze(1)
        return torch.where(own, att_AHHC, 0.0).flatten(2).flatten(0, 1)

    def _edge_score(self, edge_attr: Tensor) -> Tensor:
        """The edges' part of the logits, without a feature vector per edge."""
        if not is_product(self.lin_edge):
            edge = self.lin_edge(edge_attr).view(-1, self.heads, self.out_channels)
            return self._score(edge, self.att_edge)
        width = edge_attr.size(-1)
        unit = torch.eye(width, dtype=edge_attr.dtype, device=edge_attr.device)
        weight = self.lin_edge(unit)
        with torch.autocast(edge_attr.device.type, enabled=False):
            folded = self._score_matrix(self.att_edge) @ at_least_float32(weight).t()
            return multiply(at_least_float32(edge_attr), folded)

    def _attend(
        self,
        graph: Graph,
        z_src: Tensor,
        z_dst: Tensor | None,
        edge_attr: Tensor | None,
        **settings: Any,
    ) -> tuple[Tensor, Tensor | None]:
        score_src, score_dst = self._scores(z_src, z_dst)
        edge_score = None if edge_attr is None else self._edge_score(edge_attr)
        return ops.gat(graph, z_src, score_src, score_dst, edge_score, **settings)

    def _attend_by_messages(
        self,
        edge_index: Tensor,
        z_src: Tensor,
        z_dst: Tensor | None,
        edge_attr: Tensor | None,
        edge_id: Tensor,
        head_seeds: Tensor | None,
        size: tuple[int, int],
    ) -> tuple[Tensor, Tensor]:
        # edge_updater_type: (alpha: OptPairTensor, edge_attr: OptTensor, edge_id: Tensor, head_seeds: OptTensor)  # noqa: E501
        alpha = self.edge_updater(
            edge_index,
            alpha=(
                self._score(z_src, self.att_src),
                None if z_dst is None else self._score(z_dst, self.att_dst),
            ),
            edge_attr=edge_attr,
            edge_id=edge_id,
            head_seeds=head_seeds,
            size=size,
        )
        alpha = alpha.to(z_src.dtype)
        # propagate_type: (x: OptPairTensor, alpha: Tensor)
        out = self.propagate(edge_index, x=(z_src, z_dst), alpha=alpha, size=size)
        return out, alpha

    def edge_update(
        self,
        alpha_j: Tensor,
        alpha_i: Tensor | None,
        edge_attr: Tensor | None,
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
        alpha = softmax(alpha, index, ptr, dim_size)
        return self._drop(alpha, edge_id, head_seeds)

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha.unsqueeze(-1) * x_j


class TemperGATv2Conv(AttentionLayer):
    r"""GATv2 with a learnable softmax temperature and a feature gate.

    .. math::
        e_{ij} = a^\top \mathrm{LeakyReLU}(W_r h_i + W_l h_j), \qquad
        \alpha_{ij} = \frac{\exp(e_{ij} / T)}{\sum_r \exp(e_{ir} / T)}, \qquad
        h'_i = \Big( \sum_j \alpha_{ij} W_l h_j \Big) \odot g_i

    with :math:`T = \mathrm{softplus}(\theta) + 10^{-6}` and
    :math:`g_i = \sigma(W_g h_i + b_g)`. With ``gate="first"`` both projections are
    gated before they serve in the logits and the messages instead. With
    ``temperature=None, gate=None`` it is PyG's ``GATv2Conv``, whose ``state_dict`` it
    loads.

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
        bias: Whether to add biases.
        share_weights: Project sources and targets by the same matrix.
        residual: Whether to add a linear map of the target's input.
        temperature: ``"layer"`` (one learnable scalar), ``"head"`` (one per head), a
            number (fixed) or None (plain attention).
        init_temp: Where a learnable temperature starts.
        gate: ``"post"`` (on the aggregated output), ``"first"`` (on the projected
            features) or None.
        gate_bias_init: Where the gate's bias starts.
        **kwargs: Arguments of PyG's ``MessagePassing``.

    Shapes:
        - **input:** node features [N, F] or ([N_s, F_s], [N_t, F_t]), edges [2, E],
          edge features [E, D]
        - **output:** [N_t, heads * out_channels], or [N_t, out_channels] without
          ``concat``; with ``return_attention_weights`` also ([2, E'], [E', heads])
    """

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
        residual: bool = False,
        *,
        temperature: Temperature = "layer",
        init_temp: float = 1.0,
        gate: Gate = "post",
        gate_bias_init: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            heads,
            concat,
            negative_slope,
            dropout,
            add_self_loops,
            edge_dim,
            fill_value,
            residual,
            temperature,
            init_temp,
            gate,
            gate_bias_init,
            **kwargs,
        )
        self.share_weights = share_weights
        width = heads * out_channels
        self.lin_l = make_projection(self._side_channels(0), width, bias=bias)
        if share_weights:
            self.lin_r = self.lin_l
        else:
            self.lin_r = make_projection(self._side_channels(1), width, bias=bias)
        self.att = nn.Parameter(torch.empty(1, heads, out_channels))
        if edge_dim is not None:
            self.lin_edge = make_projection(edge_dim, width, bias=False)
        else:
            self.lin_edge = None
        self._make_residual_and_bias(bias)
        self.reset_shared_parameters()
        self._make_temperature_and_gate(share_gate=share_weights)
        self.reset_temperature_and_gate()

    def reset_shared_parameters(self) -> None:
        super().reset_shared_parameters()
        for lin in (self.lin_l, self.lin_r, self.lin_edge, self.res):
            if lin is not None:
                lin.reset_parameters()
        glorot(self.att)
        zeros(self.bias)

    def forward(
        self,
        x: Features | tuple[Features, Features],
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
        *,
        dropout_seed: Tensor | None = None,
    ) -> Any:
        """Runs the layer.

        Args:
            x: Node features, or a pair for source and target nodes.
            edge_index: The edges, in any form PyG takes, or a ``tempergat.Graph``. What
                was made of a tensor serves again until the tensor is changed; changes
                behind torch's back (``.data``, a NumPy view) go unnoticed.
            edge_attr: Edge features.
            return_attention_weights: If true, also return the edges and their
                attention weights, as PyG does.
            dropout_seed: A 0-d int64 tensor that fixes the dropout mask; drawn from
                torch's generator when absent.
        """
        x_src, x_dst = self._sides(x)
        if x_dst is None:
            raise ValueError(
                "GATv2's logits need the target nodes' features, but x is "
                "(x_src, None); pass both"
            )
        arguments = (edge_index, edge_attr, return_attention_weights, dropout_seed)
        return self._run(x_src, x_dst, None, *arguments)

    def _project(
        self, x_src: Projectable, x_dst: Projectable | None
    ) -> tuple[Tensor, Tensor | None]:
        assert x_dst is not None
        z_src = project(self.lin_l, x_src)
        if x_dst is x_src and self.share_weights:
            return z_src, z_src
        return z_src, project(self.lin_r, x_dst)

    def _projection_of(self, side: int) -> Linear:
        return (self.lin_l, self.lin_r)[side]

    def _attend(
        self,
        graph: Graph,
        z_src: Tensor,
        z_dst: Tensor | None,
        edge_attr: Tensor | None,
        **settings: Any,
    ) -> tuple[Tensor, Tensor | None]:
        assert z_dst is not None
        edge = None
        if edge_attr is not None:
            edge = self.lin_edge(edge_attr).view(-1, self.heads, self.out_channels)
        att = self._over_t(self.att).squeeze(0)
        return ops.gatv2(graph, z_src, z_dst, att, edge, **settings)

    def _attend_by_messages(
        self,
        edge_index: Tensor,
        z_src: Tensor,
        z_dst: Tensor | None,
        edge_attr: Tensor | None,
        edge_id: Tensor,
        head_seeds: Tensor | None,
        size: tuple[int, int],
    ) -> tuple[Tensor, Tensor]:
        # edge_updater_type: (x: PairTensor, edge_attr: OptTensor, edge_id: Tensor, head_seeds: OptTensor)  # noqa: E501
        alpha = self.edge_updater(
            edge_index,
            x=(z_src, z_dst),
            edge_attr=edge_attr,
            edge_id=edge_id,
            head_seeds=head_seeds,
            size=size,
        )
        alpha = alpha.to(z_src.dtype)
        # propagate_type: (x: PairTensor, alpha: Tensor)
        out = self.propagate(edge_index, x=(z_src, z_dst), alpha=alpha, size=size)
        return out, alpha

    def edge_update(
        self,
        x_j: Tensor,
        x_i: Tensor,
        edge_attr: Tensor | None,
        edge_id: Tensor,
        head_seeds: Tensor | None,
        index: Tensor,
        ptr: Tensor | None,
        dim_size: int | None,
    ) -> Tensor:
        x = x_i + x_j
        if edge_attr is not None:
            edge = self.lin_edge(edge_attr)
            x = x + edge.view(-1, self.heads, self.out_channels)
        x = F.leaky_relu(at_least_float32(x), self.negative_slope)
        alpha = (x * self._over_t(self.att)).sum(dim=-1)
        alpha = softmax(alpha, index, ptr, dim_size)
        return self._drop(alpha, edge_id, head_seeds)

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return x_j * alpha.unsqueeze(-1)
