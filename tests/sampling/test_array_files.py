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


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="needs Linux")
@pytest.mark.parametrize(("nodes", "row_by_row"), [(10**9, True), (10**4, False)])
def test_what_lies_around_a_row_is_not_read_of_a_file_larger_than_memory(
    tmp_path: Path, nodes: int, row_by_row: bool
) -> None:
    path = tmp_path / "x.npy"
    write_sparse(path, "<f4", (nodes, 250))
    features = NodeFeatures.open(path)
    # Copying all of it to a GPU is faster with what lies around.
    assert "rr" not in flags_of_mapping(path)
    features.rows(torch.tensor([5, nodes - 1]))
    assert ("rr" in flags_of_mapping(path)) == row_by_row


def flags_of_mapping(path: Path) -> list[str]:
    """What the system was told about the memory that a file is mapped to."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    assert any(line.endswith(f" {path}") for line in lines)
    return next(line.split() for line in lines if line.startswith("VmFlags:"))


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
