"""The backbones, and the node classifier that their layers make."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import torch
import torch_geometric.nn
from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge
from torch_geometric.nn.resolver import activation_resolver, normalization_resolver
from torch_geometric.utils import trim_to_layer

from tempergat.nn.batches import (
    BatchNorm,
    HasLayerGraphs,
    first_nodes,
    layer_inputs,
    normalize_sets,
    refuse_sampled,
)
from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.conv.gat import TemperGATConv
from tempergat.nn.conv.gatv2 import TemperGATv2Conv
from tempergat.nn.conv.gcn import GCNLayer, LinearLayer
from tempergat.nn.conv.transformer import TemperTransformerConv
from tempergat.nn.methods import Method
from tempergat.nn.projection import Features, as_features, drop_features
from tempergat.ops import draw_seed, fold_in

BackboneName = Literal["gcn", "gat", "gatv2", "transformer", "mlp"]


class Backbone(NamedTuple):
    """What the rest of the library needs to know about a backbone.

    Attributes:
        layer: The class of its layers.
        has_attention: Whether its layers compute attention weights. Only such layers
            have heads, attention dropout and edge features, and take a temperature
            and a gate.
        uses_degrees: Whether its layers normalise by degrees: those of the whole graph,
            also in a part of it.
        num_projections: How many linear maps of the node features a layer computes.
    """

    layer: type[nn.Module]
    has_attention: bool
    uses_degrees: bool = False
    num_projections: int = 1


BACKBONES: dict[BackboneName, Backbone] = {
    "gcn": Backbone(GCNLayer, False, uses_degrees=True),
    "gat": Backbone(TemperGATConv, True),
    "gatv2": Backbone(TemperGATv2Conv, True, num_projections=2),
    "transformer": Backbone(TemperTransformerConv, True, num_projections=4),
    "mlp": Backbone(LinearLayer, False),
}


class NodeClassifier(nn.Module):
    """Graph layers with dropout, activation and normalisation between them."""

    def __init__(
        self,
        method: Method,
        convs: list[nn.Module],
        hidden_channels: int,
        out_channels: int,
        dropout: float,
        act: str | Callable[..., Any] | None,
        norm: str | Callable[..., Any] | None,
        jk: str | None,
        bias_before_norm: bool = True,
    ) -> None:
        super().__init__()
        self.method = method
        self.dropout = dropout
        self.act = activation_resolver(act)
        self.convs = nn.ModuleList(convs)
        between = len(convs) - (jk is None)
        layer = normalization_resolver(norm, hidden_channels) or nn.Identity()
        if isinstance(norm, str) and isinstance(layer, torch_geometric.nn.BatchNorm):
            layer = BatchNorm(hidden_channels)
        self.norms = nn.ModuleList(copy.deepcopy(layer) for _ in range(between))
        self.jk: nn.Module | None = None
        self.lin: nn.Module | None = None
        if jk is not None:
            width = hidden_channels * (len(convs) if jk == "cat" else 1)
            if jk != "last":
                self.jk = JumpingKnowledge(jk, hidden_channels, len(convs))
            self.lin = nn.Linear(width, out_channels)
        if not bias_before_norm:
            for conv, after in zip(self.convs, self.norms, strict=False):
                drop_idle_bias(conv, after)

    def reset_parameters(self) -> None:
        """Draws all parameters again, those of temperatures and gates last.

        Temperatures and gates have a generator of their own. So parameters that two
        methods share start equal, and torch's generator is in the same state after
        either.
        """
        for module in (*self.convs, *self.norms, self.jk, self.lin):
            if isinstance(module, AttentionLayer):
                module.reset_shared_parameters()
            elif hasattr(module, "reset_parameters"):
                module.reset_parameters()
        # A number cannot be read from the meta device.
        on_meta = torch.empty(0).is_meta
        seed = int(torch.randint(2**62, (), device="cpu" if on_meta else None))
        with fork_generator() as generator:
            generator.manual_seed(seed)
            for module in self.convs:
                if isinstance(module, AttentionLayer):
                    module.reset_temperature_and_gate()

    def forward(
        self,
        x: Features,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        num_sampled_nodes_per_hop: list[int] | None = None,
        num_sampled_edges_per_hop: list[int] | None = None,
        edge_weight: Tensor | None = None,
        dropout_seed: Tensor | None = None,
    ) -> Tensor:
        """Class scores of all nodes, [num_nodes, out_channels].

        Args:
            x: Node features; [..., N, F] for many feature sets on one graph, but not
                for a sampled batch. Batch norm then takes its mean over all sets.
            edge_index: The edges, in any form the layers take; or, for a sampled
                batch, its ``batch.graph``, or one ``tempergat.Graph`` per layer, the
                first layer's first. The targets of a layer are then the first rows
                of its input, and the result has a row for every target of the last
                layer. Edges are numbered through all layers: those of a layer are the
                first of ``edge_attr`` and ``edge_weight``.
            edge_attr: Edge features, if the layers were made with ``edge_dim``.
            num_sampled_nodes_per_hop: For sampled batches: nodes per hop.
            num_sampled_edges_per_hop: For sampled batches: edges per hop.
            edge_weight: A weight of 0 or more for every edge, [E]: in the adjacency
                matrix of ``gcn``, a factor of attention weights elsewhere.
            dropout_seed: A 0-d int64 tensor that fixes all dropout masks of this
                call; drawn from torch's generator when absent.
        """
        if edge_weight is not None:
            self._check_edge_weight(num_sampled_nodes_per_hop)
        h: Any = as_features(x)
        if len(h.shape) > 2:
            refuse_sampled(h.shape, edge_index, num_sampled_nodes_per_hop)
        parts = None
        if isinstance(edge_index, (tuple, list, HasLayerGraphs)):
            parts = layer_inputs(
                edge_index,
                len(self.convs),
                any(getattr(conv, "add_self_loops", True) for conv in self.convs),
                edge_attr,
                edge_weight,
                has_degrees=BACKBONES[self.method.backbone].uses_degrees,
            )
        dropout_seed = self._dropout_seed(dropout_seed, h.device)
        if dropout_seed is not None:
            # Of features and of attention weights, for all layers at once. Each is made
            # twice, so that its address is a multiple of 16, as GPU kernels need it.
            numbers = torch.arange(4 * len(self.convs), device=h.device) // 2
            dropout_seeds = fold_in(dropout_seed, numbers)[::2]
        outputs = []
        for i, conv in enumerate(self.convs):
            if num_sampled_nodes_per_hop is not None:
                h, edge_index, edge_attr = trim_to_layer(
                    i,
                    num_sampled_nodes_per_hop,
                    num_sampled_edges_per_hop,
                    h,
                    edge_index,
                    edge_attr,
                )
            options: dict[str, Any] = {}
            if parts is not None:
                edge_index, options = parts[i]
                h = first_nodes(h, edge_index.num_src)
            else:
                if edge_attr is not None:
                    options["edge_attr"] = edge_attr
                if edge_weight is not None:
                    options["edge_weight"] = edge_weight
            if dropout_seed is not None:
                h = drop_features(h, self.dropout, dropout_seeds[2 * i])
                options["dropout_seed"] = dropout_seeds[2 * i + 1]
            h = conv(h, edge_index, **options)
            if i < len(self.norms):
                h = self._normalize(i, h, getattr(edge_index, "in_use", None))
                outputs.append(h)
        if self.jk is not None:
            rows = [output[: h.size(0)].flatten(0, -2) for output in outputs]
            h = self.jk(rows).unflatten(0, h.shape[:-1])
        if self.lin is not None:
            h = self.lin(h)
        scores: Tensor = h
        return scores

    def embed(self, *args: Any, **kwargs: Any) -> Tensor:
        """The last hidden features of all nodes, [num_nodes, hidden_channels].

        They are the input of the layer that gives the class scores: after
        normalisation and activation, and after dropout in training mode.

        Args:
            *args: Those of :meth:`forward`.
            **kwargs: Those of :meth:`forward`.

        Raises:
            ValueError: The model has one layer, and no hidden features.
        """
        with hidden_features(self) as parts:
            self(*args, **kwargs)
        return torch.cat(parts)

    def _normalize(
        self, i: int, h: Tensor, in_use: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """What comes between layer i and the next: normalisation and activation."""
        norm = self.norms[i]
        if in_use is not None and isinstance(norm, BatchNorm):
            h = norm(h, in_use[1])
        else:
            h = norm(h) if h.dim() == 2 else normalize_sets(norm, h)
        return h if self.act is None else self.act(h)

    def _check_edge_weight(self, sampled: list[int] | None) -> None:
        backbone = BACKBONES[self.method.backbone]
        if not (backbone.has_attention or backbone.uses_degrees):
            raise ValueError(
                f"edge_weight was given, but layers of {self.method.backbone} have no "
                "use for it; leave it out, or use gcn or an attention method"
            )
        if sampled is not None:
            raise ValueError(
                "edge_weight cannot be combined with num_sampled_nodes_per_hop; leave "
                "out one of them"
            )

    def _dropout_seed(self, seed: Tensor | None, device: Any) -> Tensor | None:
        """The seed of a call's dropout masks; None where nothing is dropped."""
        if not self.training:
            return None
        rates = [self.dropout, *(getattr(conv, "dropout", 0.0) for conv in self.convs)]
        if seed is None and any(rate > 0.0 for rate in rates):
            return draw_seed(device)
        return seed


def drop_idle_bias(layer: Any, norm: nn.Module | None) -> None:
    """Takes the bias from a layer whose outputs a batch norm centres.

    Its gradient is rounding alone, which Adam makes a step of full size.
    """
    if isinstance(getattr(norm, "module", norm), nn.BatchNorm1d):
        # A transformer's is that of its skip, unless a share weighs it.
        has_skip = hasattr(layer, "lin_skip") and layer.lin_beta is None
        (layer.lin_skip if has_skip else layer).bias = None


@contextmanager
def hidden_features(model: NodeClassifier) -> Iterator[list[Tensor]]:
    """Collects the inputs of the layer that gives the class scores, call by call.

    Raises:
        ValueError: The model has one layer, and no hidden features.
    """
    last: Any = getattr(model, "classifier", None) or model.lin or model.convs[-1]
    if last is model.convs[0]:
        raise ValueError("a model of one layer has no hidden features; give it two")
    parts: list[Tensor] = []

    def keep(_: nn.Module, args: tuple[Any, ...]) -> None:
        rows = getattr(args[1], "num_dst", None) if len(args) > 1 else None
        parts.append(args[0][:rows])

    handle = last.register_forward_pre_hook(keep)
    try:
        yield parts
    finally:
        handle.remove()


@contextmanager
def fork_generator() -> Iterator[torch.Generator]:
    """The generator of new parameters; afterwards it has its old state again."""
    # torch 2.6 does not name a default device that a context sets.
    device = torch.empty(0).device
    generator = torch.default_generator
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        generator = torch.cuda.default_generators[index]
    state = generator.get_state()
    try:
        yield generator
    finally:
        generator.set_state(state)
