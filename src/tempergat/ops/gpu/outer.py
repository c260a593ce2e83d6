# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Weights' gradients of many models on CUDA devices, through Triton.

Each is a product over all nodes of two narrow matrices. The libraries' batched products
give each model to one or two programs, which then add up all nodes alone: 0.7 ms for 50
models on Pubmed. Here the nodes are cut into chunks, whose sums are added in a fixed
order: 0.12 ms.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.launch import divide_up, launch, power_of_two

# Nodes of a step, and the fewest of a chunk.
_NODES = 32
_SHORTEST = 256
# So many programs keep any device busy.
_PROGRAMS = 2048


@triton.jit(do_not_specialize=["rows", "models", "per_chunk", "outs", "features"])
def _outer_kernel(
    dout_ptr, x_ptr, part_ptr, rows, models, per_chunk, outs, features,
    BLOCK_N: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_F: tl.constexpr,
    OUTS_BY_FOUR: tl.constexpr, FEATURES_BY_FOUR: tl.constexpr,
):  # fmt: skip
    # So that four numbers are read at once.
    num_outs = outs // 4 * 4 if OUTS_BY_FOUR else outs
    num_features = features // 4 * 4 if FEATURES_BY_FOUR else features
    model = tl.program_id(0)
    chunk = tl.program_id(1).to(tl.int64)
    o = tl.arange(0, BLOCK_O)
    f = tl.arange(0, BLOCK_F)
    total = tl.zeros([BLOCK_O, BLOCK_F], tl.float32)
    last = tl.minimum((chunk + 1) * per_chunk, rows)
    for first in range(chunk * per_chunk, last, BLOCK_N):
        node = first + tl.arange(0, BLOCK_N)
        here = node < last
        place = node * models + model
        mask = (o < num_outs)[:, None] & here[None, :]
        offset = place[None, :] * num_outs + o[:, None]
        dout = tl.load(dout_ptr + offset, mask=mask, other=0.0)
        mask = here[:, None] & (f < num_features)[None, :]
        offset = place[:, None] * num_features + f[None, :]
        x = tl.load(x_ptr + offset, mask=mask, other=0.0)
        total = tl.dot(dout, x, total, input_precision="ieee")
    target = part_ptr + (chunk * models + model) * (num_outs * num_features)
    mask = (o < num_outs)[:, None] & (f < num_features)[None, :]
    tl.store(target + o[:, None] * num_features + f[None, :], total, mask=mask)


def run(dout_NBO: Tensor, x_NBF: Tensor) -> Tensor:
    """For each model, the sum over all nodes of dout's and x's products, [B, O, F]."""
    (nodes, models, outs), features = dout_NBO.shape, x_NBF.size(2)
    chunks = min(divide_up(_PROGRAMS, models), divide_up(nodes, _SHORTEST))
    per_chunk = divide_up(divide_up(nodes, chunks), _NODES) * _NODES
    chunks = divide_up(nodes, per_chunk)
    part = x_NBF.new_empty(chunks, models, outs, features)
    # The compiler's matrix products have at least 16 rows and columns.
    blocks = (max(16, power_of_two(outs)), max(16, power_of_two(features)))
    launch(
        _outer_kernel,
        (models, chunks),
        (dout_NBO.contiguous(), x_NBF.contiguous(), part),
        (nodes, models, per_chunk, outs, features),
        (_NODES, *blocks, outs % 4 == 0, features % 4 == 0),
        warps=4,
    )
    return torch.sum(part, 0)
