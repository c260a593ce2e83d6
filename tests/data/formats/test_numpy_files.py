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


def test_imdb_matrix_of_another_graph_is_named(tmp_path: Path) -> None:
    arrays = {"node_types.npy": np.array([0, 0, 1, 2]), "labels.npy": np.array([0, 1])}
    for name, array in arrays.items():
        np.save(tmp_path / name, array)
    for number, count in enumerate((2, 1, 1)):
        np.savez(tmp_path / f"features_{number}.npz", **csr_parts(count, 3))
    parts = {f"{part}_idx": np.array([0]) for part in ("train", "val", "test")}
    np.savez(tmp_path / "train_val_test_idx.npz", **parts)
    np.savez(tmp_path / "adjM.npz", **csr_parts(3, 3))
    paths = {path.name: path for path in tmp_path.iterdir()}
    with pytest.raises(UserError, match=r"adjM\.npz: .*\(3, 3\).*needs \(4, 4\)"):
        read_magnn(paths, ("movie", "director", "actor"))
