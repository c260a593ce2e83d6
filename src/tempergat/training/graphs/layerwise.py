"""Exact inference over a whole graph, layer by layer, in bounded memory.

Every layer is computed for all nodes before the next one begins, some target nodes at
a time. So no node is computed twice, no neighbour is left out, and the result equals
that of the model on the whole graph up to rounding. What stays in memory is the output
of two layers for all nodes, and what one chunk of targets needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tempergat.nn import BACKBONES, NodeClassifier, batch_degree
from tempergat.ops import Graph
from tempergat.sampling import Key, LayerGraphs, NodeFeatures, Topology, sample

DEFAULT_CHUNK = 2**16
# Targets with many edges make a chunk end early: it has at most this many edges for
# each target it may have, and always one target.
_EDGES_PER_TARGET = 64

# Takes the number of a layer, the layer, and its input for a chunk of nodes.
OnLayer = Callable[[int, nn.Module, Tensor], None]


class _Chunk(NamedTuple):
    """Some targets with all of their edges.

    Attributes:
        begin: Place of the first target among those that are wanted.
        nodes: The targets, then the other ends of their edges.
        graph: The edges; the targets are the first of the nodes.
        edges: The edges' numbers in the whole graph.
    """

    begin: int
    nodes: Tensor
    graph: Graph
    edges: Tensor

    def values(self, of_edges: Tensor) -> Tensor:
        """The rows of a tensor with a row per edge of the whole graph."""
        rows = of_edges[self.edges.to(of_edges.device)]
        return rows.to(self.nodes.device)


@torch.no_grad()
def infer_layerwise(
    model: NodeClassifier,
    x: Tensor | np.ndarray | NodeFeatures,
    graph: Topology | Tensor | Graph,
    *,
    chunk: int = DEFAULT_CHUNK,
    nodes: Tensor | None = None,
    edge_attr: Tensor | None = None,
    edge_weight: Tensor | None = None,
    keep_on: torch.device | str | None = None,
    on_layer: OnLayer | None = None,
) -> Tensor:
    """Class scores of a model in evaluation, computed layer by layer.

    Graph convolution normalises by the degrees of the whole graph.

    Args:
        model: The model, on the device that computes.
        x: Features of all nodes, on any device or mapped from a file.
        graph: The edges: a `Topology` (best for large graphs), an ``edge_index`` or a
            ``tempergat.Graph``.
        chunk: How many target nodes are computed at once.
        nodes: The nodes whose scores are wanted; None for all.
        edge_attr: Edge features, if the layers take them.
        edge_weight: Edge weights, likewise.
        keep_on: Where the output of a layer for all nodes is kept; None for the
            model's device if that is a third of its free memory or less, and otherwise
            for the CPU.
        on_layer: Called with the number of a layer, the layer, and its input, for
            every chunk of nodes.

    Returns:
        [nodes, classes].
    """
    device = next(model.parameters()).device
    edges = graph.edge_index if isinstance(graph, Graph) else graph
    topology = edges if isinstance(edges, Topology) else Topology.of(edges, x.shape[0])
    options = {"edge_attr": edge_attr, "edge_weight": edge_weight}
    given = {name: value for name, value in options.items() if value is not None}
    degree = None
    if BACKBONES[model.method.backbone].uses_degrees:
        degree = _degrees(topology, chunk, edge_weight, device)
    was_training = model.training
    model.eval()
    try:
        h = x.to(device) if isinstance(x, NodeFeatures) else NodeFeatures(x, device)
        outputs: list[Tensor] = []
        for number, conv in enumerate(model.convs):
            # A normalisation may need all nodes.
            is_last = number >= len(model.norms)
            wanted = nodes if is_last else None
            rows = topology.num_dst if wanted is None else wanted.size(0)
            out = torch.empty(0)
            for part in _chunks(topology, chunk, wanted, device):
                arguments = {name: part.values(v) for name, v in given.items()}
                if degree is not None:
                    arguments["degree"] = degree[part.nodes]
                h_part = h.rows(part.nodes)
                if on_layer is not None:
                    on_layer(number, conv, h_part[: part.graph.num_dst])
                result = conv(h_part, part.graph, **arguments)
                if part.begin == 0:
                    place = _place(keep_on, rows * result[0].nbytes, device)
                    out = result.new_empty(rows, result.size(1), device=place)
                out[part.begin : part.begin + result.size(0)] = result.to(place)
            if not is_last:
                out = _between_layers(model, number, out, chunk, device)
                if model.lin is not None:
                    outputs.append(out if nodes is None else out[nodes.to(out.device)])
            h = NodeFeatures(out, device)
        if model.lin is None:
            return out
        return _read_out(model, outputs, chunk, device)
    finally:
        model.train(was_training)


def _place(
    keep_on: torch.device | str | None, size: int, device: torch.device
) -> torch.device:
    """Where so many bytes of output are kept."""
    if keep_on is not None:
        return torch.device(keep_on)
    if device.type == "cuda" and size > torch.cuda.mem_get_info(device)[0] // 3:
        return torch.device("cpu")
    return device


def _chunks(
    topology: Topology, size: int, wanted: Tensor | None, device: torch.device
) -> Iterator[_Chunk]:
    """Chunks of the wanted targets."""
    count = topology.num_dst if wanted is None else wanted.size(0)
    begin = 0
    while begin < count:
        end = min(begin + size, count)
        targets = torch.arange(begin, end, device=topology.device)
        if wanted is not None:
            targets = wanted[begin:end].to(topology.device)
        ends = (topology.pointer[targets + 1] - topology.pointer[targets]).cumsum(0)
        fitting = int((ends <= size * _EDGES_PER_TARGET).sum())
        targets = targets[: max(fitting, 1)]
        # One hop with all neighbours; nothing is drawn.
        whole = [topology.relation()], [topology.num_src]
        hops = sample(*whole, 0, targets, [[-1]], Key(0, 0, 0), replace=False)
        graphs = LayerGraphs.of_hops(hops, training=False).to(device)
        (graph,) = graphs.for_layers(1, self_loops=False)
        edges = topology.edges_of(hops.slot[0])
        yield _Chunk(begin, hops.n_id[0].to(device), graph, edges)
        begin += targets.size(0)


def _degrees(
    topology: Topology, size: int, edge_weight: Tensor | None, device: torch.device
) -> Tensor:
    """The degree of every node, its self-loop included, or the sum of its weights."""
    degrees = []
    for part in _chunks(topology, size, None, device):
        weights = None if edge_weight is None else part.values(edge_weight)
        degrees.append(batch_degree(part.graph, weights))
    return torch.cat(degrees)


def _between_layers(
    model: NodeClassifier, number: int, out: Tensor, chunk: int, device: torch.device
) -> Tensor:
    """Normalisation and activation of a layer's output."""
    norm: Any = model.norms[number]

    def finished(rows: Tensor) -> Tensor:
        rows = norm(rows)
        return rows if model.act is None else model.act(rows)

    # In evaluation these treat each node separately. PyG's layer norm, for one, takes
    # its mean over all nodes.
    if not isinstance(getattr(norm, "module", norm), nn.Identity | nn.BatchNorm1d):
        return finished(out.to(device)).to(out.device)
    for begin in range(0, out.size(0), chunk):
        rows = out[begin : begin + chunk]
        rows.copy_(finished(rows.to(device)))
    return out


def _read_out(
    model: NodeClassifier, outputs: list[Tensor], chunk: int, device: torch.device
) -> Tensor:
    """Jumping knowledge and the final linear map."""
    assert model.lin is not None
    logits = []
    for begin in range(0, outputs[0].size(0), chunk):
        rows = [part[begin : begin + chunk].to(device) for part in outputs]
        h = rows[-1] if model.jk is None else model.jk(rows)
        logits.append(model.lin(h).to(outputs[0].device))
    return torch.cat(logits)
