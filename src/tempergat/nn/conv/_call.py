"""One call of an attention layer: what it was given, checked and prepared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.utils import is_sparse

from tempergat.nn.adjacency import resolve
from tempergat.nn.conv._edges import check_edge_attr, features_of_all, numbers_of_all
from tempergat.nn.conv._inputs import (
    check_device,
    check_features,
    count_nodes,
    stack_sets,
)
from tempergat.nn.projection import Features, project_nodes
from tempergat.ops import (
    compile_ahead,
    draw_seed,
    execution_mode,
    fold_in,
    repeat_edges,
)

if TYPE_CHECKING:
    from tempergat.nn.conv._base import AttentionLayer


class Call:
    """One call of a layer.

    It is made of the layer and the arguments of its ``forward``. Many feature sets on
    one graph are rows of one table here, those of one set after those of another, and
    the graph stands side by side with itself.

    Attributes:
        x: The features of source and target nodes.
        adjacency: The graph of one feature set, and what depends on the edges' form.
        graph: The edges, sorted once, with added self-loops.
        edge_attr: The features of all its edges; None for none.
        edge_weight: Factors of their attention weights, likewise.
        edge_bias: What is added to their logits, likewise.
        dropout: The rate of attention dropout in this call.
        seeds: One seed per head for the attention dropout; None for none.
        mode: The `execution_mode`.
        by_messages: Whether PyG's hooks, an explainer or a subclass needs every
            message.
    """

    def __init__(
        self,
        layer: AttentionLayer,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None,
        edge_weight: Tensor | None,
        edge_bias: Tensor | None,
        return_weights: bool | None,
        dropout_seed: Tensor | None,
        size: tuple[int | None, int | None] | None = None,
    ) -> None:
        self.mode = mode = execution_mode()
        self.x = x_src, x_dst = check_features(x, layer.input_maps())
        self._sets = sets = tuple(x_src.shape[:-2])
        self.by_messages = by_messages = layer.slow_path_reason() is not None
        self._size = count_nodes(self.x, size, edge_index)
        check_device(edge_index, x_src)
        if mode == "eager" and x_src.device.type == "cuda" and not by_messages:
            _compile_kernels(layer, x_src, bool(return_weights))
        edge_attr = check_edge_attr(layer, edge_attr, sets, mode)
        self._edge_index = edge_index
        self.adjacency = resolve(
            edge_index,
            self._size,
            self_loops=layer.add_self_loops,
            reverse=layer.target_to_source,
            # A graph that is being traced may be padded.
            static_shapes=not (by_messages or return_weights),
            mode=mode,
            cache=layer.cache,
        )
        self.graph = graph = self.adjacency.graph
        if edge_attr is None and layer.edge_dim is not None:
            edge_attr = check_edge_attr(layer, self.adjacency.values, sets, mode)
        if edge_attr is not None:
            edge_attr = features_of_all(layer, graph, edge_attr)
        if edge_weight is not None or edge_bias is not None:
            rest = (graph, sets, edge_index)
            edge_weight = numbers_of_all(layer.heads, "edge_weight", edge_weight, *rest)
            edge_bias = numbers_of_all(layer.heads, "edge_bias", edge_bias, *rest)
        if x_dst is None and layer.needs_targets is not None:
            raise ValueError(
                f"{layer.needs_targets} need the target nodes' features, but x is "
                "(x_src, None); pass both"
            )
        if sets:
            self.x = stack_sets(self.x, graph)
            self.graph = graph = graph.repeat(math.prod(sets))
            if by_messages:
                edge_attr = repeat_edges(edge_attr, graph)
                edge_weight = repeat_edges(edge_weight, graph)
                edge_bias = repeat_edges(edge_bias, graph)
        self.edge_attr, self.edge_weight = edge_attr, edge_weight
        self.edge_bias = edge_bias
        self.return_weights = bool(return_weights)
        self.seeds = None
        self.dropout = layer.dropout if layer.training else 0.0
        if self.dropout != 0.0:
            base = draw_seed(x_src.device) if dropout_seed is None else dropout_seed
            self.seeds = fold_in(base, torch.arange(layer.heads, device=x_src.device))

    def project(self, *maps: Any) -> tuple[list[Any], Any, tuple[Any, Any], Any]:
        """What linear maps give for the nodes; `project_nodes` says which they are."""
        return project_nodes(self.x, self.graph.num_dst, self.mode, *maps)

    def result(self, out: Tensor, alpha: Tensor | None) -> Any:
        """What the layer returns: the output, and the weights where they are wanted.

        Raises:
            ValueError: The weights cannot be the values of the sparse matrix of edges.
        """
        sets = self._sets
        if sets:
            out = out.view(*sets, self._size[1], out.size(-1))
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
            edges = self.adjacency.graph.num_all_edges
            alpha = alpha.view(*sets, edges, alpha.size(-1))
        return out, self.adjacency.pack(alpha)


def _compile_kernels(layer: AttentionLayer, x: Features, return_weights: bool) -> None:
    """Has the GPU kernels of a whole step compiled in parallel, in the first call.

    Otherwise each would be compiled when it is first launched, one after the other.
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
