"""Neighbour sampling on CUDA devices: the batches of the reference, bit for bit."""

from tempergat.ops.gpu.sampling.graphs import layer_graphs, loops_of, padded_graph
from tempergat.ops.gpu.sampling.hops import Relation, Sampled, sample
from tempergat.ops.gpu.sampling.layers import Batch, Sizes
from tempergat.ops.gpu.sampling.recorded import Recorded, can_record

__all__ = [
    "Batch",
    "Recorded",
    "Relation",
    "Sampled",
    "Sizes",
    "can_record",
    "layer_graphs",
    "loops_of",
    "padded_graph",
    "sample",
]
