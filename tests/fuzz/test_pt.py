"""A .pt with any content is read, or refused in one short line."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset

from tests.data.layouts.test_pt import ring
from tests.fuzz.harness import check_and_read, fuzz
from tests.fuzz.mutations import VALUES, mutated_bytes, pick

NAMES = (
    "x", "y", "edge_index", "edge_attr", "edge_weight", "train_mask", "val_mask",
    "num_nodes", "neg_edge_index", "edge_label_index", "face", "batch", "pos",
    "edge_name", "node_names",
)  # fmt: skip
DTYPES = (
    torch.bool, torch.uint8, torch.int16, torch.int64, torch.uint16, torch.uint64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
)  # fmt: skip


def random_value(rng: np.random.Generator, data: Data) -> Any:
    """A tensor, an array or a list that may fit the graph, or anything else."""
    sizes = [0, 1, 2, 3, 6, 12]
    if isinstance(data.edge_index, torch.Tensor) and data.edge_index.dim() == 2:
        sizes.append(data.edge_index.shape[1])
    shape = tuple(int(rng.choice(sizes)) for _ in range(int(rng.integers(4))))
    values = rng.integers(-1, 7, size=shape).astype(float)
    values[rng.random(shape) < 0.03] = rng.choice([np.nan, np.inf, 0.5, 1e30])
    match int(rng.integers(6)):
        case 0:
            return pick(rng, VALUES)
        case 1:
            with np.errstate(all="ignore"):
                return values.astype(rng.choice(["f4", "i8", ">f8", "U3", "O"]))
        case 2:
            return values.tolist()
        case 3 if values.ndim == 2:
            return torch.from_numpy(values).to_sparse_csr()
        case 4 if values.ndim == 2:
            return torch.from_numpy(values).to_sparse()
    return torch.tensor(np.nan_to_num(values)).to(pick(rng, DTYPES))


def random_graph(rng: np.random.Generator) -> Any:
    """A graph with random attributes, in one of the forms that people save."""
    data = ring()
    for _ in range(int(rng.integers(1, 4))):
        data[pick(rng, NAMES)] = random_value(rng, data)
    match int(rng.integers(8)):
        case 0:
            return (data.to_dict(), None, Data)
        case 1:
            return (data, None)
        case 2:
            return Batch.from_data_list([ring(), ring(4)])
        case 3:
            typed = HeteroData()
            typed["a"].x, typed["a"].y = data.get("x"), data.get("y")
            typed["a", "to", "a"].edge_index = data.get("edge_index")
            typed["b"].num_nodes = data.get("num_nodes", 2)
            return typed
        case 4:
            return (ring().to_dict(), random_value(rng, data), random_value(rng, data))
    return data


def saved(value: Any, rng: np.random.Generator) -> bytes:
    stream = io.BytesIO()
    is_zip = bool(rng.integers(4))
    torch.save(value, stream, _use_new_zipfile_serialization=is_zip)
    return stream.getvalue()


def patched_pickle(content: bytes, rng: np.random.Generator) -> bytes:
    """The archive with a few bytes of its pickle changed, and valid otherwise."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(stream, "w") as new,
    ):
        for name in old.namelist():
            member = old.read(name)
            if name.endswith("data.pkl"):
                member = mutated_bytes(member, rng, most=2)
            new.writestr(name, member)
    return stream.getvalue()


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_a_pt_is_read_or_refused_in_one_line(tmp_path: Path, count: int) -> None:
    path = tmp_path / "g.pt"
    array = ring()
    array.x = array.x.numpy()
    torch.save(array, path)
    sound = [path.read_bytes()]
    torch.save(Batch.from_data_list([ring(), ring(4)]), path)
    sound.append(path.read_bytes())
    InMemoryDataset.save([ring(), ring(4)], str(path))
    sound.append(path.read_bytes())

    def attempt(rng: np.random.Generator) -> bool:
        original = pick(rng, sound)
        match int(rng.integers(4)):
            case 0:
                content = mutated_bytes(original, rng, most=1)
            case 1:
                content = patched_pickle(original, rng)
            case _:
                try:
                    content = saved(random_graph(rng), rng)
                except (pickle.PicklingError, RuntimeError):
                    # torch itself does not save every tensor.
                    content = b""
        path.write_bytes(content)
        return check_and_read(path, rng, edge_features=("edge_attr",), directed=False)

    fuzz(count, attempt, more_than=count // 20)
