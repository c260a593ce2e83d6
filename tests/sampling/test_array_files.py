"""Arrays in files that are mapped into memory."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from tempergat import UserError
from tempergat.sampling import NodeFeatures, open_array
from tests.sampling.sparse_files import write_sparse


def test_features_larger_than_memory_open_in_under_a_second(tmp_path: Path) -> None:
    write_sparse(tmp_path / "x.npy", "<f4", (10**9, 250), last=7)
    begin = time.perf_counter()
    features = NodeFeatures.open(tmp_path / "x.npy")
    rows = features.rows(torch.tensor([5, 10**9 - 1]))
    assert time.perf_counter() - begin < 1
    assert rows.sum(dim=1).tolist() == [0, 7]


def test_an_array_is_mapped_as_it_was_written(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float16).reshape(4, 3)
    np.save(tmp_path / "x.npy", values)
    assert torch.equal(open_array(tmp_path / "x.npy"), torch.from_numpy(values))


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with pytest.raises(UserError, match="No such file"):
        open_array(path)
    np.save(path, np.zeros((100, 3)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="bytes are fewer than its header says"):
        open_array(path)
    path.write_bytes(b"these are no numbers")
    with pytest.raises(UserError, match="file of numbers"):
        open_array(path)
    np.save(path, np.array([{}]), allow_pickle=True)
    with pytest.raises(UserError, match="file of numbers"):
        open_array(path)
    np.save(path, np.array(["a", "b"]))
    with pytest.raises(UserError, match="an array of <U1 with shape"):
        open_array(path)
