"""Saved PyG objects: what is read besides a plain `Data`, and what is refused."""

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.transforms import RandomLinkSplit

from tempergat.base.errors import UserError
from tempergat.data import Dataset, ReadOptions
from tempergat.data.layouts.pt_classes import SavedArray, SavedDtype
from tempergat.data.splits import make_split
from tempergat.data.user.open_graph import open_user_graph


def ring(nodes: int = 6) -> Data:
    """A ring with the edges of both directions, in no order."""
    there = torch.arange(nodes)
    ends = torch.stack([there, (there + 1) % nodes])
    return Data(
        x=torch.arange(2.0 * nodes).reshape(nodes, 2),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1).flip(1),
        y=there % 2,
    )


def save(data: object, folder: Path) -> Path:
    torch.save(data, folder / "g.pt")
    return folder / "g.pt"


def load(path: Path, options: ReadOptions | None = None) -> Dataset:
    return open_user_graph(path, options=options).choose()


@pytest.mark.parametrize("name", ["neg_edge_index", "edge_label_index", "face"])
def test_second_index_of_as_many_columns_is_left_alone(
    name: str, tmp_path: Path
) -> None:
    data = ring()
    data[name] = data.edge_index.flip(1)
    loaded = load(save(data, tmp_path)).data
    assert torch.equal(loaded[name], data.edge_index.flip(1))
    assert torch.equal(loaded.edge_index, load(save(ring(), tmp_path)).data.edge_index)
    undirected = load(save(data, tmp_path), ReadOptions(directed=False)).data
    assert torch.equal(undirected.edge_index, loaded.edge_index)


def test_what_a_link_split_leaves_is_read(tmp_path: Path) -> None:
    torch.manual_seed(0)
    for part in RandomLinkSplit(is_undirected=True)(ring(12)):
        assert load(save(part, tmp_path)).data.num_nodes == 12


def test_saved_dataset_of_one_graph_is_read(tmp_path: Path) -> None:
    expected = load(save(ring(), tmp_path)).fingerprint
    InMemoryDataset.save([ring()], str(tmp_path / "data.pt"))
    assert load(tmp_path / "data.pt").fingerprint == expected
    # As PyG saved it before it kept the class.
    assert load(save((ring(), None), tmp_path)).fingerprint == expected


def test_saved_typed_dataset_is_read(tmp_path: Path) -> None:
    data = HeteroData()
    data["paper"].x = torch.randn(3, 2)
    data["paper"].y = torch.tensor([0, 1, 1])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 2]])
    InMemoryDataset.save([data], str(tmp_path / "data.pt"))
    assert load(tmp_path / "data.pt").target == "paper"


def test_several_graphs_are_refused_with_what_to_save(tmp_path: Path) -> None:
    InMemoryDataset.save([ring(), ring(8)], str(tmp_path / "data.pt"))
    for path in (tmp_path / "data.pt", save([ring(), ring(8)], tmp_path)):
        with pytest.raises(UserError, match=r"not a single graph; .*dataset\[0\]"):
            load(path)


def test_batch_is_read_as_one_graph_and_says_so(tmp_path: Path) -> None:
    batch = Batch.from_data_list([ring(), ring(8)])
    dataset = load(save(batch, tmp_path))
    assert dataset.data.num_nodes == 14
    assert dataset.data.num_edges == 28
    assert "Batch of 2 graphs" in " ".join(dataset.notes)


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", "|u1"])
def test_numpy_arrays_in_a_data_are_read(dtype: str, tmp_path: Path) -> None:
    data = ring()
    plain = load(save(data, tmp_path)).fingerprint
    data.x = np.asfortranarray(data.x.numpy().astype(dtype))
    data.edge_index = data.edge_index.numpy()
    data.y = data.y.numpy().astype(np.int32)
    assert load(save(data, tmp_path)).fingerprint == plain


@pytest.mark.parametrize(
    "array",
    [np.array([None] * 6), np.array(["a"] * 6), np.zeros(6, dtype="c8")],
    ids=["objects", "words", "complex"],
)
def test_numpy_array_without_numbers_is_one_line(
    array: np.ndarray, tmp_path: Path
) -> None:
    data = ring()
    data.y = array
    with pytest.raises(UserError, match=r"numbers|running code"):
        load(save(data, tmp_path))


@pytest.mark.parametrize(
    ("code", "shape", "named"),
    [
        ("i8", (7,), r"shape \(7,\) in 48 bytes"),
        ("O", (6,), "type O holds no numbers"),
        ("V8", (6,), "type V8 holds no numbers"),
        ("i8", None, "y is .*save it as a tensor"),
        (None, (6,), "y is .*save it as a tensor"),
    ],
)
def test_forged_numpy_array_is_one_line(code: Any, shape: Any, named: str) -> None:
    forged = SavedArray()
    forged.__setstate__((1, shape, SavedDtype(code), False, bytes(48)))
    data = ring()
    data.y = forged
    with pytest.raises(UserError, match=named):
        open_user_graph(data)


def test_nothing_but_the_error_is_said_about_other_archives(tmp_path: Path) -> None:
    script = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), script)
    (tmp_path / "script.pt").write_bytes(script.getvalue())
    torch.save(ring(), tmp_path / "new.pt", pickle_protocol=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("script.pt", "new.pt"):
            with pytest.raises(UserError, match="running code"):
                load(tmp_path / name)


def test_number_too_large_for_an_id_is_named_as_it_is(tmp_path: Path) -> None:
    data = ring()
    data.edge_index = torch.full((2, 3), 2**64 - 1, dtype=torch.uint64)
    with pytest.raises(UserError, match="edge_index holds 18446744073709551615"):
        load(save(data, tmp_path))


def with_edge_columns() -> Data:
    data = ring()
    data.edge_attr = torch.arange(24.0).reshape(12, 2)
    data.edge_weight = torch.arange(12.0)
    return data


def test_edge_attributes_are_used_when_asked_for(tmp_path: Path) -> None:
    data = with_edge_columns()
    path = save(data, tmp_path)
    options = ReadOptions(edge_features=("edge_attr",), edge_weight="edge_weight")
    dataset = load(path, options)
    assert dataset.edge_feature_names == ("edge_attr[0]", "edge_attr[1]")
    assert dataset.edge_weight_name == "edge_weight"
    assert not any("not used" in note for note in dataset.notes)
    of_edge = {
        tuple(ends): row
        for ends, row in zip(
            data.edge_index.T.tolist(), data.edge_attr.tolist(), strict=True
        )
    }
    for ends, row in zip(
        dataset.data.edge_index.T.tolist(), dataset.data.edge_attr.tolist(), strict=True
    ):
        assert of_edge[tuple(ends)] == row
    kinds = [None, ReadOptions(edge_weight="edge_weight"), options]
    prints = {load(path, kind).fingerprint for kind in kinds}
    assert len(prints) == 3


def test_unused_edge_attributes_stay_part_of_the_fingerprint(tmp_path: Path) -> None:
    data = ring()
    data.x = torch.ones(6, 2)
    data.edge_attr = torch.ones(12, 1)
    # The fingerprint of stored runs.
    for name, mask in make_split(data.y.numpy(), "60/20/20", 0).items():
        data[name] = torch.from_numpy(mask)
    expected = "57b17d96b21154a5a368576ebc0905b9c0e7948943779e19919e7b0c37a7da14"
    assert load(save(data, tmp_path)).fingerprint == expected


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (ReadOptions(edge_features=("edge_atr",)), "did you mean edge_attr"),
        (ReadOptions(edge_weight="edge_attr"), "2 values per edge"),
        (ReadOptions(edge_weight="edge_weight"), "edge_weight of edge 0 is -1"),
        (ReadOptions(edge_features=("edge_time",)), "edge 1 is nan"),
    ],
)
def test_wrong_edge_attribute_is_one_line(
    options: ReadOptions, named: str, tmp_path: Path
) -> None:
    data = with_edge_columns()
    data.edge_weight -= 1
    data.edge_time = torch.tensor([0.0] + [torch.nan] * 11)
    with pytest.raises(UserError, match=named):
        load(save(data, tmp_path), options)
