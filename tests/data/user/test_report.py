"""Homophily, the H2Index, and the report on a user graph."""

import shlex
import time
import tracemalloc
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import homophily as pyg_homophily
from torch_geometric.utils import remove_self_loops

from tempergat.base.errors import UserError
from tempergat.data import (
    ReadOptions,
    as_dataset,
    describe_reading,
    homophily_measures,
    load,
)
from tempergat.data.homophily_measures import (
    estimate_h2_index,
    h2_index,
    homophily,
)
from tempergat.data.user import findings as user_findings
from tempergat.data.user import open_graph
from tempergat.data.user.report import check_graph
from tempergat.training import refuse_untrainable
from tests.data.conftest import require_raw_files


def findings_of(path: Path) -> dict[str, Any]:
    return {finding.subject: finding.value for finding in check_graph(path)}


def test_homophily_of_a_graph_worked_out_by_hand() -> None:
    # A path 0-1-2-3 of the classes 0, 0, 1, 1, both ways: 4 of 6 edges are alike.
    edges = np.array([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    measured = homophily(edges, np.array([0, 0, 1, 1]))
    tensors = torch.from_numpy(edges), torch.tensor([0, 0, 1, 1])
    assert homophily(*tensors) == measured
    assert measured.edge == pytest.approx(4 / 6)
    # Nodes 0 and 3 have only their like, 1 and 2 one of each.
    assert measured.node == pytest.approx((1 + 0.5 + 0.5 + 1) / 4)
    # Both classes have half of the degrees, so chance is 1/2.
    assert measured.adjusted == pytest.approx((4 / 6 - 1 / 2) / (1 / 2))


@pytest.mark.parametrize(
    ("name", "edge", "adjusted"),
    [("cora", 0.81, 0.77), ("actor", 0.22, 0.00), ("tolokers", 0.59, 0.09)],
)
def test_homophily_equals_the_published(
    name: str, edge: float, adjusted: float, tmp_path: Path
) -> None:
    require_raw_files(name, tmp_path)
    data = load(name, tmp_path).data
    measured = homophily(data.edge_index.numpy(), data.y.numpy())
    edges, _ = remove_self_loops(data.edge_index)
    theirs = pyg_homophily(edges, data.y, method="edge")
    assert measured.edge == pytest.approx(theirs, abs=1e-5)
    assert measured.edge == pytest.approx(edge, abs=0.006)
    # The published figure takes the graph as undirected.
    assert measured.adjusted == pytest.approx(adjusted, abs=0.02)


@pytest.mark.parametrize("seed", range(24))
def test_the_report_measures_the_homophily_of_the_graph_as_it_is_read(
    seed: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(3), rng.integers(-1, 3, 27)])
    edges = rng.integers(0, 30, (2, 80))
    # Each edge once, or each both ways; some are repeated, some are self-loops.
    low, high = np.sort(edges, axis=0)
    edges = (
        np.stack([low, high]) if seed % 2 else np.concatenate([edges, edges[::-1]], 1)
    )
    edges = np.concatenate([edges, edges[:, :5], [[4, 9], [4, 9]]], axis=1)
    options = ReadOptions(directed=[None, True, False][seed % 3])
    data = Data(x=torch.ones(30, 1), y=torch.from_numpy(labels))
    data.edge_index = torch.from_numpy(edges)
    file = tmp_path / "g.pt"
    torch.save(data, file)
    if seed % 4 > 1:
        file = tmp_path / "g.npz"
        arrays = {"x": data.x, "y": labels, "edge_index": edges}
        np.savez(file, **arrays)
    found = {f.subject: f for f in check_graph(file, options)}
    read = as_dataset(file, options=options).data
    source, target = read.edge_index
    inside = (source != target) & (read.y[source] >= 0) & (read.y[target] >= 0)
    ends = read.edge_index[:, inside]
    share = np.bincount(read.y[ends[1]]) / ends.size(1)
    chance = float((share**2).sum())
    edge = float((read.y[ends[0]] == read.y[ends[1]]).float().mean())
    adjusted = found["adjusted homophily"]
    assert found["edge homophily"].value == round(edge, 4)
    assert adjusted.value == pytest.approx((edge - chance) / (1 - chance), abs=1e-4)
    said = adjusted.action == "by in-degrees alone: edges lead one way"
    assert said == read.is_directed()


def test_a_graph_with_all_edges_between_two_classes_has_the_lowest_homophily(
    tmp_path: Path,
) -> None:
    (tmp_path / "nodes.csv").write_text("f,label\n1,0\n2,0\n1,1\n2,1\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,2\n0,3\n1,2\n")
    found = findings_of(tmp_path)
    assert (found["edge homophily"], found["adjusted homophily"]) == (0.0, -1.0)


def test_self_loops_do_not_count() -> None:
    edges = np.array([[0, 1, 0, 1, 2], [1, 0, 0, 1, 2]])
    measured = homophily(edges, np.array([0, 1, 1]))
    assert (measured.edge, measured.node, measured.adjusted) == (0.0, 0.0, -1.0)


def test_unlabelled_ends_do_not_count() -> None:
    edges = np.array([[0, 1, 0, 2], [1, 0, 2, 0]])
    measured = homophily(edges, np.array([0, 0, -1]))
    assert (measured.edge, measured.node) == (1.0, 1.0)
    assert measured.adjusted is None
    assert homophily(np.empty((2, 0), int), np.array([0, 1])).edge is None


def papers_and_authors() -> HeteroData:
    data = HeteroData()
    data["paper"].y = torch.tensor([0, 0, 1, -1])
    data["paper"].num_nodes = 4
    data["author"].num_nodes = 2
    written = torch.tensor([[0, 0, 1, 1, 0], [0, 1, 1, 2, 3]])
    data["author", "writes", "paper"].edge_index = written
    data["paper", "rev_writes", "author"].edge_index = written.flip(0)
    return data


def test_h2_index_of_a_graph_worked_out_by_hand() -> None:
    # Papers 0 and 1 share an author, so do 1 and 2. Among labelled papers that makes
    # seven pairs, each paper with itself included; five are alike: 5/7. The pairs end
    # five times in class 0 and twice in class 1, so chance is (25 + 4)/49, and the
    # adjusted homophily is (35/49 - 29/49) / (20/49) = 0.3.
    index = h2_index(papers_and_authors(), "paper")
    assert index == pytest.approx(0.7)
    assert type(index) is float


def test_h2_index_can_give_unlabelled_nodes_a_random_class_as_h2gb_does() -> None:
    # Paper 3, without a label, shares an author with 0 and 1: twelve pairs. In class 0
    # ten are alike and two end in class 1: chance is 104/144, the index 1 - 16/40. In
    # class 1 six are alike and five end in class 1: chance is 74/144, and 1 + 2/70.
    graph = papers_and_authors()
    found = [h2_index(graph, "paper", "random", seed) for seed in range(40)]
    in_class_0 = [value == pytest.approx(0.6) for value in found]
    assert 10 < sum(in_class_0) < 30
    rest = [value for value, is_0 in zip(found, in_class_0, strict=True) if not is_0]
    assert rest == pytest.approx([72 / 70] * len(rest))
    assert found == [h2_index(graph, "paper", "random", seed) for seed in range(40)]
    with pytest.raises(UserError, match="unlabelled is 'drawn'"):
        h2_index(graph, "paper", "drawn")  # type: ignore[arg-type]


def test_h2_index_refuses_a_type_without_labels_and_leaves_the_graph_as_it_is() -> None:
    data = papers_and_authors()
    for target in ("author", "papers"):
        with pytest.raises(UserError, match=f"no labels of node type '{target}'"):
            h2_index(data, target)
    assert set(data.node_types) == {"paper", "author"}


def test_h2_index_is_the_mean_over_metapaths_that_exist() -> None:
    data = papers_and_authors()
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0], [2]])
    # From 0 to 2 and no further: this metapath has no pair and is left out.
    assert h2_index(data, "paper") == pytest.approx(0.7)
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 2], [2, 0]])
    # There and back: each paper meets itself, which is 1, and the mean is 0.65.
    assert h2_index(data, "paper") == pytest.approx(1 - (0.3 + 1) / 2)


def test_h2_index_does_not_depend_on_the_size_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_raw_files("imdb", tmp_path)
    data = load("imdb", tmp_path).data
    whole = h2_index(data, "movie")
    monkeypatch.setattr(homophily_measures, "_PATHS_PER_BLOCK", 500)
    assert h2_index(data, "movie") == pytest.approx(whole)


def test_h2_index_is_estimated_with_its_error_where_paths_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_raw_files("imdb", tmp_path)
    data = load("imdb", tmp_path).data
    whole, error = estimate_h2_index(data, "movie") or (0.0, 1.0)
    assert whole == h2_index(data, "movie")
    assert error == 0
    monkeypatch.setattr(homophily_measures, "_MAX_PATHS", 10_000)
    estimates = [estimate_h2_index(data, "movie", seed) for seed in range(40)]
    values, errors = np.array(estimates).T
    # The deviation over seeds is what the error says, within its own chance.
    assert 0.5 < values.std() / errors.mean() < 1.5
    assert abs(values.mean() - whole) < errors.mean()
    assert (np.abs(values - whole) < 4 * errors).all()
    findings = user_findings._homophily(data, "movie", data["movie"].y.numpy(), {})
    said = {finding.subject: finding.value for finding in findings}
    assert said["H2Index"] == round(float(values[0]), 4)
    assert said["standard error of H2Index"] == round(float(errors[0]), 6)


def test_report_counts_what_is_there(tmp_path: Path) -> None:
    data = Data(
        x=torch.tensor([[0.0, 1.0], [torch.nan, 0.0], [2.0, -3.0], [0, 0], [0, 0]]),
        y=torch.tensor([0, 0, 2, -1, 2]),
        edge_index=torch.tensor([[0, 0, 1, 2, 3], [1, 1, 0, 2, 0]]),
    )
    torch.save(data, tmp_path / "g.pt")
    found = findings_of(tmp_path / "g.pt")
    assert found["nodes"] == 5
    assert found["edges"] == 5
    assert found["repeated edges"] == 1
    assert found["self-loops"] == 1
    assert found["one-way edges"] == 1
    assert found["isolated nodes"] == 2
    assert found["classes"] == 2
    assert found["unlabelled nodes"] == 1
    assert found["nodes per class"] == {"fewest": 2, "most": 2}
    assert found["nodes of each class"] == {"0": 2, "2": 2}
    assert found["split"] == "none given"
    assert found["features"] == 2
    assert found["values that are not finite"] == 1
    assert found["range of features"] == {"least": -3.0, "most": 2.0}
    assert found["share of zeros"] == 0.6
    assert found["edge homophily"] == 1.0
    with pytest.raises(UserError, match=r"nan at \[1, 0\]"):
        load(tmp_path / "g.pt")


@pytest.mark.parametrize("splits", [1, 2])
def test_report_names_a_class_that_is_in_no_split(tmp_path: Path, splits: int) -> None:
    parts = torch.tensor([0, 0, 1, 1, 2, 2, -1])
    masks = {
        f"{name}_mask": (parts == number)[:, None].repeat(1, splits)
        for number, name in enumerate(("train", "val", "test"))
    }
    data = Data(
        x=torch.eye(7),
        y=torch.tensor([0, 1, 0, 1, 0, 1, 2]),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        **{name: m[:, 0] if splits == 1 else m for name, m in masks.items()},
    )
    torch.save(data, tmp_path / "g.pt")
    (found,) = (
        finding
        for finding in check_graph(tmp_path / "g.pt")
        if finding.subject == "classes in no split"
    )
    assert found.value == "2"
    assert "2 of 3 classes are used" in found.action
    data.train_mask[6] = True
    torch.save(data, tmp_path / "g.pt")
    assert "classes in no split" not in findings_of(tmp_path / "g.pt")


def test_h2_index_of_thousands_of_millions_of_paths_takes_seconds() -> None:
    # Two authors of 42,500 papers each: 3.6 thousand million paths.
    classes = np.random.default_rng(0).integers(0, 2, 85_000)
    author = np.where(np.arange(85_000) % 5 == 0, 1 - classes, classes)
    data = HeteroData()
    data["paper"].y = torch.from_numpy(classes)
    data["paper"].num_nodes, data["author"].num_nodes = 85_000, 2
    written = torch.from_numpy(np.stack([author, np.arange(85_000)]))
    data["author", "writes", "paper"].edge_index = written
    data["paper", "rev_writes", "author"].edge_index = written.flip(0)
    tracemalloc.start()
    began = time.perf_counter()
    value, error = estimate_h2_index(data, "paper") or (0.0, 0.0)
    seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 30
    assert peak < 100 * 2**20
    # Papers of each class by each author give the pairs and where they end.
    by_author = np.histogram2d(author, classes, bins=2)[0]
    papers = by_author.sum(axis=1)
    ends = papers @ by_author / (papers**2).sum()
    alike, chance = (by_author**2).sum() / (papers**2).sum(), (ends**2).sum()
    assert 0 < error < 0.05
    assert abs(value - (1 - (alike - chance) / (1 - chance))) < 4 * error


def test_report_on_types_has_the_h2_index(tmp_path: Path) -> None:
    torch.save(papers_and_authors(), tmp_path / "g.pt")
    found = findings_of(tmp_path / "g.pt")
    assert found["nodes"] == {"paper": 4, "author": 2}
    assert found["classified node type"] == "paper"
    assert found["edges author-writes-paper"] == 5
    assert found["isolated nodes"] == {"paper": 0, "author": 0}
    assert found["H2Index"] == 0.7
    assert found["edge homophily"] is None


@pytest.mark.parametrize("missing", ["", "NA", "null", "nan"])
def test_missing_features_are_counted_by_the_report_and_named_by_loading(
    missing: str, tmp_path: Path
) -> None:
    (tmp_path / "nodes.csv").write_text(f"f,g,label\n1,{missing},0\n1,2,1\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    assert findings_of(tmp_path)["values that are not finite"] == 1
    with pytest.raises(UserError, match=rf"nodes\.csv, row 2: g is '{missing}'.*fill"):
        load(tmp_path)


def test_attributes_of_edges_that_no_method_reads_are_named_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "nodes.csv").write_text("f,label\n1,0\n1,1\n")
    (tmp_path / "edges.csv").write_text("source,weight,target,kind\n0,0.5,1,a\n")
    loaded = as_dataset(tmp_path, split="100/0/0")
    assert "the edge columns weight, kind are not used; to use" in loaded.notes[0]
    assert "not_read" not in describe_reading(loaded)
    data = Data(x=torch.ones(2, 1), y=torch.tensor([0, 1]))
    data.edge_index, data.edge_attr = torch.tensor([[0], [1]]), torch.ones(1, 2)
    torch.save(data, tmp_path / "g.pt")
    loaded = as_dataset(tmp_path / "g.pt", split="100/0/0")
    assert "the edge column edge_attr is not used; to use it" in loaded.notes[0]
    assert "not_read" not in describe_reading(loaded)


def test_report_on_a_graph_without_features_says_that_training_needs_some(
    tmp_path: Path,
) -> None:
    (tmp_path / "nodes.csv").write_text("label\n0\n1\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    assert findings_of(tmp_path)["features"] == "none"


def test_a_report_reads_the_tables_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes.csv").write_text("f,label\n" + "1,0\n2,1\n" * 5)
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    folders: list[Path] = []
    read_folder = open_graph.read_folder

    def count(folder: Path, *arguments: Any) -> Any:
        folders.append(folder)
        return read_folder(folder, *arguments)

    monkeypatch.setattr(open_graph, "read_folder", count)
    assert findings_of(tmp_path)["read: label"] == "from label"
    assert folders == [tmp_path]


def test_contradiction_stops_the_report(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("f,label\n1,0\n1,1\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,5\n")
    with pytest.raises(UserError, match=r"edges\.csv, row 2: target is '5'"):
        check_graph(tmp_path)


def test_labels_that_are_names_are_a_problem_among_others(tmp_path: Path) -> None:
    graph, rows = networkx.cycle_graph(60), range(60)
    attributes = {
        "label": [f"Person {at}" for at in rows],
        "Modularity Class": [at % 3 for at in rows],
        "city": ["" if at == 7 else "NSW"[at % 3] for at in rows],
    }
    for name, values in attributes.items():
        networkx.set_node_attributes(graph, dict(enumerate(values)), name)
    networkx.write_graphml(graph, tmp_path / "gephi.graphml")
    findings = check_graph(tmp_path / "gephi.graphml", refuse=refuse_untrainable)
    problems = [each.value for each in findings if each.subject == "problem"]
    for problem in ("a label of its own", "--one-hot", "city is missing"):
        assert any(problem in each for each in problems), problem
    words = shlex.split(findings[-1].value)
    assert words[3:7] == ["--label", "Modularity Class", "--one-hot", "city"]
    assert words[7:] == ["--drop", "label", "--fill", "most-frequent"]
    # Without a column to offer, the other problems are there all the same.
    for node in rows:
        del graph.nodes[node]["city"], graph.nodes[node]["Modularity Class"]
        graph.nodes[node]["size"] = str(node) if node else ""
    networkx.write_graphml(graph, tmp_path / "names.graphml")
    findings = check_graph(tmp_path / "names.graphml")
    problems = [each.value for each in findings if each.subject == "problem"]
    assert len(problems) == 2
    assert "a label of its own" in problems[0]
    assert "size is ''" in problems[1]
