"""Which columns of a graph are scaled for training, and which graphs get a note."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from tempergat.data import MASKS, Dataset, ReadOptions, as_dataset
from tests.support.company_graph import write_companies

NODES = """id,label,year,pages,is_long,city,constant
p0,db,1999,10,0,Rome,7
p1,ml,2003,12.5,1,Oslo,7
p2,db,2011,80,1,Rome,7
p3,ml,2020,31,0,Bern,7
"""


def read(path: Path, **options: object) -> Dataset:
    return as_dataset(path, options=ReadOptions(**options))  # type: ignore[arg-type]


def test_columns_of_numbers_are_scaled_and_all_others_stay(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    edges = "source,target,since,both,weight\np0,p1,5,1,300\np1,p2,9,0,2\n"
    (tmp_path / "edges.csv").write_text(edges)
    graph = read(
        tmp_path,
        one_hot=("city",),
        edge_features=("since", "both"),
        edge_weight="weight",
        directed=True,
    )
    years, pages = [1999, 2003, 2011, 2020], [10, 12.5, 80, 31]
    wanted = {
        "year": (np.mean(years), np.std(years)),
        "pages": (np.mean(pages), np.std(pages)),
        "since of edges": (7, 2),
    }
    assert graph.scaled_columns == {k: pytest.approx(v) for k, v in wanted.items()}
    assert graph.data.x[:, 0].tolist() == years
    unscaled = as_dataset(tmp_path, options=graph.read_options, scale=False)
    assert not unscaled.scaling
    assert unscaled.fingerprint == graph.fingerprint


def test_columns_of_every_node_type_are_scaled(tmp_path: Path) -> None:
    (tmp_path / "nodes_paper.csv").write_text(NODES.replace("city,", "town,"))
    (tmp_path / "nodes_author.csv").write_text("id,papers\na0,3\na1,9\n")
    (tmp_path / "edges_author__paper.csv").write_text("source,target\na0,p0\na1,p1\n")
    graph = read(tmp_path, one_hot=("town",))
    names = {"year of paper", "pages of paper", "papers of author"}
    assert graph.scaled_columns.keys() == names
    assert graph.scaled_columns["papers of author"] == (6, 3)


def test_graphml_has_columns_and_made_features_are_used_as_given(
    tmp_path: Path,
) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("a", "b"), ("b", "c")])
    for name, (size, kind) in {"a": (1, "x"), "b": (2, "y"), "c": (6, "x")}.items():
        graph.nodes[name].update(size=size, label=kind)
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    assert list(read(tmp_path / "g.graphml").scaled_columns) == ["size"]
    folder = tmp_path / "no_features"
    folder.mkdir()
    (folder / "nodes.csv").write_text("id,label\na,x\nb,y\nc,x\n")
    (folder / "edges.csv").write_text("source,target\na,b\nb,c\n")
    assert not read(folder, make_features="degree").scaling


@pytest.mark.parametrize("sparse", [False, True])
def test_arrays_are_used_as_given_with_a_note_on_very_different_scales(
    sparse: bool, tmp_path: Path
) -> None:
    tables = read(write_companies(tmp_path / "companies", n=60)).data
    x = torch.zeros(60, 8)
    x[:, :4] = tables.x
    x[0, 4] = 5.0
    similar = x.clone()
    # One word occurs once and others often; their values are alike.
    similar[:, :3] = x[:, :3] > x[:, :3].median(dim=0).values
    similar[:, :3] *= 500.0
    similar[0, 4] = 500.0
    for features, differs in ((x, True), (similar, False)):
        given = features.to_sparse_csr() if sparse else features
        graph = as_dataset(Data(x=given, edge_index=tables.edge_index, y=tables.y))
        assert not graph.scaling
        notes = [note for note in graph.notes if "times as large" in note]
        assert len(notes) == differs
        assert not differs or "x.mean(0)" in notes[0]


def test_folders_of_arrays_and_published_files_get_the_note_too(
    tmp_path: Path,
) -> None:
    data = read(write_companies(tmp_path / "companies", n=60)).data
    arrays = {name: data[name].numpy() for name in ("x", "y", "edge_index", *MASKS)}
    arrays["x"] = arrays["x"] * np.array([1, 1000, 1, 1], dtype=np.float32)
    folder = tmp_path / "arrays"
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(tmp_path / "g.npz", **arrays)
    ones, ends = np.ones(data.num_edges), tuple(arrays["edge_index"])
    adjacency = scipy.sparse.coo_array((ones, ends), shape=(60, 60))
    features = scipy.sparse.csr_array(arrays["x"])
    parts = {
        f"{prefix}_{part}": getattr(matrix, part)
        for prefix, matrix in (("adj", adjacency.tocsr()), ("attr", features))
        for part in ("data", "indices", "indptr", "shape")
    }
    np.savez(tmp_path / "published.npz", **parts, labels=arrays["y"])
    for path in (folder, tmp_path / "g.npz", tmp_path / "published.npz"):
        graph = as_dataset(path)
        assert not graph.scaling
        assert any("times as large" in note for note in graph.notes), path
