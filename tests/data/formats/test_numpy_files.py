"""Published files whose parts do not belong together."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from tempergat.base.errors import UserError
from tempergat.data.readers.npz_graphs import (
    read_heterophilous,
    read_magnn,
)


def csr_parts(rows: int, columns: int, prefix: str = "") -> dict[str, np.ndarray]:
    matrix = scipy.sparse.csr_array(np.eye(rows, columns, dtype=np.float32))
    return {
        f"{prefix}data": matrix.data,
        f"{prefix}indices": matrix.indices,
        f"{prefix}indptr": matrix.indptr,
        f"{prefix}shape": np.array(matrix.shape),
    }


@pytest.mark.parametrize(("rows", "splits"), [(3, 10), (4, 9)])
def test_tolokers_arrays_of_different_lengths_are_named(
    rows: int, splits: int, tmp_path: Path
) -> None:
    path = tmp_path / "tolokers.npz"
    np.savez(
        path,
        node_features=np.ones((rows, 2)),
        node_labels=np.zeros(4, int),
        edges=np.array([[0, 1]]),
        train_masks=np.ones((10, 4), bool),
        val_masks=np.ones((10, 4), bool),
        test_masks=np.ones((splits, 4), bool),
    )
    with pytest.raises(UserError, match=r"tolokers\.npz: the shape of"):
        read_heterophilous({path.name: path})


def imdb_parts(folder: Path, train: list[int]) -> dict[str, Path]:
    """Files of a graph of two movies; the matrix of edges is that of another one."""
    arrays = {"node_types.npy": np.array([0, 0, 1, 2]), "labels.npy": np.array([0, 1])}
    for name, array in arrays.items():
        np.save(folder / name, array)
    for number, count in enumerate((2, 1, 1)):
        np.savez(folder / f"features_{number}.npz", **csr_parts(count, 3))
    splits = {"train_idx": train, "val_idx": [1], "test_idx": [1]}
    np.savez(folder / "train_val_test_idx.npz", **splits)  # type: ignore[arg-type]
    np.savez(folder / "adjM.npz", **csr_parts(3, 3))
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ([0], r"adjM\.npz: .*\(3, 3\).*needs \(4, 4\)"),
        ([0, 0], r"train_val_test_idx\.npz, row 2 lists node 0 a second time"),
        ([0, 2], r"train_val_test_idx\.npz, row 2 names node 2, but there are 2 nodes"),
    ],
)
def test_imdb_files_that_do_not_fit_are_named(
    train: list[int], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        read_magnn(imdb_parts(tmp_path, train), ("movie", "director", "actor"))
