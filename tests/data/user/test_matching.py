"""Features are put into the order of training by their names."""

from pathlib import Path

import pytest
import torch

from tempergat import ReadOptions, UserError
from tempergat.data import (
    Dataset,
    as_dataset,
    match_features,
    refuse_other_columns,
)
from tempergat.data.features import as_layout

NAMES = ("age", "colour=blue", "colour=green", "colour=red", "size")


def table(folder: Path, text: str, **options: tuple[str, ...]) -> Dataset:
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text(text)
    (folder / "edges.csv").write_text("source,target\n0,1\n1,0\n")
    return as_dataset(
        folder,
        labelled=False,
        options=ReadOptions(**options),  # type: ignore[arg-type]
    )


def test_columns_in_another_order_are_put_back(tmp_path: Path) -> None:
    text = "size,colour,age\n1,red,10\n2,blue,20\n"
    found = table(tmp_path / "g", text, one_hot=("colour",))
    matched = match_features(found, NAMES)
    expected = [[10.0, 0, 0, 1, 1], [20.0, 1, 0, 0, 2]]
    assert matched.feature_names == NAMES
    assert matched.data.x.tolist() == expected
    found.data.x = as_layout(found.data.x, True)
    assert match_features(found, NAMES).data.x.to_dense().tolist() == expected
    assert match_features(matched, NAMES) is matched


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("size,colour\n1,red\n2,red\n", "lacks age"),
        ("size,age\n1,3\n2,3\n", "lacks colour=blue, colour=green, colour=red"),
        ("a,b,colour\n1,3,red\n2,4,red\n", "lacks age, size and has a, b, which the"),
        ("size,colour,age\n1,pink,3\n2,red,3\n", "colour holds 'pink', which no train"),
    ],
)
def test_other_names_are_refused(text: str, line: str, tmp_path: Path) -> None:
    options = {"one_hot": ("colour",)} if "colour" in text else {}
    found = table(tmp_path / "g", text, **options)
    with pytest.raises(UserError, match=line):
        match_features(found, NAMES)


def test_numbers_in_columns_called_like_words_are_not_made_up(tmp_path: Path) -> None:
    graph = table(tmp_path / "g", "a=1,b\n1,3\n2,4\n")
    with pytest.raises(UserError, match="lacks a=2, a=3"):
        match_features(graph, ("a=1", "a=2", "a=3", "b"))
    with pytest.raises(UserError, match="lacks a=2"):
        refuse_other_columns(tmp_path / "g", ("a=1", "a=2", "b"), None)


def test_features_without_names_are_taken_in_order_and_it_is_said() -> None:
    from torch_geometric.data import Data

    edges = torch.tensor([[0, 1], [1, 0]])
    data = Data(x=torch.ones(2, 5), edge_index=edges, num_nodes=2)
    matched = match_features(as_dataset(data, labelled=False), NAMES)
    assert "have no names, so they are taken to be in the order" in matched.notes[0]
