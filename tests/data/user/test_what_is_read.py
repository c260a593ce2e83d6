"""What ordinary files are taken for: as they are meant, or a question."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from tempergat import ReadOptions, UserError
from tempergat.data import Dataset, as_dataset, describe, describe_reading

# A graph of six nodes, whose ids are a permutation of the row numbers.
IDS = (3, 0, 5, 1, 4, 2)
PARTS = ("train", "train", "val", "val", "test", "test")
EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
MASKS = np.array(
    [[part == word for word in ("train", "val", "test")] for part in PARTS]
)


def write(folder: Path, nodes: dict[str, Any], ids: Any = IDS, **others: str) -> Path:
    """Writes tables; `others` are further files, by their names without suffix."""
    folder.mkdir(exist_ok=True)
    columns = {**nodes, "height": [0.5 * row for row in range(6)]}
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (folder / "nodes.csv").write_text("\n".join(lines))
    ends = "\n".join(f"{ids[a]},{ids[b]}" for a, b in EDGES)
    (folder / "edges.csv").write_text(f"source,target\n{ends}")
    for name, text in others.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def read(folder: Path, **options: Any) -> Dataset:
    return as_dataset(folder, options=ReadOptions(**{"directed": True, **options}))


LABELS = {"label": ["a", "b", "a", "b", "a", "b"]}
NAMES = [f"p{row}" for row in range(6)]


def test_a_model_passes_on_the_column_that_names_the_nodes(tmp_path: Path) -> None:
    found = read(write(tmp_path / "g", {"user_id": NAMES, **LABELS}, NAMES))
    assert describe_reading(found)["nodes"] == "named by user_id"
    assert found.read_options is not None
    assert found.read_options.id == "user_id"


def test_row_numbers_are_used_where_no_column_could_be_meant(tmp_path: Path) -> None:
    rows = list(range(6))
    found = read(write(tmp_path / "g", LABELS, rows))
    assert describe_reading(found)["nodes"] == "named by row number, from 0"
    numbered = read(write(tmp_path / "h", {"nr": rows, **LABELS}, rows))
    assert numbered.fingerprint == found.fingerprint
    assert describe_reading(numbered)["nodes"] == "named by nr"


def test_ids_that_could_be_row_numbers_are_a_question(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", {"user_id": IDS, **LABELS})
    with pytest.raises(UserError, match=r"user_id or by row number.*--id user_id"):
        read(folder)
    by_column = read(folder, id="user_id")
    assert by_column.data.edge_index.T.tolist() == [list(edge) for edge in EDGES]
    by_row = read(folder, id="")
    assert by_row.feature_names == ("user_id", "height")
    assert by_row.data.edge_index.T.tolist() != by_column.data.edge_index.T.tolist()
    both = write(tmp_path / "h", {"a": NAMES, "b": NAMES[::-1], **LABELS}, NAMES)
    with pytest.raises(UserError, match="name nodes by a and b; choose with --id"):
        read(both)


def test_each_type_of_a_typed_folder_has_its_own_id(tmp_path: Path) -> None:
    (tmp_path / "nodes_paper.csv").write_text("label,paper_id\n0,p1\n1,p0\n1,p2\n")
    (tmp_path / "nodes_author.csv").write_text("author_id,age\n7,1.5\n9,2.5\n")
    edges = "source,target\n9,p0\n7,p2\n"
    (tmp_path / "edges_author__paper.csv").write_text(edges)
    found = as_dataset(tmp_path, split="100/0/0")
    ends = found.data["author", "to", "paper"].edge_index
    assert {*map(tuple, ends.T.tolist())} == {(1, 1), (0, 2)}
    named = describe_reading(found)["nodes"]
    assert named == "named by author_id of author, paper_id of paper"
    (tmp_path / "nodes_author.csv").write_text("author_id,age\n1,1.5\n0,2.5\n")
    edges = "source,target\n0,p0\n1,p2\n"
    (tmp_path / "edges_author__paper.csv").write_text(edges)
    with pytest.raises(UserError, match=r"author_id or by row .*or call the column id"):
        as_dataset(tmp_path, split="100/0/0")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("Train Validation Test", "False True"),
        ("is_train is_val is_test", "no yes"),
        ("trn_msk vld_msk tst_msk", "0 1"),
        ("Train dev TEST", "F T"),
        ("train_bool val_bool test_bool", "False True"),
        ("train? val? test?", "0 1"),
        ("used_for_train used_for_val used_for_test", "n y"),
    ],
)
def test_columns_called_like_a_split_are_the_split(
    names: str, words: str, tmp_path: Path
) -> None:
    values = np.array(words.split())[MASKS.astype(int)].T
    columns = dict(zip(names.split(), values, strict=True))
    folder = write(tmp_path / "g", {"id": NAMES, **LABELS, **columns}, NAMES)
    found = read(folder)
    assert found.feature_names == ("height",)
    for at, mask in enumerate(("train_mask", "val_mask", "test_mask")):
        assert found.data[mask].tolist() == MASKS[:, at].tolist()
    assert describe_reading(found)["split"] == f"from {names.replace(' ', ', ')}"
    unlabelled = as_dataset(folder, labelled=False)
    assert unlabelled.feature_names == ("height",)


def test_a_split_that_lacks_a_part_is_a_question(tmp_path: Path) -> None:
    columns = {"train": MASKS[:, 0].astype(int), "test": (~MASKS[:, 0]).astype(int)}
    folder = write(tmp_path / "g", {"id": NAMES, **LABELS, **columns}, NAMES)
    with pytest.raises(
        UserError, match=r"train and test are .* lacks val; add val_mas"
    ):
        read(folder)
    found = read(folder, features=("height",))
    assert describe_reading(found)["not_read"] == "train, test"
    assert read(folder, features=("height", "test")).data.x.shape == (6, 2)
    twice = {"is_train": columns["train"], "split": PARTS}
    with pytest.raises(UserError, match="is_train has the name of a split although"):
        read(write(tmp_path / "h", {"id": NAMES, **LABELS, **twice}, NAMES))
    hours = {"id": NAMES, "training": [3.5, 2, 1, 0, 4, 5], **LABELS}
    assert read(write(tmp_path / "i", hours, NAMES)).feature_names == (
        "training",
        "height",
    )


def lines_of(part: str) -> list[str]:
    return [name for name, of in zip(NAMES, PARTS, strict=True) if of == part]


SPLIT_FILES = {
    "0-1 columns": {
        "splits": "person,train,val,test\n"
        + "\n".join(
            f"{name},{','.join(map(str, row))}"
            for name, row in zip(NAMES, MASKS.astype(int), strict=True)
        )
    },
    "lists without a header": {
        f"{part}_ids": "\n".join(lines_of(part)) for part in ("train", "val", "test")
    },
}


@pytest.mark.parametrize("form", SPLIT_FILES)
def test_tables_called_like_a_split_are_the_split(form: str, tmp_path: Path) -> None:
    files = SPLIT_FILES[form]
    found = read(write(tmp_path / "g", {"person": NAMES, **LABELS}, NAMES, **files))
    for at, mask in enumerate(("train_mask", "val_mask", "test_mask")):
        assert found.data[mask].tolist() == MASKS[:, at].tolist()
    words = describe_reading(found)["split"]
    assert words == f"from {', '.join(f'{name}.csv' for name in files)}"


def test_half_a_split_in_tables_is_a_question(tmp_path: Path) -> None:
    nodes = {"id": NAMES, **LABELS}
    folder = write(tmp_path / "g", nodes, NAMES, train="id\np0\n", test="id\np1\n")
    with pytest.raises(UserError, match="train and test, but none for val"):
        read(folder)
    (folder / "train.csv").unlink()
    assert describe_reading(read(folder))["not_read"] == "test.csv"


def graph(**attributes: Any) -> Data:
    data = Data(x=torch.ones(6, 1), y=torch.tensor([0, 1] * 3))
    data.edge_index = torch.tensor(EDGES).T
    data.update(attributes)
    return data


TRAIN, VAL, TEST = ([0, 1], [2, 3], [4, 5])
SPLIT_ARRAYS: dict[str, dict[str, Any]] = {
    "train_idx": {
        "train_idx": torch.tensor(TRAIN),
        "val_idx": torch.tensor(VAL),
        "test_idx": torch.tensor(TEST),
    },
    "arrays": {
        "train_index": np.array(TRAIN),
        "valid_index": np.array(VAL),
        "test_index": np.array(TEST),
    },
    "idx_train": {"idx_train": TRAIN, "idx_val": VAL, "idx_test": TEST},
    "split_idx": {
        "split_idx": {"train": torch.tensor(TRAIN), "valid": VAL, "test": TEST}
    },
    "train_masks": {
        f"{part}_masks": torch.from_numpy(MASKS[:, at])[None].repeat(2, 1)
        for at, part in enumerate(("train", "val", "test"))
    },
}


@pytest.mark.parametrize("form", SPLIT_ARRAYS)
def test_arrays_called_like_a_split_are_the_split(form: str, tmp_path: Path) -> None:
    arrays = SPLIT_ARRAYS[form]
    path = tmp_path / "g.pt"
    torch.save(graph(**arrays), path)
    typed = HeteroData()
    typed["paper"].update(graph(**arrays).to_dict())
    del typed["paper"].edge_index
    typed["paper", "cites", "paper"].edge_index = torch.tensor(EDGES).T
    files: list[Path | HeteroData] = [path, typed]
    if form != "split_idx":
        files.append(tmp_path / "g.npz")
        plain = graph(**arrays).to_dict()
        np.savez(
            files[-1], **{name: np.asarray(value) for name, value in plain.items()}
        )
    for file in files:
        found = as_dataset(file)
        assert found.split.startswith("given with the graph")
        for at, mask in enumerate(("train_mask", "val_mask", "test_mask")):
            assert found.store[mask].tolist() == MASKS[:, at].tolist()
        words = describe_reading(found)["split"].removeprefix("from ").split(", ")
        assert {*words} == {*arrays}


@pytest.mark.parametrize(
    ("arrays", "question"),
    [
        (
            {"train_idx": torch.tensor(TRAIN)},
            "train_idx has .* but none is that of val",
        ),
        (
            {"split": torch.tensor([0, 0, 1, 1, 2, 2])},
            "split is not a split as we know",
        ),
        (
            {"train_idx": torch.tensor([0, 6]), "val_idx": VAL, "test_idx": TEST},
            "train_idx is .* neither a mask nor different nodes from 0 to 5",
        ),
    ],
)
def test_arrays_that_cannot_be_read_as_a_split_are_a_question(
    arrays: dict[str, Any], question: str
) -> None:
    with pytest.raises(UserError, match=f"{question}.*--split 60/20/20"):
        as_dataset(graph(**arrays))
    assert as_dataset(graph(**arrays), split="60/20/20").is_split_made


def test_attributes_that_are_not_used_are_named() -> None:
    found = as_dataset(graph(pos=torch.ones(6, 2), title="a graph"))
    assert describe_reading(found)["not_read"] == "pos, title"


def test_options_answer_whether_a_word_is_a_class_or_missing(tmp_path: Path) -> None:
    labels = ["NA", "EU", "AS"] * 2
    folder = write(tmp_path / "g", {"id": NAMES, "label": labels}, NAMES)
    with pytest.raises(UserError, match=r": NA is the label of 2 nodes.*may be a cl"):
        as_dataset(folder, split="100/0/0")
    every = as_dataset(folder, split="100/0/0", options=ReadOptions(missing=()))
    assert every.predicted.width == 3
    some = as_dataset(folder, split="100/0/0", options=ReadOptions(missing=("NA",)))
    assert some.predicted.width == 2
    assert "), 2 nodes unlabelled (NA)\n" in describe(some)


def test_a_word_beside_numbers_is_a_missing_label(tmp_path: Path) -> None:
    nodes = {"id": NAMES, "label": ["0", "1", "NA", "?", "NA", "?"]}
    found = as_dataset(write(tmp_path / "g", nodes, NAMES), split="100/0/0")
    assert "2 classes, 4 nodes unlabelled (NA, ?)\n" in describe(found)


def test_minus_one_in_a_table_is_a_class_unless_said(tmp_path: Path) -> None:
    nodes = {"id": NAMES, "label": [-1, 0, 1] * 2, "change": [-1, 1, 2, 1, 1, 1]}
    folder = write(tmp_path / "g", nodes, NAMES)
    found = as_dataset(folder, split="100/0/0")
    assert found.predicted.names == ("-1", "0", "1")
    assert any("-1 is the class of 2 nodes; --missing -1" in n for n in found.notes)
    said = as_dataset(folder, split="100/0/0", options=ReadOptions(missing=("-1",)))
    assert said.data.y.tolist() == [-1, 0, 1, -1, 0, 1]
    assert describe_reading(said)["unlabelled"] == "2 nodes (-1)"
    arrays = graph(y=torch.tensor([-1, 0, 1] * 2))
    unknown = as_dataset(arrays, split="100/0/0")
    assert unknown.predicted.width == 2
    assert "2 classes, 2 nodes unlabelled (-1)" in describe(unknown)


def test_one_line_says_what_the_files_were_taken_for(tmp_path: Path) -> None:
    labels = ["a", "b", "", "b", "a", "b"]
    nodes = {"user_id": NAMES, "kind": labels, "age": [1, 2, 3, 1, 2, 3]}
    folder = write(tmp_path / "g", nodes, NAMES, splits_old="id\n")
    (folder / "notes.txt").write_text("later")
    found = read(folder, label="kind", features=("height",))
    assert describe(found).splitlines()[2] == (
        "read: label from kind; nodes named by user_id; features height; unlabelled "
        "1 node (empty); edges are followed one way, from source to target; scaled "
        "height; not read age, notes.txt, splits_old.csv"
    )


def write_twelve(folder: Path, column: str, ids: list[Any], ends: list[Any]) -> Path:
    """Writes twelve nodes in a ring, whose edges name them by `ends`."""
    folder.mkdir()
    rows = [f"{i},{'ab'[row % 2]},{row / 4}" for row, i in enumerate(ids)]
    (folder / "nodes.csv").write_text("\n".join([f"{column},label,height", *rows]))
    pairs = zip(ends, [*ends[1:], ends[0]], strict=True)
    lines = [f"{a},{b}" for a, b in pairs]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]))
    return folder


SHUFFLED = [7, 3, 11, 0, 5, 9, 1, 10, 2, 8, 4, 6]


@pytest.mark.parametrize(
    ("column", "ids", "fault"),
    [
        (
            "user_id",
            [*SHUFFLED[:-1], 7],
            "'7' is in 2 rows and edges name '6', .* in it",
        ),
        ("key", [7, *SHUFFLED], "'7' is in 2 rows"),
        ("Account", [*SHUFFLED[:-1], 99], "edges name '6', which is not in it"),
        ("code", [f"{i:04}" for i in SHUFFLED], "holds '0000' where edges name '0'"),
    ],
)
def test_a_column_that_nearly_is_the_id_is_a_question(
    column: str, ids: list[Any], fault: str, tmp_path: Path
) -> None:
    folder = write_twelve(tmp_path / "g", column, ids, SHUFFLED)
    question = f"{column} seems to be it, but .*{fault}; correct it.*--id {column}"
    with pytest.raises(UserError, match=question):
        as_dataset(folder, split="100/0/0")
    by_row = as_dataset(folder, split="100/0/0", options=ReadOptions(id=""))
    assert by_row.feature_names == (column, "height")


@pytest.mark.parametrize("column", ["year", "rank", "population"])
def test_a_column_of_whole_numbers_is_a_feature(column: str, tmp_path: Path) -> None:
    folder = write_twelve(tmp_path / "g", column, list(range(1, 13)), SHUFFLED)
    found = as_dataset(folder, split="100/0/0")
    assert found.feature_names == (column, "height")


def write_columns(folder: Path, columns: dict[str, Any], **others: str) -> Path:
    return write(folder, {"id": NAMES, **LABELS, **columns}, NAMES, **others)


@pytest.mark.parametrize(
    "names", ["valid", "test", "dev", "training", "is_valid", "test val"]
)
def test_a_feature_called_like_one_part_of_a_split_stays(
    names: str, tmp_path: Path
) -> None:
    columns = {name: [0, 1] * 3 for name in names.split()}
    folder = write_columns(tmp_path / "g", columns)
    for labelled in (True, False):
        found = as_dataset(folder, labelled=labelled)
        assert found.feature_names == (*columns, "height")


@pytest.mark.parametrize(
    ("columns", "question"),
    [
        ("train_0 val_0 test_0", "train_0 has the name of a split.*call its parts"),
        ("train1 val1 test1 train2 val2 test2", "train1 has the name of a split"),
        ("train_set", "train_set is called like a split, which lacks val"),
        ("is_train=12", "is_train is called like a split, which lacks val"),
        ("is_train=12 is_val=12 is_test=12", "is_train is '2', but a mask is 0 or 1"),
        ("role=words", "role is 'train'.*add --split-column role"),
        ("split=words is_train is_val is_test", "--split-column split, or --sp.*is_tr"),
        ("split=words fold", "fold has the name of a split although split is that"),
    ],
)
def test_a_split_that_is_not_clear_is_a_question_that_a_made_split_answers(
    columns: str, question: str, tmp_path: Path
) -> None:
    values = {"": [0, 1] * 3, "12": [1, 2] * 3, "words": PARTS}
    parts = [column.partition("=") for column in columns.split()]
    named = {name: values[kind] for name, _, kind in parts}
    folder = write_columns(tmp_path / "g", named)
    with pytest.raises(UserError, match=question):
        read(folder)
    if "role" not in named:
        made = as_dataset(folder, split="100/0/0")
        assert made.feature_names == ("height",)
        assert describe_reading(made)["not_read"] == ", ".join(named)
        assert as_dataset(folder, labelled=False).feature_names == ("height",)


def test_a_chosen_split_leaves_the_others_out(tmp_path: Path) -> None:
    masks = dict(zip(("is_train", "is_val", "is_test"), MASKS[::-1].T * 1, strict=True))
    columns = {"split": PARTS, **masks}
    folder = write_columns(tmp_path / "g", columns, train="id\np0\n")
    by_words = read(folder, split_column="split")
    assert by_words.data.train_mask.tolist() == MASKS[:, 0].tolist()
    not_read = describe_reading(by_words)["not_read"]
    assert not_read == "is_train, is_val, is_test, train.csv"
    by_masks = read(folder, split_column="is_train")
    assert by_masks.data.train_mask.tolist() == MASKS[::-1, 0].tolist()
    assert describe_reading(by_masks)["not_read"] == "split, train.csv"
    for found in (by_words, by_masks):
        assert found.feature_names == ("height",)


def test_every_word_that_may_be_a_class_is_named(tmp_path: Path) -> None:
    nodes = {"id": NAMES, "label": ["a", "b", "NA", "NA", "?", "?"]}
    folder = write(tmp_path / "g", nodes, NAMES)
    with pytest.raises(UserError, match=r"NA is .*, \? is .*--missing 'NA,\?'"):
        read(folder)


def test_tables_of_a_split_do_not_hinder_a_prediction(tmp_path: Path) -> None:
    folder = write_columns(tmp_path / "g", {}, train="id\np0\n")
    with pytest.raises(UserError, match="but none for val"):
        read(folder)
    assert as_dataset(folder, labelled=False).feature_names == ("height",)
    assert as_dataset(folder, split="100/0/0").is_split_made
