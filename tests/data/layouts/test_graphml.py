"""GraphML, as networkx writes it, and what is refused in it."""

import time
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tempergat.base.errors import UserError
from tempergat.data import Dataset, ReadOptions
from tempergat.data.user.open_graph import open_user_graph


def load(path: Path, options: ReadOptions | None = None) -> Dataset:
    return open_user_graph(path, options=options).choose()


def ring(kind: type[nx.Graph] = nx.Graph, nodes: int = 6) -> nx.Graph:
    graph = kind()
    for node in range(nodes):
        word = "cat" if node % 2 else "dog"
        graph.add_node(f"n{node}", height=node / 2, tall=node > 3, label=word)
    for node in range(nodes):
        graph.add_edge(f"n{node}", f"n{(node + 1) % nodes}", weight=node + 1.0)
    return graph


def save(graph: Any, folder: Path) -> Path:
    path = folder / "g.graphml"
    if isinstance(graph, str):
        path.write_text(graph)
    else:
        nx.write_graphml(graph, path)
    return path


def test_graph_of_networkx_is_read(tmp_path: Path) -> None:
    dataset = load(save(ring(), tmp_path))
    assert dataset.node_ids == ("n0", "n1", "n2", "n3", "n4", "n5")
    assert dataset.predicted.names == ("cat", "dog")
    assert dataset.feature_names == ("height", "tall")
    expected = [[0, 0], [0.5, 0], [1, 0], [1.5, 0], [2, 1], [2.5, 1]]
    assert dataset.data.x.to_dense().tolist() == expected
    assert "weight" in " ".join(dataset.notes)


def test_file_says_which_way_edges_are_followed(tmp_path: Path) -> None:
    undirected = load(save(ring(), tmp_path))
    assert undirected.undirected
    assert undirected.data.num_edges == 12
    directed = load(save(ring(nx.DiGraph), tmp_path))
    assert not directed.undirected
    assert directed.data.num_edges == 6
    both = load(save(ring(nx.DiGraph), tmp_path), ReadOptions(directed=False))
    assert both.data.num_edges == 12


def test_weights_of_edges_are_used_when_asked_for(tmp_path: Path) -> None:
    data = load(save(ring(), tmp_path), ReadOptions(edge_weight="weight")).data
    ends = map(tuple, data.edge_index.T.tolist())
    weight = dict(zip(ends, data.edge_weight.tolist(), strict=True))
    assert weight[0, 1] == weight[1, 0] == 1
    assert weight[5, 0] == weight[0, 5] == 6


def test_attribute_of_two_types_is_one_column(tmp_path: Path) -> None:
    graph = ring()
    # networkx then declares the attribute twice.
    graph.nodes["n0"]["height"] = 7
    assert load(save(graph, tmp_path)).data.x.to_dense()[0].tolist() == [7, 0]


def test_default_of_an_attribute_is_used(tmp_path: Path) -> None:
    text = save(ring(), tmp_path).read_text()
    label = text.index('attr.name="label"')
    end = text.index("/>", label)
    text = f"{text[:end]}><default>cow</default></key>{text[end + 2 :]}"
    at = text.index('<node id="n0">')
    data = text.index("dog</data>", at)
    begin = text.rindex("<data", at, data)
    text = text[:begin] + text[data + len("dog</data>") :]
    assert load(save(text, tmp_path)).predicted.names == ("cat", "cow", "dog")


def test_entities_are_refused_before_they_are_expanded(tmp_path: Path) -> None:
    laughs = "".join(
        f'<!ENTITY l{level} "{f"&l{level - 1};" * 10 if level else "ha"}">'
        for level in range(10)
    )
    path = save(f"<!DOCTYPE graphml [{laughs}]><graphml>&l9;</graphml>", tmp_path)
    with pytest.raises(UserError, match="declares a document type"):
        load(path)
    outside = '<!DOCTYPE graphml SYSTEM "file:///etc/passwd"><graphml/>'
    with pytest.raises(UserError, match="declares a document type"):
        load(save(outside, tmp_path))


GRAPH = '<graphml><graph edgedefault="undirected">{}</graph></graphml>'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "not well-formed"),
        ("<graphml>", "not well-formed"),
        ("<graphml/>", "no element graph"),
        ("<graphml><graph/><graph/></graphml>", "a second graph"),
        (GRAPH.format("<node/>"), "no id for this node"),
        (GRAPH.format('<edge source="a"/>'), "no target for this edge"),
        (GRAPH.format("<hyperedge/>"), "an element hyperedge"),
        (GRAPH.format('<node id="a"><data key="k">1</data></node>'), "'k', which is"),
        (
            GRAPH.format('<edge source="a" target="a" directed="true"/>'),
            "direction differs",
        ),
        (GRAPH.format(""), "no column label"),
        ("\x00", "not well-formed"),
        ('<?xml version="1.0" encoding="UTF-7"?><graphml/>', "not well-formed"),
        ('<?xml version="1.0" encoding="none"?><graphml/>', "not well-formed"),
        ("<a>" * 100_000, "not well-formed"),
    ],
)
def test_mistake_is_one_line(text: str, named: str, tmp_path: Path) -> None:
    path = save(text, tmp_path)
    with pytest.raises(UserError, match=named) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_long_id_is_read_in_a_moment(tmp_path: Path) -> None:
    path = save(ring(), tmp_path)
    text = path.read_text().replace('"n0"', f'"{"n" * 10_000_000}"')
    path.write_text(text)
    began = time.process_time()
    assert load(path).data.num_nodes == 6
    assert time.process_time() - began < 5
