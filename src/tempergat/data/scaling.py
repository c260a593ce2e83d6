"""Columns of numbers are centred and divided by their deviation, for training."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.data.dataset import tensors
from tempergat.data.features import column_blocks, column_kinds, to_dense

# Features as given get a note where their columns differ more in scale.
_MOST_TIMES = 100.0
# A column whose mean is farther away, in deviations, may have another unit.
_FAR = 5.0
_ROWS_AT_ONCE = 1 << 14


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
        pairs = enumerate(zip(self.mean, self.deviation, strict=True))
        return [at for at, pair in pairs if pair != (0.0, 1.0)]

    def on(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """The scaling of rows that are on a device; the result is dense."""
        mean = torch.tensor(self.mean, dtype=torch.float32, device=device)
        deviation = torch.tensor(self.deviation, dtype=torch.float32, device=device)
        return partial(_scaled, mean=mean, deviation=deviation)

    def far_columns(self, x: Tensor) -> list[tuple[int, float]]:
        """Columns whose mean in `x` is more than 5 deviations away, with that mean."""
        if not len(x):
            return []
        means = _column_sums(x, lambda values: values) / len(x)
        return [
            (at, float(means[at]))
            for at in self.columns
            if abs(means[at] - self.mean[at]) > _FAR * self.deviation[at]
        ]


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
        name: _column_scale(tensor)
        for name, tensor in tensors(data)
        if name.endswith((".x", ".edge_attr"))
    }
    return {name: scale for name, scale in scales.items() if scale.columns}


def _column_scale(x: Tensor) -> ColumnScale:
    means: list[float] = []
    if not len(x):
        return ColumnScale((), ())
    deviations: list[float] = []
    for block in column_blocks(x):
        values = block.astype(np.float64)
        is_number = np.array(column_kinds(block)) == "number"
        means += np.where(is_number, values.mean(axis=0), 0.0).tolist()
        deviations += np.where(is_number, values.std(axis=0), 1.0).tolist()
    return ColumnScale(tuple(means), tuple(deviations))


def note_on_scales(source: str, data: Data | HeteroData) -> tuple[str, ...]:
    """A note where columns of features that are used as given differ much in scale.

    Args:
        source: Where the graph came from.
        data: The graph.
    """
    found = [_scale_ratio(store.x) for store in data.node_stores if "x" in store]
    times = max(found, default=1.0)
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
