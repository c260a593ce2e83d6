"""User graphs: what is read, and the error for each mistake."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import ToUndirected

from tempergat.base.errors import UserError
from tempergat.data import ReadOptions, load
from tempergat.data.splits import make_split

MASKS = ("train_mask", "val_mask", "test_mask")
NODES = "id,height,label,weight,split\na,1.5,x,0,train\nb,2,y,1,val\nc,-1e3,x,0,test\n"
EDGES = "source,target\na,b\nb,c\n"


def write_folder(folder: Path, nodes: str = NODES, edges: str = EDGES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder


def test_folder_of_tables_becomes_a_graph(tmp_path: Path) -> None:
    dataset = load(write_folder(tmp_path / "g"), sparse=False, directed=True)
    assert dataset.data.x.tolist() == [[1.5, 0], [2, 1], [-1000, 0]]
    assert dataset.data.y.tolist() == [0, 1, 0]
    assert dataset.data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert [dataset.data[mask].tolist().index(True) for mask in MASKS] == [0, 1, 2]
    assert dataset.predicted.width == 2
    assert dataset.split == "given with the graph"
    assert dataset.metric == "accuracy"


def test_path_may_be_text_or_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "cora")
    monkeypatch.chdir(tmp_path)
    relative, absolute = load("./cora"), load(str(tmp_path / "cora"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load("~/cora").fingerprint == absolute.fingerprint
    assert relative.data.num_nodes == 3
    assert relative.fingerprint == absolute.fingerprint


def test_nodes_without_ids_are_numbered_by_row(tmp_path: Path) -> None:
    nodes = "x1,label\n1,0\n2,1\n3,\n"
    folder = write_folder(tmp_path / "g", nodes, "source,target\n0,2\n")
    dataset = load(folder, directed=True)
    assert dataset.data.y.tolist() == [0, 1, -1]
    assert dataset.data.edge_index.tolist() == [[0], [2]]
    assert dataset.split == "made: 60/20/20 with seed 0, by class"
    assert not dataset.data.test_mask[2]


def test_split_may_be_a_table_of_its_own(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "g", "id,f,label\na,1,0\nb,1,1\nc,1,1\n")
    (folder / "split.csv").write_text("id,split\nc,Train\na,validation\n")
    data = load(folder).data
    assert data.train_mask.tolist() == [False, False, True]
    assert data.val_mask.tolist() == [True, False, False]
    assert not data.test_mask.any()


def test_percentages_replace_a_given_split(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "g")
    made = load(folder, split="34/33/33", split_seed=2)
    assert made.split == "made: 34/33/33 with seed 2, by class"
    assert sum(int(made.data[mask].sum()) for mask in MASKS) == 3


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "g"
    folder.mkdir()
    nodes = {"id": [7, 8, 9], "height": [1.5, 2, -1e3], "label": ["x", "y", None]}
    parquet.write_table(arrow.table(nodes), folder / "nodes.parquet")
    edges = arrow.table({"source": [7, 8], "target": [8, 9]})
    parquet.write_table(edges, folder / "edges.parquet")
    dataset = load(folder, sparse=False, directed=True)
    assert dataset.data.x.tolist() == [[1.5], [2], [-1000]]
    assert dataset.data.y.tolist() == [0, 1, -1]
    assert dataset.data.edge_index.tolist() == [[0, 1], [1, 2]]
    with_gaps = {"id": [7.0, 8.0, 9.0], "label": [1.0, float("nan"), 0.0]}
    parquet.write_table(arrow.table(with_gaps), folder / "nodes.parquet")
    assert load(folder).data.y.tolist() == [1, -1, 0]
    with_lists = {"id": [7, 8, 9], "f": [[1.0, 2.0]] * 3, "label": [0, 1, 0]}
    parquet.write_table(arrow.table(with_lists), folder / "nodes.parquet")
    with pytest.raises(
        UserError, match=r"row 1: f is \[1\.0, 2\.0\], which is not a number"
    ):
        load(folder)
    (folder / "nodes.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(UserError, match=r"nodes\.parquet is not a readable Parquet"):
        load(folder)


def small_graph() -> Data:
    return Data(
        x=torch.randn(4, 3),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]),
        y=torch.tensor([0, 1, 0, 1]),
        train_mask=torch.tensor([True, False, True, False]),
        val_mask=torch.tensor([False, True, False, False]),
        test_mask=torch.tensor([False, False, False, True]),
    )


def test_pt_and_npz_hold_the_same_graph(tmp_path: Path) -> None:
    data = small_graph()
    torch.save(data, tmp_path / "g.pt")
    arrays = {name: value.numpy() for name, value in data.to_dict().items()}
    np.savez(tmp_path / "g.npz", **arrays)
    first, second = load(tmp_path / "g.pt"), load(tmp_path / "g.npz", directed=True)
    assert first.fingerprint == second.fingerprint
    assert torch.equal(first.data.x, data.x)


def test_heterogeneous_pt_is_read_and_its_target_found(tmp_path: Path) -> None:
    data = HeteroData()
    data["paper"].x = torch.randn(3, 2)
    data["paper"].y = torch.tensor([0, 1, 1])
    data["author"].num_nodes = 2
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 1], [0, 2, 2]])
    torch.save(data, tmp_path / "g.pt")
    with pytest.warns(
        UserWarning, match="1 edge of author__writes__paper in .* repeats"
    ):
        dataset = load(tmp_path / "g.pt")
    assert dataset.target == "paper"
    written = dataset.data["author", "writes", "paper"].edge_index
    assert written.tolist() == [[0, 1], [0, 2]]
    with pytest.raises(UserError, match=r"target is 'author'.* with labels: paper"):
        load(tmp_path / "g.pt", target="author")
    with pytest.raises(UserError, match="ToUndirected"):
        load(tmp_path / "g.pt", directed=False)
    del data["paper"].y
    torch.save(data, tmp_path / "g.pt")
    with pytest.raises(UserError, match="labels for none of the node types paper, au"):
        load(tmp_path / "g.pt")


def test_graph_that_a_transform_has_looked_into_is_read(tmp_path: Path) -> None:
    data = ToUndirected()(small_graph())
    assert data.is_edge_attr("edge_index")
    torch.save(data, tmp_path / "g.pt")
    assert torch.equal(load(tmp_path / "g.pt").data.x, data.x)


def test_edge_attributes_follow_their_edges(tmp_path: Path) -> None:
    data = small_graph()
    data.edge_index = torch.tensor([[2, 0, 2, 1], [3, 1, 3, 2]])
    data.edge_weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    data.edge_name = ["first", "second", "third", "fourth"]
    torch.save(data, tmp_path / "g.pt")
    options = ReadOptions(edge_weight="edge_weight")
    with pytest.warns(UserWarning, match="repeats an earlier edge"):
        loaded = load(tmp_path / "g.pt", options=options).data
    assert loaded.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert loaded.edge_weight.tolist() == [2.0, 4.0, 1.0]
    assert loaded.edge_name == ["second", "fourth", "first"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", torch.ones(4, 3, requires_grad=True)),
        ("x", torch.ones(4, 3, dtype=torch.bfloat16)),
        ("edge_index", torch.tensor([[0, 1, 2], [1, 2, 3]], dtype=torch.uint64)),
        ("y", torch.tensor([0, 1, 0, 1], dtype=torch.uint16)),
    ],
    ids=["gradient", "bfloat16", "uint64", "uint16"],
)
def test_every_kind_of_tensor_gives_the_same_dataset(
    name: str, value: torch.Tensor, tmp_path: Path
) -> None:
    data = small_graph()
    data.x = torch.ones(4, 3)
    torch.save(data, tmp_path / "usual.pt")
    data[name] = value
    torch.save(data, tmp_path / "other.pt")
    other = load(tmp_path / "other.pt")
    assert other.fingerprint == load(tmp_path / "usual.pt").fingerprint


def test_attribute_of_a_type_numpy_lacks_is_part_of_the_graph(tmp_path: Path) -> None:
    data = small_graph()
    data.z = torch.ones(5, dtype=torch.bfloat16)
    torch.save(data, tmp_path / "g.pt")
    assert load(tmp_path / "g.pt").data.z.tolist() == [1.0] * 5


def test_isolated_nodes_without_features_are_counted(tmp_path: Path) -> None:
    # As many edges as labels, and fewer nodes in them: nothing but y tells the number.
    edges = torch.tensor([[2, 0, 1, 2], [0, 1, 2, 0]])
    data = Data(y=torch.tensor([0, 1, 1, 0]), edge_index=edges)
    torch.save(data, tmp_path / "g.pt")
    with pytest.warns(UserWarning, match="repeats an earlier edge"):
        loaded = load(tmp_path / "g.pt").data
    assert loaded.num_nodes == 4
    assert loaded.y.tolist() == [0, 1, 1, 0]
    assert loaded.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]


def test_number_of_nodes_set_by_loading_is_not_part_of_the_fingerprint(
    tmp_path: Path,
) -> None:
    data = Data(y=torch.tensor([0, 1, 0, 1]), edge_index=small_graph().edge_index)
    for name, mask in make_split(data.y.numpy(), "60/20/20", 0).items():
        data[name] = torch.from_numpy(mask)
    torch.save(data, tmp_path / "g.pt")
    data.num_nodes = 4
    torch.save(data, tmp_path / "counted.pt")
    expected = "c0249a24aa14f94944e7e18eeaa73509fdf688db3ea54a36bb8c5e6d19cbfec0"
    assert load(tmp_path / "g.pt").fingerprint == expected
    assert load(tmp_path / "counted.pt").fingerprint == expected


def test_every_node_type_has_a_number_of_nodes_or_is_named(tmp_path: Path) -> None:
    data = HeteroData()
    data["paper"].y = torch.tensor([0, 1, 1])
    data["author"].num_nodes = 2
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [0, 1]])
    torch.save(data, tmp_path / "g.pt")
    loaded = load(tmp_path / "g.pt").data
    assert (loaded["paper"].num_nodes, loaded["author"].num_nodes) == (3, 2)
    data["venue"].rank = torch.ones(2)
    torch.save(data, tmp_path / "g.pt")
    with pytest.raises(UserError, match="nodes of venue is unknown; set x or num"):
        load(tmp_path / "g.pt")


MISTAKES: list[tuple[str, str, str, str]] = [
    ("empty nodes", "", EDGES, r"nodes\.csv is empty"),
    ("no rows", "id,f,label\n", EDGES, r"nodes\.csv has no rows"),
    ("no label column", "id,f\na,1\n", EDGES, r"nodes\.csv has no column label"),
    ("no labels", "id,f,label\na,1,\n", EDGES, r"nodes\.csv has no label in any row"),
    ("text feature", NODES.replace("2,y", "tall,y"), EDGES, r"row 3: height is 'tall'"),
    ("empty feature", NODES.replace("2,y", ",y"), EDGES, r"row 3: height is ''"),
    ("infinite", NODES.replace("2,y", "inf,y"), EDGES, r"row 3: height is 'inf'"),
    ("nan", NODES.replace("2,y", "nan,y"), EDGES, r"row 3: height is 'nan'"),
    ("overflow", NODES.replace("2,y", "1e99,y"), EDGES, r"row 3: height is '1e99'"),
    ("short row", NODES + "d,1\n", EDGES, r"nodes\.csv, row 5 has 2 values"),
    ("same id", NODES.replace("b,2", "a,2"), EDGES, r"row 3: id 'a' is also .*row 2"),
    ("empty id", NODES.replace("b,2", ",2"), EDGES, r"row 3: id is empty"),
    ("same column", "id,f,f,label\na,1,1,0\n", EDGES, r"row 1 names the column 'f'"),
    ("row numbers", ",f,label\n0,1,0\n", EDGES, r"column 1 is called ''.*index=False"),
    ("unknown node", NODES, EDGES + "a,z\n", r"edges\.csv, row 4: target is 'z'"),
    ("no target", NODES, "source\na\n", r"edges\.csv has no columns source and target"),
    ("empty edges", NODES, "", r"edges\.csv is empty"),
    (
        "mixed labels",
        "id,f,label\na,1,0\nb,1,one\n",
        EDGES,
        r"row 3: label is 'one'.*number 0",
    ),
    (
        "mixed labels, word first",
        "id,f,label\na,1,one\nb,1,0\n",
        EDGES,
        r"row 3: label is '0'.*word one",
    ),
    (
        "fractions as labels",
        "id,f,label\na,1,0.5\nb,1,1.5\n",
        EDGES,
        r"row 2: label is '0\.5'; continuous targets",
    ),
    ("odd sign", "id,f,label\na,1,0\nb,1,--1\n", EDGES, r"row 3: label is '--1'"),
    (
        "unknown split",
        NODES.replace("val", "later"),
        EDGES,
        r"row 3: split is 'later'; write train",
    ),
    (
        "unlabelled in a split",
        "id,f,label,split\na,1,0,train\nb,1,,test\nc,1,1,val\n",
        EDGES,
        r"node 1 is in test_mask but has no label",
    ),
    (
        "nothing to train on",
        "id,f,label,split\na,1,0,test\nb,1,1,test\nc,1,1,val\n",
        EDGES,
        r"no node in train_mask",
    ),
]


@pytest.mark.parametrize(
    ("nodes", "edges", "named"),
    [mistake[1:] for mistake in MISTAKES],
    ids=[mistake[0] for mistake in MISTAKES],
)
def test_mistake_in_a_table_is_one_line_that_names_its_place(
    nodes: str, edges: str, named: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "g", nodes, edges)
    before = sorted(folder.iterdir())
    with pytest.raises(UserError, match=named) as caught:
        load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(folder.iterdir()) == before


def test_two_splits_claiming_one_node_are_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "g", "id,f,label\na,1,0\nb,1,1\nc,1,1\n")
    (folder / "split.csv").write_text("id,split\na,train\nb,val\na,test\n")
    with pytest.raises(UserError, match=r"split\.csv, row 4: .*already in train"):
        load(folder)
    write_folder(folder)
    with pytest.raises(UserError, match=r"column split and there is a split\.csv too"):
        load(folder)


def test_an_unknown_node_of_a_split_is_no_matter_of_edges(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "g", "id,f,label\na,1,0\nb,1,1\nc,1,1\n")
    (folder / "split.csv").write_text("id,split\na,train\nb,val\nx,test\n")
    with pytest.raises(UserError, match=r"split\.csv, row 4: id is 'x'") as caught:
        load(folder)
    assert "--drop-unknown-edges" not in str(caught.value)


def test_columns_of_nodes_are_offered_where_drop_names_none(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "g", "id,age,label\na,1,0\nb,1,1\nc,1,1\n")
    with pytest.raises(UserError, match="choose among age, source, target"):
        load(folder, options=ReadOptions(drop=("height",)))
    with pytest.raises(UserError, match="did you mean age"):
        load(folder, options=ReadOptions(drop=("ages",)))


@pytest.mark.parametrize(("header", "missing"), [("id,f", "split"), ("f,g", "id")])
def test_a_table_of_the_split_without_ids_or_parts_is_named(
    header: str, missing: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "g", "id,f,label\na,1,0\nb,1,1\nc,1,1\n")
    (folder / "split.csv").write_text(f"{header}\na,1\nb,2\n")
    with pytest.raises(UserError, match=rf"split\.csv has no column {missing}, only"):
        load(folder)


@pytest.mark.parametrize("missing", ["nodes", "edges"])
def test_missing_table_is_named(missing: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "g")
    (folder / f"{missing}.csv").unlink()
    (folder / f"{missing}.xlsx").write_bytes(b"")
    with pytest.raises(
        UserError, match=rf"has no {missing}\.csv.* holds .*{missing}\.xlsx"
    ):
        load(folder)


def spoil(change: Callable[[Data], None], path: Path) -> Path:
    data = small_graph()
    change(data)
    torch.save(data, path)
    return path


def put(name: str, value: object) -> Callable[[Data], None]:
    return lambda data: data.__setitem__(name, value)


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("y", torch.tensor([0, 1, 0, -5]), r"y\[3\] is -5"),
        ("y", torch.tensor([0, 1, 0]), r"x has 4 rows, but y has 3"),
        ("y", torch.tensor([0.5, 1, 0, 0]), "fractions"),
        ("y", torch.tensor([torch.inf, 1, 0, 0]), "fractions"),
        ("y", torch.tensor([0, 1, 0, 1]).to_sparse(), "y has layout .*make it dense"),
        ("y", torch.zeros(4, 2, dtype=torch.int64), "one class per node"),
        ("y", torch.full((4,), -1), "no labelled node"),
        ("y", None, "no labels y"),
        ("x", torch.randn(4), "nodes x features"),
        ("x", torch.randn(4, 2) * 1j, "x has type torch.complex64; make it real"),
        ("x", torch.full((4, 3), torch.nan), r"nan at \[0, 0\]"),
        ("x", torch.randn(4, 3).to_sparse(), "layout"),
        ("edge_index", torch.tensor([[0], [4]]), r"edge_index\[1, 0\] is 4.*0\.\.3"),
        ("edge_index", torch.tensor([[-1], [0]]), r"edge_index\[0, 0\] is -1"),
        ("edge_index", torch.rand(2, 3), "integers"),
        ("edge_index", torch.zeros(3, 2, dtype=torch.int64), r"\(2, edges\)"),
        ("edge_index", None, "has no edge_index, only .*x"),
        ("edge_index", torch.eye(2).long().to_sparse_csr(), "edge_index has layout"),
        ("z", torch.eye(2).to_sparse(), "z has layout .*sparse CSR"),
        ("z", torch.ones(2, device="meta"), "z is a tensor of .*meta"),
    ],
)
def test_contradiction_in_a_pt_is_named(
    name: str, value: object, named: str, tmp_path: Path
) -> None:
    path = spoil(put(name, value), tmp_path / "g.pt")
    with pytest.raises(UserError, match=named) as caught:
        load(path)
    assert str(path) in str(caught.value)


class Hostile:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        import os

        return os.mkdir, (str(self.folder / "hacked"),)


def test_hostile_pt_runs_nothing(tmp_path: Path) -> None:
    data = small_graph()
    data.extra = Hostile(tmp_path)
    torch.save(data, tmp_path / "g.pt")
    with pytest.raises(UserError, match=r"without running code \(it names posix"):
        load(tmp_path / "g.pt")
    assert not (tmp_path / "hacked").exists()


def test_loading_leaves_the_classes_torch_may_load_as_they_were(tmp_path: Path) -> None:
    before = set(torch.serialization.get_safe_globals())
    torch.save(small_graph(), tmp_path / "g.pt")
    load(tmp_path / "g.pt")
    assert set(torch.serialization.get_safe_globals()) == before


def test_pt_without_a_graph_is_an_error(tmp_path: Path) -> None:
    torch.save({"weights": torch.ones(3)}, tmp_path / "g.pt")
    with pytest.raises(UserError, match="holds a dict"):
        load(tmp_path / "g.pt")


def test_npz_of_types_torch_lacks_is_read(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "g.npz",
        edge_index=np.array([[0, 1], [1, 2]], dtype=">u4"),
        x=np.arange(6, dtype=np.longdouble).reshape(3, 2),
        y=np.array([0, 1, 0], dtype=np.uint16),
    )
    data = load(tmp_path / "g.npz", sparse=False, directed=True).data
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert data.x.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert data.y.tolist() == [0, 1, 0]


def test_missing_and_foreign_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file or folder"):
        load(tmp_path / "nothing.pt")
    (tmp_path / "g.xlsx").write_bytes(b"")
    with pytest.raises(UserError, match=r"neither a folder .* nor a \.npz, \.pt or"):
        load(tmp_path / "g.xlsx")
    write_folder(tmp_path / "g")
    with pytest.raises(UserError, match="no option 'colour'"):
        load(tmp_path / "g", colour=1)
    with pytest.raises(UserError, match="no numbered splits"):
        load(tmp_path / "g", split=3)
    with pytest.raises(UserError, match="no node types"):
        load(tmp_path / "g", target="paper")


def test_table_longer_than_a_piece_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"n{i},{i},{i % 2},{'train' if i % 3 else ''}" for i in range(25)]
    links = [f"n{i},n{i + 1}" for i in range(24)]
    nodes = "\n".join(["id,f,label,split", *rows])
    edges = "\n".join(["source,target", *links])
    folder = write_folder(tmp_path / "g", nodes, edges)
    whole = load(folder, sparse=False)
    monkeypatch.setattr("tempergat.data.tables.files._PIECE", 60)
    pieces = load(folder, sparse=False)
    assert pieces.fingerprint == whole.fingerprint
    assert whole.data.x[:, 0].tolist() == list(range(25))
    write_folder(folder, nodes.replace("\nn17", "\n" * 30 + "n17"), edges)
    assert load(folder).fingerprint == whole.fingerprint
    write_folder(folder, nodes.replace("n17,17", "n17,many"), edges)
    with pytest.raises(UserError, match=r"nodes\.csv, row 19: f is 'many'"):
        load(folder)
    write_folder(folder, nodes, edges.replace("n20,n21", "n20,n99"))
    with pytest.raises(UserError, match=r"edges\.csv, row 22: target is 'n99'"):
        load(folder)


def test_ids_and_class_names_of_tables_are_kept(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,h\nq,owl,1\nb,,2\nz,ant,3\n")
    (tmp_path / "edges.csv").write_text("source,target\nq,z\n")
    words = load(tmp_path, split="100/0/0")
    assert words.node_ids == ("q", "b", "z")
    assert words.predicted.names == ("ant", "owl")
    assert words.data.y.tolist() == [1, -1, 0]
    for_prediction = load(tmp_path, labelled=False)
    assert for_prediction.node_ids == ("q", "b", "z")
    assert for_prediction.predicted.names is None


def test_numbered_nodes_and_classes_have_no_names(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("label,h\n1,1\n0,2\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    numbers = load(tmp_path, split="100/0/0")
    assert numbers.node_ids is None
    assert numbers.predicted.names is None


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ("q,owl,1\n\n\nq,ant,2\n", r"row 5: id 'q' is also that of row 2"),
        ("q,owl,1\n\nb,ant\n", r"row 4 has 2 values, .* every row needs 3 values"),
        ("\n\nq,owl,x\n", r"row 4: h is 'x'"),
    ],
)
def test_blank_lines_count_in_row_numbers(
    rows: str, named: str, tmp_path: Path
) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,h\n" + rows)
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(UserError, match=named):
        load(tmp_path)
