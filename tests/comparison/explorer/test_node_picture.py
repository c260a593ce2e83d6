"""`tempergat.draw_node`: what its picture shows."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import tempergat
from tempergat import UserError
from tempergat.comparison.explorer.node_picture import COLOURS
from tempergat.nn import build_model
from tests.support.tiny_graph import write_recipe, write_tables
from tests.support.typed_graph import typed_graph


def star(leaves: int = 5) -> Data:
    """Node 0 has an edge from every other node."""
    generator = torch.Generator().manual_seed(0)
    ends = torch.arange(1, leaves + 1)
    edges = torch.stack([ends, torch.zeros_like(ends)])
    x = torch.randn(leaves + 1, 4, generator=generator)
    return Data(x=x, edge_index=edges, y=torch.arange(leaves + 1) % 3)


def model() -> Any:
    torch.manual_seed(0)
    return build_model("temp_only", 4, 8, 3, heads=2).eval()


def parsed(picture: Any) -> ElementTree.Element:
    return ElementTree.fromstring(str(picture))


def lines(picture: Any, class_: str) -> list[ElementTree.Element]:
    tag = "{http://www.w3.org/2000/svg}line"
    return [e for e in parsed(picture).iter(tag) if e.get("class") == class_]


def test_the_width_of_an_edge_is_its_attention() -> None:
    data = star()
    layer = tempergat.attention(model(), data)[0]
    picture = tempergat.draw_node(model(), data, 0, layer=0, head=1)
    expected = sorted(16.0 * layer.weights[:, 1], reverse=True)
    widths = [float(edge.get("stroke-width", "")) for edge in lines(picture, "edge")]
    assert widths == pytest.approx([float(w) for w in expected], abs=0.006)


def test_colours_are_classes_and_wrong_predictions_have_a_cross() -> None:
    data = star()
    predicted = model()(data.x, data.edge_index).argmax(dim=1)
    picture = tempergat.draw_node(model(), data, 0)
    # A cross is two lines.
    assert len(lines(picture, "wrong")) == 2 * int((predicted != data.y).sum())
    for label in data.y.unique().tolist():
        assert COLOURS[label][0] in str(picture)
    right = data.clone()
    right.y = predicted
    assert not lines(tempergat.draw_node(model(), right, 0), "wrong")


def test_nodes_without_a_label_have_a_question_mark_and_no_colour() -> None:
    data = star()
    data.y[1:4] = -1
    picture = tempergat.draw_node(model(), data, 0)
    shown = [element.text for element in parsed(picture).iter() if element.text]
    # Three nodes and the legend.
    assert shown.count("?") == 4
    predicted = model()(data.x, data.edge_index).argmax(dim=1)
    said = f"node 1: class not known; predicted {predicted[1]}, attention weight"
    assert any(text.startswith(said) for text in shown)
    del data.y
    bare = tempergat.draw_node(model(), data, 0)
    assert not lines(bare, "wrong")
    assert not any(fill in str(bare) for fill, _ in COLOURS)


def test_the_words_count_layers_and_heads_from_one() -> None:
    first = tempergat.draw_node(model(), star(), 0, layer=0, head=1)
    assert "layer 1 of 2, head 2 of 2, attention weight 0." in str(first)
    # The last layer has one head, so there is no mean.
    last = tempergat.draw_node(model(), star(), 0)
    assert "layer 2 of 2, head 1 of 1" in str(last)


def test_the_weakest_of_many_neighbours_are_counted_not_drawn() -> None:
    picture = tempergat.draw_node(model(), star(30), 0, max_neighbors=10)
    assert len(lines(picture, "edge")) == 10
    assert "20 more neighbours" in str(picture)


def test_it_shows_in_notebooks_and_is_saved(tmp_path: Path) -> None:
    picture = tempergat.draw_node(model(), star(), 0)
    assert picture._repr_svg_().startswith("<svg")
    file = picture.save(tmp_path / "node.svg")
    assert ElementTree.parse(file).getroot().get("role") == "img"


def test_a_trained_model_knows_the_words_of_ids_and_classes(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    words = write_tables(folder, [f"organisation-{number}" for number in range(12)])
    recipe = write_recipe(tmp_path / "recipe.yaml", epochs=2)
    trained = tempergat.train(
        folder, "temp_only", recipe=recipe, split="40/30/30", progress=False
    )
    picture = tempergat.draw_node(trained, folder, "organisation-4")
    shown = [element.text for element in parsed(picture).iter() if element.text]
    assert words[0] in shown
    assert any("organi…ion-5 · " in text for text in shown)
    with pytest.raises(UserError, match="there is no node 'n99' in 12 nodes; ids are"):
        tempergat.draw_node(trained, folder, "n99")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node": 6}, "there is no node 6 in 6 nodes; nodes are numbered from 0 to 5"),
        ({"node": "a"}, "there is no node 'a'"),
        ({"node": 0, "layer": 2}, "no layer 2: the model has 2 layers"),
        ({"node": 0, "head": 2, "layer": 0}, "no head 2: the model has 2 heads"),
        ({"node": 0, "max_neighbors": 0}, "max_neighbors must be at least 1, got 0"),
    ],
)
def test_what_is_not_there_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        tempergat.draw_node(model(), star(), **options)


def test_a_typed_graph_is_refused() -> None:
    with pytest.raises(UserError, match="draws graphs of one node type"):
        tempergat.draw_node(model(), typed_graph(), 0)


def test_coefficients_that_are_not_numbers_are_refused_in_one_line() -> None:
    graph = star()
    graph.x[3] = torch.nan
    with pytest.raises(UserError, match="the attention of node 0 is not a number"):
        tempergat.draw_node(model(), graph, 0)
