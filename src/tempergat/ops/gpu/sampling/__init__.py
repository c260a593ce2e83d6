"""Neighbour sampling on CUDA devices: the batches of the reference, bit for bit."""

from tempergat.ops.gpu.sampling.cuda_graph import CapturedSampler as CapturedSampler
from tempergat.ops.gpu.sampling.cuda_graph import can_capture as can_capture
from tempergat.ops.gpu.sampling.graphs import layer_graphs as layer_graphs
from tempergat.ops.gpu.sampling.graphs import loops_of as loops_of
from tempergat.ops.gpu.sampling.graphs import padded_graph as padded_graph
from tempergat.ops.gpu.sampling.hops import Sampled as Sampled
from tempergat.ops.gpu.sampling.hops import sample as sample
from tempergat.ops.gpu.sampling.layers import Batch as Batch
from tempergat.ops.gpu.sampling.layers import Sizes as Sizes
from tempergat.ops.graphs.graph import Relation as Relation
