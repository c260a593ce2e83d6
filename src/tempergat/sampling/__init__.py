"""Neighbour sampling: batches of seeds with some of their neighbours.

`engines/hops.py` says what a batch is, `engines/reference.py` is its specification in
plain torch, `storage/` holds the edges and features of the whole graph.
"""

from tempergat.sampling.engines import reference
from tempergat.sampling.engines.draws import Key
from tempergat.sampling.engines.engine import sample, sample_typed
from tempergat.sampling.engines.hops import EdgeType, SampledHops, TypedHops
from tempergat.sampling.layer_graphs import LayerGraphs
from tempergat.sampling.loader import NeighborSampler
from tempergat.sampling.storage.array_files import as_tensor, open_array
from tempergat.sampling.storage.features import NodeFeatures
from tempergat.sampling.storage.topology import Topology

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
    "reference",
    "sample",
    "sample_typed",
]
