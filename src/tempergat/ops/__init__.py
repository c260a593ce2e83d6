"""Graph attention on tensors: the ops, their reference and their backends.

What other packages may use. `ops/README.md` has the mathematics.
"""

from tempergat.ops.attention import (
    attend,
    attend_with,
    dot_product,
    explain,
    gat,
    gatv2,
)
from tempergat.ops.calls import Epilogue, Input, repeat_edges
from tempergat.ops.cpu.edges import group_by_target
from tempergat.ops.cpu.gather import can_gather, gather_graphs
from tempergat.ops.cpu.sampler import CpuSampler, make_layer_graph
from tempergat.ops.cpu.sampler import can_sample as can_sample_on_cpu
from tempergat.ops.features.dense import linear as dense_linear
from tempergat.ops.features.elementwise import close_rows, sigmoid_gate
from tempergat.ops.features.elementwise import dropout as seeded_dropout
from tempergat.ops.features.sparse import SparseFeatures
from tempergat.ops.features.sparse import linear as sparse_linear
from tempergat.ops.features.sums import weighted_sum
from tempergat.ops.gpu import compile_ahead, fold_in, gather_rows, launch_path
from tempergat.ops.gpu import sampling_kernels as gpu_sampling
from tempergat.ops.graphs.cache import tensor_cache, version_of
from tempergat.ops.graphs.graph import Graph
from tempergat.ops.graphs.rows import Relation, Rows
from tempergat.ops.kinds import register_attention, registered
from tempergat.ops.random import draw_seed, fold_numbers, keep_factor
from tempergat.ops.reference import (
    EPSILON,
    at_least_float32,
    divide_by_temperature,
    sum_by_target,
    temperature_of,
)
from tempergat.ops.torch_internals import (
    LIMITS,
    as_constant,
    execution_mode,
    has_global_hooks,
    in_backward,
    is_alive,
    is_compiled,
    is_exporting,
    is_tracing,
    ordinary_tensors,
    original_module,
)

__all__ = [
    "EPSILON",
    "LIMITS",
    "CpuSampler",
    "Epilogue",
    "Graph",
    "Input",
    "Relation",
    "Rows",
    "SparseFeatures",
    "as_constant",
    "at_least_float32",
    "attend",
    "attend_with",
    "can_gather",
    "can_sample_on_cpu",
    "close_rows",
    "compile_ahead",
    "dense_linear",
    "divide_by_temperature",
    "dot_product",
    "draw_seed",
    "execution_mode",
    "explain",
    "fold_in",
    "fold_numbers",
    "gat",
    "gather_graphs",
    "gather_rows",
    "gatv2",
    "gpu_sampling",
    "group_by_target",
    "has_global_hooks",
    "in_backward",
    "is_alive",
    "is_compiled",
    "is_exporting",
    "is_tracing",
    "keep_factor",
    "launch_path",
    "make_layer_graph",
    "ordinary_tensors",
    "original_module",
    "register_attention",
    "registered",
    "repeat_edges",
    "seeded_dropout",
    "sigmoid_gate",
    "sparse_linear",
    "sum_by_target",
    "temperature_of",
    "tensor_cache",
    "version_of",
    "weighted_sum",
]
