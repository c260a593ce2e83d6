"""Graphs in .npz files: three layouts, and what is refused before it is unpacked."""

import io
import re
import resource
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from tempergat.base.errors import UserError
from tempergat.data import Dataset, ReadOptions, reading_line
from tempergat.data.user.open_graph import open_user_graph

# A ring of four nodes, both ways.
RING = np.array([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def load(
    path: Path, options: ReadOptions | None = None, labelled: bool = True
) -> Dataset:
    return open_user_graph(path, options=options, labelled=labelled).choose()


def plain(**changes: Any) -> dict[str, Any]:
    """The arrays of a ring under PyG's names."""
    arrays: dict[str, Any] = {
        "edge_index": RING,
        "x": np.eye(4, 3, dtype=np.float32),
        "y": np.array([0, 1, 0, 1]),
    }
    return arrays | changes


def node_edges(**changes: Any) -> dict[str, Any]:
    """The same ring, each edge once, with two splits."""
    train = np.array([[1, 0, 0, 1], [0, 1, 1, 0]], dtype=bool)
    arrays: dict[str, Any] = {
        "node_features": np.eye(4, 3, dtype=np.float32),
        "node_labels": np.array([0, 1, 0, 1]),
        "edges": RING[:, :4].T,
        "train_masks": train,
        "val_masks": ~train & np.array([1, 1, 0, 0], dtype=bool),
        "test_masks": ~train & np.array([0, 0, 1, 1], dtype=bool),
    }
    return arrays | changes


def in_parts(name: str, matrix: scipy.sparse.csr_array) -> dict[str, Any]:
    parts = ("data", "indices", "indptr", "shape")
    return {f"{name}_{part}": getattr(matrix, part) for part in parts}


def matrices(**changes: Any) -> dict[str, Any]:
    """The same ring as sparse matrices."""
    values = np.ones(RING.shape[1], dtype=np.float32)
    adjacency = scipy.sparse.csr_array((values, (RING[0], RING[1])), shape=(4, 4))
    features = scipy.sparse.csr_array(np.eye(4, 3, dtype=np.float32))
    labels = {"labels": np.array([0, 1, 0, 1])}
    return in_parts("adj", adjacency) | in_parts("attr", features) | labels | changes


def save(arrays: dict[str, Any], folder: Path) -> Path:
    np.savez(folder / "g.npz", **arrays)
    return folder / "g.npz"


@pytest.fixture
def ring_edges(tmp_path: Path) -> list[list[int]]:
    edges: list[list[int]] = load(save(plain(), tmp_path)).data.edge_index.tolist()
    return edges


UNDIRECTED = ReadOptions(directed=False)


@pytest.mark.parametrize(
    "arrays",
    [
        node_edges(),
        node_edges(edges=RING.T),
        matrices(),
        matrices(attr_matrix=np.eye(4, 3)),
    ],
    ids=["each edge once", "both ways", "sparse features", "dense features"],
)
def test_published_layout_gives_the_same_graph(
    arrays: dict[str, Any], ring_edges: list[list[int]], tmp_path: Path
) -> None:
    data = load(save(arrays, tmp_path), UNDIRECTED).data
    assert data.edge_index.tolist() == ring_edges
    assert data.x.to_dense().tolist() == np.eye(4, 3).tolist()
    assert data.y.tolist() == [0, 1, 0, 1]


def test_rows_of_masks_are_numbered_splits(tmp_path: Path) -> None:
    opened = open_user_graph(save(node_edges(), tmp_path), options=UNDIRECTED)
    assert len(opened.splits) == 2
    assert opened.choose(1).data.train_mask.tolist() == [False, True, True, False]


def test_sparse_features_are_not_made_dense(tmp_path: Path) -> None:
    data = load(save(matrices(), tmp_path)).data
    assert data.x.layout == torch.sparse_csr


def test_graph_for_prediction_needs_no_labels(tmp_path: Path) -> None:
    for arrays in (plain(), node_edges(), matrices()):
        without = {
            name: array
            for name, array in arrays.items()
            if name not in ("y", "node_labels", "labels")
        }
        path = save(without, tmp_path)
        assert load(path, UNDIRECTED, labelled=False).data.y.tolist() == [-1] * 4
        with pytest.raises(UserError, match=r"no array (y|node_labels|labels), only"):
            load(path)


def test_other_arrays_of_a_published_layout_are_said_to_be_not_read(
    tmp_path: Path,
) -> None:
    objects = np.array([{"a": 1}, None], dtype=object)
    for arrays in (node_edges(year=np.arange(4)), matrices(idx_to_class=objects)):
        line = reading_line(load(save(arrays, tmp_path), UNDIRECTED))
        assert re.search("; not read (year|idx_to_class)$", line)


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        (plain(edge_atr=np.ones(8)), "array edge_atr.* did you mean edge_attr"),
        (plain(y=np.array(["a"] * 4)), "y has type <U1"),
        (plain(y=np.array([0.5, 1, 0, 1])), "fractions"),
        (node_edges(edges=RING), r"edges has shape \(2, 8\)"),
        (node_edges(node_labels=np.array(["a"] * 4)), "node_labels has type"),
        (node_edges(edges=np.array([[0, 9]])), "is 9, but there are 4 nodes"),
        (node_edges(train_masks=np.ones((2, 3), bool)), "train_mask is"),
        (matrices(adj_shape=np.array([4])), r"adj_shape is \[4\]"),
        (matrices(adj_shape=np.array([4, 5])), r"adj_shape is \(4, 5\)"),
        (matrices(adj_shape=np.array([4.0, 4.0])), "adj_shape has type float64"),
        (matrices(adj_indices=np.full(8, 7)), "not a sparse matrix"),
        (matrices(adj_indptr=np.arange(3)), "not a sparse matrix"),
        (matrices(adj_data=np.array(["1"] * 8)), "adj_data has type"),
        (matrices(labels=np.zeros(3, int)), "labels has 3 rows, .* 4 nodes"),
        (matrices(attr_matrix=np.ones((5, 2))), "attr has 5 rows, .* 4 nodes"),
        (matrices(labels=np.zeros((4, 2), int)), "one class per node"),
        ({"adj_indptr": np.arange(3)}, "no array adj_data"),
        ({"nodes": np.arange(3)}, "no array edge_index, only nodes; .*adj_indices"),
    ],
)
def test_mistake_in_an_npz_is_one_line(
    arrays: dict[str, Any], named: str, tmp_path: Path
) -> None:
    path = save(arrays, tmp_path)
    with pytest.raises(UserError, match=named) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_number_too_large_for_an_id_is_named_as_it_is(tmp_path: Path) -> None:
    ends = RING.astype(np.uint64)
    ends[0, 0] = 2**64 - 1
    with pytest.raises(UserError, match="edge_index holds 18446744073709551615"):
        load(save(plain(edge_index=ends), tmp_path))


def test_unknown_array_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """Twenty times the memory that reading the rest takes, in a few kilobytes."""
    huge = np.broadcast_to(np.zeros(1), (1 << 26,))
    np.savez_compressed(tmp_path / "g.npz", **plain(huge=huge))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match="an array huge"):
        load(tmp_path / "g.npz")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    # Half a gigabyte, had it been unpacked. The unit is a kilobyte.
    assert grown < 100_000


def test_pickled_objects_are_refused_with_the_lines_that_convert_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = matrices()
    shape = tuple(parts["adj_shape"])
    adjacency = scipy.sparse.csr_matrix(
        (parts["adj_data"], parts["adj_indices"], parts["adj_indptr"]), shape=shape
    )
    features = scipy.sparse.csr_matrix(np.eye(4, 3))
    labels = np.array([0, 1, 0, 1], dtype=object)
    arrays = {
        "adj_matrix": np.array(adjacency, dtype=object),
        "attr_matrix": np.array(features, dtype=object),
        "labels": labels,
    }
    path = save(arrays, tmp_path)
    with pytest.raises(UserError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    first, second = re.findall("`([^`]*)`", message)
    monkeypatch.chdir(tmp_path)
    exec(f"{first}\n{second}", {})
    converted = load(tmp_path / "g_plain.npz").data
    assert converted.x.to_dense().tolist() == np.eye(4, 3).tolist()
    assert converted.y.tolist() == [0, 1, 0, 1]


def test_hostile_header_is_refused_without_advice_to_run_it(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, RING)
    for spoilt in (
        stream.getvalue().replace(b"(2, 8)", b"f(2,8)"),
        b"\x93NUMPY\x02\x00" + (1 << 16).to_bytes(4, "little") + b" " * (1 << 16),
    ):
        with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
            archive.writestr("edge_index.npy", spoilt)
            archive.writestr("y.npy", stream.getvalue())
        with pytest.raises(UserError, match="not a readable") as caught:
            load(tmp_path / "g.npz")
        assert "allow_pickle" not in str(caught.value)


@pytest.mark.parametrize(
    "arrays",
    [
        plain(edge_weight=np.arange(8.0), edge_attr=np.ones((8, 2))),
        node_edges(edge_weight=np.arange(4.0), edge_attr=np.ones((4, 2))),
    ],
    ids=["PyG's names", "published"],
)
def test_arrays_of_edges_are_used_when_asked_for(
    arrays: dict[str, Any], tmp_path: Path
) -> None:
    path = save(arrays, tmp_path)
    directed = ReadOptions(directed=True)
    unused = load(path, directed)
    assert "edge_weight" not in unused.data
    assert "not used" in " ".join(unused.notes)
    used = load(
        path,
        ReadOptions(
            directed=True, edge_weight="edge_weight", edge_features=("edge_attr",)
        ),
    )
    assert used.edge_feature_names == ("edge_attr[0]", "edge_attr[1]")
    expected = {
        tuple(ends): weight
        for ends, weight in zip(
            RING.T.tolist(), arrays["edge_weight"].tolist(), strict=False
        )
    }
    for ends, weight in zip(
        used.data.edge_index.T.tolist(), used.data.edge_weight.tolist(), strict=True
    ):
        assert expected[tuple(ends)] == weight
    assert used.fingerprint != unused.fingerprint


def test_array_of_edges_must_fit_the_edges(tmp_path: Path) -> None:
    path = save(plain(edge_weight=np.ones(7)), tmp_path)
    with pytest.raises(UserError, match=r"edge_weight has shape \(7,\), .* 8 edges"):
        load(path, ReadOptions(edge_weight="edge_weight"))


def test_values_of_an_adjacency_matrix_are_weights(tmp_path: Path) -> None:
    path = save(matrices(adj_data=np.arange(1.0, 9.0)), tmp_path)
    assert "adj_data is not used" in " ".join(load(path).notes)
    used = load(path, ReadOptions(edge_weight="adj_data")).data
    assert used.edge_weight.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    ones = load(save(matrices(), tmp_path))
    assert ones.notes == ()


def test_an_edge_index_that_counts_from_one_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="count nodes from 1: subtract 1"):
        load(save(plain(edge_index=RING + 1), tmp_path))
    beyond = RING + (RING == 3)
    with pytest.raises(UserError, match="add the node or drop the edge"):
        load(save(plain(edge_index=beyond), tmp_path))


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_labels_of_minus_one_are_named_in_a_note(tmp_path: Path, kind: type) -> None:
    labels = np.array([0, 1, -1, -1], dtype=kind)
    notes = load(save(plain(y=labels), tmp_path)).notes
    assert any("2 nodes have the label -1 and count as unl" in note for note in notes)
    assert not any("label -1" in note for note in load(save(plain(), tmp_path)).notes)
