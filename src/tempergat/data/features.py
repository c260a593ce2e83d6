"""Feature matrices, dense and sparse."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from tempergat.base import UserError, require_memory

# Below this share of non-zeros, `sparse="auto"` keeps a matrix sparse.
SPARSE_DENSITY = 0.10


def csr_tensor(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, columns: int
) -> Tensor:
    """A float32 CSR tensor from the three arrays of a compressed matrix."""
    with without_beta_warning():
        return torch.sparse_csr_tensor(
            _contiguous(indptr, np.int64),
            _contiguous(indices, np.int64),
            _contiguous(values, np.float32),
            size=(len(indptr) - 1, columns),
            check_invariants=True,
        )


def as_tensor(array: np.ndarray | scipy.sparse.csr_array) -> Tensor:
    """An array as a tensor that shares its memory, or a sparse matrix as CSR."""
    if isinstance(array, np.ndarray):
        return torch.from_numpy(array)
    array.sum_duplicates()
    return csr_tensor(array.indptr, array.indices, array.data, array.shape[1])


def _contiguous(array: np.ndarray, dtype: type[np.generic]) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array, dtype=dtype))
    # torch refuses the strides that some versions of NumPy give to empty arrays.
    return tensor if tensor.numel() else torch.empty(tensor.shape, dtype=tensor.dtype)


def to_scipy(x: Tensor) -> scipy.sparse.csr_array:
    """A CSR tensor as a SciPy matrix, which can be indexed."""
    arrays = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_array(arrays, shape=(x.shape[0], x.shape[1]))


def density(x: Tensor) -> float:
    """Share of the entries that are not zero."""
    if x.numel() == 0:
        return 1.0
    stored = x.values() if x.layout == torch.sparse_csr else x
    return int(torch.count_nonzero(stored)) / x.numel()


def as_layout(x: Tensor, sparse: str | bool) -> Tensor:
    """Brings features into the layout asked for.

    Args:
        x: Dense or CSR features.
        sparse: True, False, or `"auto"`: sparse below a density of 10 %.

    Raises:
        UserError: The dense matrix does not fit in memory, or `sparse` is unknown.
    """
    if sparse not in ("auto", True, False):
        raise UserError(f'sparse is {sparse!r}; choose "auto", True or False')
    is_sparse = x.layout == torch.sparse_csr
    wanted = density(x) < SPARSE_DENSITY if sparse == "auto" else bool(sparse)
    if wanted == is_sparse:
        return x
    if wanted:
        matrix = scipy.sparse.csr_array(x.numpy())
        return csr_tensor(matrix.indptr, matrix.indices, matrix.data, x.shape[1])
    return to_dense(x)


def to_dense(x: Tensor) -> Tensor:
    """Dense features.

    Raises:
        UserError: They do not fit in memory.
    """
    if x.layout == torch.strided:
        return x
    require_memory(
        x.numel() * x.element_size(),
        f"a dense {x.shape[0]} x {x.shape[1]} feature matrix",
        "keep the features sparse or use a machine with more memory",
    )
    with without_beta_warning():
        return x.to_dense()


def normalize_rows(x: Tensor) -> Tensor:
    """Divides every row by its sum, leaving rows that sum to zero alone.

    Args:
        x: Dense or CSR features.

    Returns:
        A new matrix in the same layout.
    """
    if x.layout == torch.sparse_csr:
        rows = torch.repeat_interleave(
            torch.arange(x.shape[0]), x.crow_indices().diff()
        )
        sums = torch.zeros(x.shape[0], dtype=x.dtype).index_add_(0, rows, x.values())
        values = x.values() / _without_zeros(sums)[rows]
        with without_beta_warning():
            return torch.sparse_csr_tensor(
                x.crow_indices(),
                x.col_indices(),
                values,
                size=x.shape,
                check_invariants=False,
            )
    return x / _without_zeros(x.sum(dim=1, keepdim=True))


def column_blocks(x: Tensor) -> Iterator[np.ndarray]:
    """Some dense columns of a matrix at a time."""
    width = max(1, 2**22 // max(len(x), 1))
    matrix = to_scipy(x).tocsc() if x.layout == torch.sparse_csr else None
    for start in range(0, x.shape[1], width):
        columns = slice(start, start + width)
        if matrix is None:
            yield x[:, columns].numpy()
        else:
            yield matrix[:, columns].toarray()


def column_kinds(block: np.ndarray) -> list[str]:
    """What each column holds: `number`, `0-1`, or `constant` where all are equal."""
    binary = ((block == 0) | (block == 1)).all(axis=0)
    kinds = np.where(binary, "0-1", "number")
    kinds = np.where((block == block[:1]).all(axis=0), "constant", kinds)
    return list(kinds.tolist())


def _without_zeros(sums: Tensor) -> Tensor:
    return torch.where(sums == 0, torch.ones_like(sums), sums)


@contextmanager
def without_beta_warning() -> Iterator[None]:
    """Silences what torch says once per process about sparse matrices.

    CSR is in beta, and torch 2.11 advises to choose whether matrices are checked, even
    where that was chosen.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        warnings.filterwarnings("ignore", message="Sparse invariant checks")
        yield
