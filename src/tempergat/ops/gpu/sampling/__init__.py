"""Neighbour sampling on CUDA devices: the batches of the reference, bit for bit."""

from tempergat.ops.gpu.sampling.graphs import layer_graphs, loops_of, padded_graph
from tempergat.ops.gpu.sampling.hops import Relation, Sampled, sample
from tempergat.ops.gpu.sampling.layers import Batch, Sizes

__all__ = [
    "Batch",
    "Relation",
    "Sampled",
    "Sizes",
    "layer_graphs",
    "loops_of",
    "padded_graph",
    "sample",
]
