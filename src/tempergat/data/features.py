"""Feature matrices, dense and sparse, and how their columns are scaled.

Columns of numbers are centred and divided by their deviation, for training.
"""

import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, require_memory
from tempergat.data.dataset import tensors

# Below this share of non-zeros, `sparse="auto"` keeps a matrix sparse.
SPARSE_DENSITY = 0.10
# Features as given get a note where their columns differ more in scale.
_MOST_TIMES = 100.0
# A column whose mean is farther away, in deviations, may have another unit. So may one
# whose deviation is so many times another one, more than incomes of few people differ.
_FAR = 5.0
_WIDER = 8.0
_FEW_ROWS = 10
_ROWS_AT_ONCE = 1 << 14
# Numbers that lie within fewer steps of float32 lose much of what they say.
_FEWEST_STEPS = 1000


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
        return as_tensor(scipy.sparse.csr_array(x.numpy()))
    return to_dense(x)


def set_layout(data: Data | HeteroData, sparse: str | bool) -> None:
    """Brings the features of a graph into a layout, in place; see `as_layout`.

    Hashes are computed before, so that the layout does not change the fingerprint.
    """
    for store in data.node_stores:
        if isinstance(store.get("x"), Tensor):
            store.x = as_layout(store.x, sparse)


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


COLUMN_KINDS = ("number", "0-1", "constant")


def column_kinds(block: np.ndarray) -> list[str]:
    """What each column holds, of `COLUMN_KINDS`; all of a constant are equal."""
    binary = ((block == 0) | (block == 1)).all(axis=0)
    kinds = np.where(binary, "0-1", "number")
    kinds = np.where((block == block[:1]).all(axis=0), "constant", kinds)
    return list(kinds.tolist())


def is_lost_in_float32(wide: np.ndarray, narrow: np.ndarray) -> bool:
    """Whether numbers that differ become one number, or nearly so, in float32.

    Such are times in seconds, which are large beside their differences.

    Args:
        wide: Numbers of one column, in a wider type.
        narrow: The same in float32.
    """
    finite = wide[np.isfinite(wide)]
    if not len(finite):
        return False
    low, high = finite.min(), finite.max()
    step = float(np.spacing(np.float32(max(abs(low), abs(high)))))
    if low == high or high - low > _FEWEST_STEPS * step:
        return False
    return len(np.unique(finite)) > len(np.unique(narrow[np.isfinite(narrow)]))


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


@dataclass(frozen=True)
class ColumnScale:
    """How the columns of a matrix are scaled.

    Attributes:
        mean: What is subtracted from each column; 0 from one that stays as it is.
        deviation: What each is then divided by; 1 for one that stays as it is.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @property
    def columns(self) -> list[int]:
        """The columns that are scaled."""
        return [at for at, pair in enumerate(self._pairs) if pair != (0.0, 1.0)]

    @property
    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.mean, self.deviation, strict=True))

    def on(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """The scaling of rows that are on a device; the result is dense."""
        mean = torch.tensor(self.mean, dtype=torch.float32, device=device)
        deviation = torch.tensor(self.deviation, dtype=torch.float32, device=device)
        return partial(_scaled, mean=mean, deviation=deviation)

    def far_columns(self, now: "ColumnScale", rows: int) -> list[int]:
        """Columns whose mean or deviation is another one in another graph.

        Args:
            now: The mean and deviation of every column there.
            rows: From how many rows they are; of few, a deviation may be small.
        """
        return [
            at
            for at, ((mean, deviation), (new_mean, new)) in enumerate(
                zip(self._pairs, now._pairs, strict=True)
            )
            if (mean, deviation) != (0.0, 1.0)
            and not (_is_binary(mean, deviation) and _is_binary(new_mean, new))
            and (
                abs(new_mean - mean) > _FAR * (deviation or abs(mean))
                or (deviation and new > _WIDER * deviation)
                or (rows >= _FEW_ROWS and _WIDER * new < deviation)
            )
        ]


def _is_binary(mean: float, deviation: float) -> bool:
    """Whether numbers from 0 to 1 with this mean and deviation are 0 and 1 alone."""
    return abs(deviation**2 - mean * (1 - mean)) < 1e-6


def _scaled(x: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    return (to_dense(x).float() - mean) / deviation


def scaling_of(data: Data | HeteroData) -> dict[str, ColumnScale]:
    """How the columns of numbers in a graph are scaled, over all nodes and edges.

    Columns of 0 and 1 alone and constant columns stay as they are.

    Args:
        data: The graph.

    Returns:
        By the name of the tensor, as `tensors` gives it, those with such columns.
    """
    scales = {
        name: scale_of(x, ("number",))
        for name, x in tensors(data)
        if name.endswith((".x", ".edge_attr")) and len(x)
    }
    return {name: scale for name, scale in scales.items() if scale.columns}


def scale_of(x: Tensor, kinds: Collection[str] = COLUMN_KINDS) -> ColumnScale:
    """The mean and the deviation of columns of some kinds, 0 and 1 for all others."""
    means: list[float] = []
    deviations: list[float] = []
    for block in column_blocks(x if x.dim() > 1 else x.unsqueeze(1)):
        values = block.astype(np.float64)
        is_taken = np.isin(column_kinds(block), list(kinds))
        means += np.where(is_taken, values.mean(axis=0), 0.0).tolist()
        deviations += np.where(is_taken, values.std(axis=0), 1.0).tolist()
    return ColumnScale(tuple(means), tuple(deviations))


def note_on_scales(source: str, data: Data | HeteroData) -> tuple[str, ...]:
    """A note where columns of features that are used as given differ much in scale.

    Args:
        source: Where the graph came from.
        data: The graph.
    """
    ratios = [_scale_ratio(store.x) for store in data.node_stores if "x" in store]
    times = max(ratios, default=1.0)
    if times <= _MOST_TIMES:
        return ()
    return (
        f"{source}: values of one feature are about {times:,.0f} times as large as "
        "those of another, and only columns of tables are scaled for training; to "
        "scale these, give (x - x.mean(0)) / x.std(0).clip(1e-9) in place of x",
    )


def _scale_ratio(x: Tensor) -> float:
    """How many times larger the values of one column are than those of another.

    Zeros count nowhere, so that rare words are not small, and neither do columns of 0
    and 1.
    """
    if x.layout != torch.sparse_csr:
        # Enough to tell, of features that are mapped from a file.
        x = x[:_ROWS_AT_ONCE]
    squares = _column_sums(x, lambda values: values.double().square())
    others = _column_sums(x, lambda values: (values != 0) & (values != 1))
    stored = _column_sums(x, lambda values: values != 0)
    is_number = others > 0
    sizes = np.sqrt(squares[is_number] / stored[is_number])
    return float(sizes.max() / sizes.min()) if len(sizes) else 1.0


def _column_sums(x: Tensor, of: Callable[[Tensor], Tensor]) -> np.ndarray:
    """The sum of a function of the entries of each column; it is 0 at 0."""
    if x.layout == torch.sparse_csr:
        terms = of(x.values()).double()
        columns = x.col_indices().long()
        return torch.bincount(columns, terms, minlength=x.shape[1]).numpy()
    total = torch.zeros(x.shape[1], dtype=torch.float64)
    for part in torch.split(x, _ROWS_AT_ONCE):
        total += of(part).sum(dim=0, dtype=torch.float64)
    return total.numpy()
