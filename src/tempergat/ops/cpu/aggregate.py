"""Weighted sums of feature rows by the C++ kernels."""

from torch import Tensor

from tempergat.ops.calls import working_dtype
from tempergat.ops.cpu.call import KernelCall
from tempergat.ops.graphs.rows import Rows


def run(
    rows: Rows,
    values: Tensor,
    x: Tensor,
    *,
    in_order: bool = False,
    skip_zeros: bool = False,
) -> Tensor:
    """For each row, the sum over its slots of ``values[position] * x[other]``.

    Args:
        rows: The elements of a sparse matrix by row; ``edge_id`` is not read.
        values: One value per element and head, [elements, H].
        x: The feature rows, [others, H, C].
        in_order: Makes no difference here, nor does ``skip_zeros``.
        skip_zeros: See there.
    """
    kernel = KernelCall(x, rows)
    out = x.new_empty(rows.pointer.size(0) - 1, *x.shape[1:])
    kernel.add_features(out=out)
    kernel.add_dense(weights=values.to(working_dtype(x.dtype)))
    kernel.run("aggregate")
    return out
