"""Tables in the forms people have them in, read alike or refused with a question."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from tempergat import ReadOptions, UserError
from tempergat.data import Dataset, as_dataset
from tempergat.data.user.report import check_graph

NODES = """id,height,width,label,split
n0,1.5,1,cat,train
n1,2,0,dog,train
n2,-1,1,cat,val
n3,0.25,0,dog,val
n4,7,1,cat,test
n5,3,0,dog,test
"""
EDGES = "source,target\nn0,n1\nn1,n2\nn2,n3\nn3,n4\nn4,n5\n"


def write(folder: Path, nodes: str | bytes, edges: str | bytes = EDGES) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in (("nodes", nodes), ("edges", edges)):
        data = content.encode() if isinstance(content, str) else content
        (folder / f"{name}.csv").write_bytes(data)
    return folder


def read(folder: Path, **options: object) -> Dataset:
    return as_dataset(folder, options=ReadOptions(**options))  # type: ignore[arg-type]


@pytest.fixture
def plain(tmp_path: Path) -> Dataset:
    return read(write(tmp_path / "plain", NODES))


FORMS: dict[str, tuple[str, dict[str, object]]] = {
    "columns by option": (
        NODES.replace("id,", "who,").replace("label,split", "animal,part"),
        {"id": "who", "label": "animal", "split_column": "part"},
    ),
    "features by option": (
        NODES.replace("label,", "label,y,")
        .replace("t,t", "t,1,t")
        .replace("g,t", "g,1,t")
        .replace("t,v", "t,1,v")
        .replace("g,v", "g,1,v"),
        {"features": ("height", "width"), "label": "label"},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_those_that_options_name(
    form: str, plain: Dataset, tmp_path: Path
) -> None:
    nodes, options = FORMS[form]
    found = read(write(tmp_path / "g", nodes), **options)
    assert found.fingerprint == plain.fingerprint
    assert found.node_ids == plain.node_ids
    assert found.predicted.names == ("cat", "dog")
    assert found.feature_names == ("height", "width")
    assert found.split == "given with the graph"


def test_damaged_gzip_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(EDGES)
    packed = gzip.compress(NODES.encode())
    for data in (packed[:-9], b"id,label", packed[:20] + b"\0" * 9 + packed[29:]):
        (tmp_path / "nodes.csv.gz").write_bytes(data)
        with pytest.raises(UserError, match=r"nodes\.csv\.gz is not a readable gzip"):
            read(tmp_path)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("n6,1", "row 8 has 2 values, but the header names 5 columns"),
        ("n6,1,1,cat,test,", "row 8 has 6 values, but the header names 5"),
        ('"n6"6,1,1,cat,test', "from row 2 on, is not CSV in UTF-8 .*expected after"),
        ('n6,1,1,"cat,test', "from row 2 on, is not CSV in UTF-8 .*end of data"),
        ("n6\0,1,1,cat,test\nn6\0,1,1,cat,", r"row 9: id 'n6\\x00' is also .* row 8"),
    ],
)
def test_what_pandas_would_pass_over_is_refused(
    row: str, line: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=line):
        read(write(tmp_path / "g", NODES + row))


def test_values_are_read_as_they_are_written(tmp_path: Path) -> None:
    nodes = "id,f,label\n007,1,e5\n7,1,nan_\n 1e5,1,2020-01-01\ntrue,1,0x1\n"
    found = read(write(tmp_path / "g", nodes, "source,target\n007,1e5\n7,true\n"))
    assert found.node_ids == ("007", "7", "1e5", "true")
    assert found.predicted.names == ("0x1", "2020-01-01", "e5", "nan_")


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("height", "y", "the column y has the name of a label although label is"),
        ("height", "index", "the column index has the name of an id although id is"),
        ("height", "fold", "the column fold has the name of a split although split"),
        ("height", "train_mask", "has the column split and mask columns too"),
        (
            "label,split",
            "y,target",
            "y and target, and each may be the label; .*--label",
        ),
        ("label,split", "kind,split", "has no column label, .* --label"),
        ("id,height", "node,index", "node and index, and each may be the id; .*--id"),
        ("width", "train_mask_3", "the column train_mask_3 has the name of a split"),
        ("width", "Unnamed: 0", "called 'Unnamed: 0'.*index=False"),
    ],
)
def test_a_column_that_may_be_something_else_is_a_question(
    old: str, new: str, question: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "g", NODES.replace(old, new, 1))
    with pytest.raises(UserError, match=question):
        read(folder)


def test_ids_may_be_saved_as_decimals_or_beyond_int64(tmp_path: Path) -> None:
    large = 2**64 - 1
    nodes = f"id,f,label\n1,1,0\n2,1,1\n{large},1,1\n"
    edges = f"source,target\n1.0,2.0\n2,{large}\n"
    found = read(write(tmp_path / "g", nodes, edges), directed=True)
    assert found.data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert found.node_ids == ("1", "2", str(large))


@pytest.mark.parametrize("word", ["NA", "N/A", "None", "null", "nan", "NaN", "?", ""])
def test_a_missing_word_is_missing_everywhere(word: str, tmp_path: Path) -> None:
    nodes = NODES + f"n6,1,1,{word},\nn7,2,0,dog,{word}\n"
    found = read(write(tmp_path / "g", nodes))
    assert found.predicted.names == ("cat", "dog")
    assert found.data.y[6:].tolist() == [-1, 1]
    assert not found.data.test_mask[6:].any()
    folder = write(tmp_path / "g", NODES.replace("0.25", word))
    with pytest.raises(UserError, match=r"row 5: height is .* a missing value"):
        read(folder)
    folder = write(tmp_path / "g", NODES.replace("n3", word, 1))
    with pytest.raises(UserError, match=r"row 5: id is .*name every node"):
        read(folder)


def test_the_words_for_missing_can_be_changed(tmp_path: Path) -> None:
    nodes = NODES.replace("cat,test", "NA,test") + "n6,1,0,unknown,\n"
    found = read(write(tmp_path / "g", nodes), missing=("unknown",))
    assert found.predicted.names == ("NA", "cat", "dog")
    assert int(found.data.y[6]) == -1
    folder = write(tmp_path / "g", NODES.replace("0.25", "-999"))
    with pytest.raises(UserError, match="height is '-999', which is a missing value"):
        read(folder, missing=("-999",))


@pytest.mark.parametrize(
    ("labels", "classes", "names"),
    [
        ("1 2 3 1 2 3", [0, 1, 2, 0, 1, 2], ("1", "2", "3")),
        ("2020 2019 2020 2021 2019 2021", [1, 0, 1, 2, 0, 2], ("2019", "2020", "2021")),
        ("0 2 0 2 10 10", [0, 1, 0, 1, 2, 2], ("0", "2", "10")),
        ("0 1 2 0.0 1.0 2", [0, 1, 2, 0, 1, 2], None),
        ("1.0 2.0 ? 1.0 2 1", [0, 1, -1, 0, 1, 0], ("1", "2")),
    ],
)
def test_whole_numbers_become_classes_in_their_order(
    labels: str, classes: list[int], names: tuple[str, ...] | None, tmp_path: Path
) -> None:
    rows = [f"{at / 2},{label}" for at, label in enumerate(labels.split())]
    nodes = "\n".join(["f,label", *rows])
    found = read(write(tmp_path / "g", nodes, "source,target\n0,1\n"))
    assert found.data.y.tolist() == classes
    assert found.predicted.names == names
    values = [-1.0 if label == "?" else float(label) for label in labels.split()]
    path = tmp_path / "g.npz"
    np.savez(path, x=np.arange(6.0)[:, None] / 2, y=values, edge_index=[[0], [1]])
    same = as_dataset(path)
    assert same.fingerprint == found.fingerprint
    assert same.predicted.names == names


def test_a_class_in_no_split_is_not_counted(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", NODES + "n6,1,1,axolotl,\n")
    found = read(folder)
    assert found.predicted.width == 2
    assert found.predicted.names == ("cat", "dog")
    assert found.data.y.tolist() == [0, 1, 0, 1, 0, 1, -1]
    assert any("no split contains class axolotl" in note for note in found.notes)
    assert as_dataset(folder, split="60/20/20").predicted.width == 3


def test_columns_of_words_are_encoded_on_request(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", NODES.replace("1.5", "red").replace("0.25", "red"))
    with pytest.raises(UserError, match=r"height is 'red', .* --one-hot"):
        read(folder)
    found = read(folder, one_hot=("height",))
    words = ("height=-1", "height=2", "height=3", "height=7", "height=red")
    assert found.feature_names == (*words, "width")
    assert found.data.x.to_dense()[:, 4].tolist() == [1, 0, 0, 1, 0, 0]
    only = read(folder, one_hot=("height",), features=("height",))
    assert only.feature_names == words


@pytest.mark.parametrize(
    ("kind", "width"), [("degree", 2), ("constant", 1), ("random-walk", 8)]
)
def test_features_are_made_for_a_graph_without_any(
    kind: str, width: int, tmp_path: Path
) -> None:
    nodes = "\n".join(
        ",".join(line.split(",")[at] for at in (0, 3, 4)) for line in NODES.split()
    )
    folder = write(tmp_path / "g", nodes)
    assert "x" not in read(folder).data
    found = read(folder, make_features=kind)
    assert found.data.x.shape == (6, width)
    assert len(found.feature_names or ()) == width
    with pytest.raises(UserError, match="has 2 features; leave --make-features out"):
        read(write(tmp_path / "h", NODES), make_features=kind)


def test_random_walks_of_a_path_return_as_computed_by_hand(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", "label\n0\n1\n0\n", "source,target\n0,1\n1,2\n")
    x = read(folder, make_features="random-walk").data.x.to_dense()
    expected = torch.tensor([[0, 0.5, 0, 0.5] * 2, [0, 1] * 4, [0, 0.5, 0, 0.5] * 2])
    assert torch.allclose(x, expected)


def test_a_feature_that_gives_the_label_away_is_pointed_out(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(3, size=60)
    other = draw.normal(size=(60, 2))
    rows = [
        f"{a:.3f},{3 - 2 * label},{b:.3f},{label}"
        for (a, b), label in zip(other, labels, strict=True)
    ]
    nodes = "\n".join(["a,code,b,label", *rows])
    found = read(write(tmp_path / "g", nodes, "source,target\n0,1\n"))
    told = [note for note in found.notes if "alone tells the class" in note]
    assert len(told) == 1
    assert "the feature code alone" in told[0]


def test_the_report_lists_features_and_classes_by_name(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "g", NODES.replace("\n", ",5\n").replace("t,5", "t,same", 1)
    )
    found = {finding.subject: finding.value for finding in check_graph(folder)}
    assert found["names of features"] == "height (number), width (0-1), same (constant)"
    assert found["kinds of features"] == {"number": 1, "0-1": 1, "constant": 1}
    assert found["nodes of each class"] == {"cat": 3, "dog": 3}


def test_the_report_on_many_features_is_cut(tmp_path: Path) -> None:
    names = ",".join(f"f{at}" for at in range(3000))
    row = ",".join("1" for _ in range(3000))
    nodes = f"{names},label\n{row},0\n{row},1\n"
    folder = write(tmp_path / "g", nodes, "source,target\n0,1\n")
    found = {finding.subject: finding.value for finding in check_graph(folder)}
    assert found["names of features"].endswith("f19 (constant) and 2980 more")


PROTEINS = NODES.replace("id,", "protein,")


def test_words_that_differ_in_every_row_are_proposed_as_ids(tmp_path: Path) -> None:
    folder = write(tmp_path / "graph", PROTEINS, EDGES + "n5,n7\n")
    with pytest.raises(UserError, match=r"add --id protein \(in Python: Read") as found:
        read(folder)
    assert "ReadOptions(id='protein')" in str(found.value)
    assert "one-hot" not in str(found.value)
    with pytest.raises(UserError, match=r"target is 'n7', but .* \(by protein\)"):
        read(folder, id="protein")
    repeated = NODES.replace("width", "colour").replace(",1,", ",red,")
    with pytest.raises(UserError, match=r"encode it with --one-hot.*Python: .*one_hot"):
        read(write(tmp_path / "colours", repeated))


def test_edges_that_count_nodes_from_one_are_recognised(tmp_path: Path) -> None:
    nodes = "\n".join(line.partition(",")[2] for line in NODES.splitlines())
    edges = EDGES.replace("n", "")
    assert read(write(tmp_path / "zero", nodes, edges)).predicted.width == 2
    shifted = "source,target\n1,2\n2,3\n3,4\n4,5\n5,6\n"
    with pytest.raises(
        UserError, match=r"seem to count the 6 nodes from 1.*subtract 1"
    ):
        read(write(tmp_path / "one", nodes, shifted))
    with pytest.raises(UserError, match=r"target is '6', but .* no such node"):
        read(write(tmp_path / "gap", nodes, shifted + "0,3\n"))


@pytest.mark.parametrize(
    ("nodes", "option"),
    [
        (NODES.replace("label", "kind"), "label"),
        (NODES.replace("train", "teach"), "split_column"),
        (NODES.replace("n1", "n0"), "id"),
        (NODES.replace("7", ""), "drop"),
    ],
)
def test_a_remedy_names_the_option_in_python_too(
    tmp_path: Path, nodes: str, option: str
) -> None:
    with pytest.raises(UserError, match=rf"\(in Python: ReadOptions\({option}="):
        read(write(tmp_path / "graph", nodes))
