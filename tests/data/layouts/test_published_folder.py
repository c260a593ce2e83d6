"""The published layout of `edges.csv`, `features.json` and `target.csv`."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.data import Dataset, ReadOptions
from tempergat.data.user.open_graph import open_user_graph

EDGES = "id_1,id_2\n0,1\n1,2\n2,3\n3,0\n"
PAGES = "id,facebook_id,page_name,page_type\n" + "".join(
    f"{node},{node * 7919},Page {node},{kind}\n"
    for node, kind in enumerate(["tvshow", "company", "tvshow", "company"])
)
USERS = "id,days,mature,views,partner,new_id\n" + "".join(
    f"{node * 7919},{node},{kind},{node * 3},False,{node}\n"
    for node, kind in [(2, True), (0, True), (3, False), (1, False)]
)
WORDS: dict[str, Any] = {"0": [2, 0], "1": [1], "2": [], "3": [4, 4, 0]}


def load(path: Path, options: ReadOptions | None = None, **more: Any) -> Dataset:
    return open_user_graph(path, options=options, **more).choose()


def write(
    folder: Path, target: str = PAGES, edges: str = EDGES, words: Any = WORDS
) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "target.csv").write_text(target)
    (folder / "edges.csv").write_text(edges)
    text = words if isinstance(words, str) else json.dumps(words)
    (folder / "features.json").write_text(text)
    return folder


def test_pages_are_read_with_their_words_as_features(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "g"))
    data = dataset.data
    assert data.x.layout == torch.sparse_csr
    rows = [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 1]]
    assert data.x.to_dense().tolist() == rows
    assert dataset.predicted.names == ("company", "tvshow")
    assert data.y.tolist() == [1, 0, 1, 0]
    assert dataset.label_name == "page_type"
    assert dataset.undirected
    assert data.num_edges == 8


def test_vectors_of_0_and_1_are_no_lists_of_words(tmp_path: Path) -> None:
    vectors = {
        "0": [0, 1, 1, 0],
        "1": [1, 1, 1, 1],
        "2": [0, 0, 0, 0],
        "3": [1, 0, 0, 0],
    }
    x = load(write(tmp_path / "g", words=vectors)).data.x.to_dense()
    assert x.tolist() == list(vectors.values())


def test_users_are_numbered_by_the_published_column(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "g", USERS, EDGES.replace("id_1,id_2", "from,to")))
    assert dataset.node_ids == ("2", "0", "3", "1")
    assert dataset.predicted.names == ("False", "True")
    assert dataset.data.x.to_dense()[1].tolist() == [1, 0, 1, 0, 0]


def test_options_choose_other_columns(tmp_path: Path) -> None:
    target = "key,kind,colour\n0,1,red\n1,0,blue\n2,1,red\n3,1,red\n"
    folder = write(tmp_path / "g", target)
    dataset = load(folder, ReadOptions(id="key", label="colour"))
    assert dataset.predicted.names == ("blue", "red")
    with pytest.raises(UserError, match="--label"):
        load(folder)
    with pytest.raises(UserError, match=r"features of .* come from features\.json"):
        load(folder, ReadOptions(id="key", label="colour", features=("kind",)))


def test_unlabelled_folder_is_read_for_prediction(tmp_path: Path) -> None:
    folder = write(tmp_path / "g", "id\n0\n1\n2\n3\n")
    assert load(folder, labelled=False).data.y.tolist() == [-1] * 4


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("{", r"features\.json is not JSON"),
        ("[" * 99_999, r"features\.json is not JSON"),
        ('{"0": [1], "0": [2]}', "the node '0' twice"),
        ([1, 2], "holds a list"),
        (WORDS | {"9": [1]}, "the node '9', which is not among the 4 nodes"),
        ({"0": [1]}, "no list for the node '1'"),
        (WORDS | {"0": "abc"}, "words of node '0' are 'abc'"),
        (WORDS | {"0": [-1]}, r"words of node '0' are \[-1\]"),
        (WORDS | {"0": [0.5]}, r"words of node '0' are \[0\.5\]"),
        (WORDS | {"0": [True]}, r"words of node '0' are \[True\]"),
        (WORDS | {"0": [10**12]}, "words of node '0' are"),
        (WORDS | {"0": [[1]]}, "words of node '0' are"),
    ],
)
def test_mistake_in_the_words_is_one_line(
    words: Any, named: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "g", words=words)
    with pytest.raises(UserError, match=named) as caught:
        load(folder)
    assert str(folder / "features.json") in str(caught.value)
