"""One call of an attention layer: what it was given, checked and prepared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.utils import is_sparse

from tempergat.nn.conv._edges import EdgeValues, resolve_edges
from tempergat.nn.conv._inputs import (
    check_device,
    check_features,
    count_nodes,
    stack_sets,
)
from tempergat.nn.projection import Features, NodeInputs, Sides
from tempergat.ops import compile_ahead, draw_seed, execution_mode, fold_in

if TYPE_CHECKING:
    from tempergat.nn.conv._base import AttentionLayer


class Call:
    """One call of a layer.

    Many feature sets on one graph are rows of one table here, those of one set after
    those of another, and the graph stands side by side with itself.

    Args:
        layer: The layer.
        x: Its input.
        edge_index: Its edges.
        of_edges: edge_attr, edge_weight and edge_bias.
        return_weights: Whether the attention weights are wanted.
        dropout_seed: Fixes the dropout mask; None to draw it.
        size: Number of source and target nodes, where the caller says it.

    Attributes:
        mode: The `execution_mode`.
        by_messages: Whether PyG's hooks, an explainer or a subclass needs every
            message.
        graph: The edges, sorted once, with added self-loops.
        edge_attr: The features of all its edges; None for none.
        edge_weight: Factors of their attention weights; None for none.
        edge_bias: What is added to their logits; None for none.
        x: The node features by side.
        seeds: One seed per head for the attention dropout; None for none.
    """

    def __init__(
        self,
        layer: AttentionLayer,
        x: Features | tuple[Features, Features | None],
        edge_index: Any,
        of_edges: EdgeValues,
        return_weights: bool | None,
        dropout_seed: Tensor | None,
        size: tuple[int | None, int | None] | None = None,
    ) -> None:
        mode = execution_mode()
        maps = layer.input_maps()
        sides = check_features(x, maps)
        shape = sides.src.shape
        sets = () if len(shape) == 2 else tuple(shape[:-2])
        by_messages = layer.slow_path_reason() is not None
        sizes = count_nodes(sides, size, edge_index)
        check_device(edge_index, sides.src)
        if mode == "eager" and sides.src.device.type == "cuda" and not by_messages:
            _compile_kernels(layer, sides.src, bool(return_weights))
        fixed = not (by_messages or return_weights)
        self._adjacency, *values = resolve_edges(
            layer, edge_index, sizes, of_edges, sets, fixed, mode
        )
        self.edge_attr, self.edge_weight, self.edge_bias = values
        graph = self._adjacency.graph
        if sets:
            sides = stack_sets(sides, graph)
            graph = graph.repeat(math.prod(sets))
        self.graph, self.mode, self.by_messages = graph, mode, by_messages
        self.gates = layer.gates
        self.return_weights = bool(return_weights)
        self._edge_index, self._sets, self._num_dst = edge_index, sets, sizes[1]
        self.seeds = None
        self.dropout = layer.dropout if layer.training else 0.0
        if self.dropout != 0.0:
            device = sides.src.device
            base = draw_seed(device) if dropout_seed is None else dropout_seed
            self.seeds = fold_in(base, torch.arange(layer.heads, device=device))
        self.x = self._inputs(layer, sides)

    def _inputs(self, layer: AttentionLayer, x: Sides[Features]) -> Sides[NodeInputs]:
        """The inputs by side, multiplied by all maps at once where that pays."""
        mode, graph = self.mode, self.graph
        if x.is_shared:
            fewer = graph.num_dst < graph.num_src
            both = NodeInputs(x.src, mode, graph.num_dst if fewer else None)
            if both.joins:
                both.multiply_all(layer.node_maps())
            return Sides(both, both)
        dst = None if x.dst is None else NodeInputs(x.dst, mode)
        return Sides(NodeInputs(x.src, mode), dst)

    def targets(self, what: str) -> NodeInputs:
        """The target nodes' input.

        Raises:
            ValueError: There is none.
        """
        if self.x.dst is None:
            raise ValueError(
                f"{what} need the target nodes' features, but x is (x_src, None); pass "
                "both"
            )
        return self.x.dst

    def project(self, maps: Sides[Linear]) -> Sides[Tensor]:
        """The projected features by side; one tensor where both sides share all."""
        x = self.x
        z = x.src.project(maps.src)
        if x.dst is None or maps.dst is None:
            return Sides(z, None)
        if x.is_shared and maps.is_shared:
            # The targets' rows are among the sources'.
            return Sides(z, z)
        return Sides(z, x.dst.project_targets(maps.dst))

    def gate(self, z: Sides[Any], gate_logit: Sides[Tensor]) -> Sides[Any]:
        """The projected features times their gate."""
        in_use = None if self.graph.in_use is None else self.graph.in_use[0]
        return self.gates.features(z, gate_logit, in_use, self.mode)

    def options(self) -> dict[str, Any]:
        """What every attention takes beside its inputs."""
        return {
            "mode": self.mode,
            "edge_weight": self.edge_weight,
            "edge_bias": self.edge_bias,
            "dropout": self.dropout,
            "dropout_seed": self.seeds,
            "return_weights": self.return_weights,
        }

    def result(self, out: Tensor, alpha: Tensor | None) -> Any:
        """What the layer returns: the output, and the weights where they are wanted.

        Raises:
            ValueError: The weights cannot be the values of the sparse matrix of edges.
        """
        sets = self._sets
        if sets:
            out = out.view(*sets, self._num_dst, out.size(-1))
        if not self.return_weights:
            return out
        assert alpha is not None
        alpha = alpha.to(out.dtype)
        if sets:
            if is_sparse(self._edge_index):
                raise ValueError(
                    f"the attention weights of {list(sets)} feature sets cannot be "
                    "values of one sparse matrix; pass edge_index as a [2, E] tensor "
                    "or a tempergat.Graph"
                )
            edges = self._adjacency.graph.num_all_edges
            alpha = alpha.view(*sets, edges, alpha.size(-1))
        return out, self._adjacency.pack(alpha)


def _compile_kernels(layer: AttentionLayer, x: Features, return_weights: bool) -> None:
    """Has the GPU kernels of a whole step compiled in parallel.

    Otherwise each kernel would be compiled when it is first launched, one after the
    other. Only the first call of its kind does anything.
    """
    half = torch.is_autocast_enabled("cuda")
    compile_ahead(
        layer.attention,
        layer.heads,
        layer.out_channels,
        dtype=torch.get_autocast_dtype("cuda") if half else x.dtype,
        dropout=layer.training and layer.dropout > 0.0,
        gate=layer.gate is not None,
        edge=layer.edge_dim is not None,
        learnt=layer.theta is not None and layer.theta.dim() == 0,
        weights=return_weights,
        training=torch.is_grad_enabled(),
        device=x.device,
    )
