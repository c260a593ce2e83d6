"""Graph attention on tensors: one op, its reference and its backends."""

from tempergat.ops.attention import explain, gat, gatv2
from tempergat.ops.graph import Graph, Rows, graph_cache
from tempergat.ops.sparse import SparseFeatures

__all__ = [
    "Graph",
    "Rows",
    "SparseFeatures",
    "explain",
    "gat",
    "gatv2",
    "graph_cache",
]
