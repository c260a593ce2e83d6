"""Neighbour sampling: batches of seeds with some of their neighbours.

`hops.py` says what a batch is, `reference.py` is its specification in plain torch.
"""

from tempergat.sampling.array_files import as_tensor, open_array
from tempergat.sampling.draws import Key
from tempergat.sampling.engine import sample, sample_typed
from tempergat.sampling.features import NodeFeatures
from tempergat.sampling.hops import EdgeType, SampledHops, TypedHops
from tempergat.sampling.layer_graphs import LayerGraphs
from tempergat.sampling.loader import NeighborSampler
from tempergat.sampling.topology import Topology

__all__ = [
    "EdgeType",
    "Key",
    "LayerGraphs",
    "NeighborSampler",
    "NodeFeatures",
    "SampledHops",
    "Topology",
    "TypedHops",
    "as_tensor",
    "open_array",
    "sample",
    "sample_typed",
]
