"""A messy folder is read in one go: options for each fault, and a command with all."""

import re
import shlex
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tempergat import ReadOptions, UserError, train
from tempergat.data import Dataset, as_dataset
from tempergat.data.user.findings import Finding
from tempergat.data.user.report import check_graph
from tempergat.training import refuse_untrainable

COUNT = 24


def write(folder: Path, nodes: str = "nodes", edges: str = "edges") -> Path:
    """Companies with names, dates, words and gaps, and edges of other names."""
    folder.mkdir()
    rows = [
        f"ORG-{at:02},Company {at},{'yes' if at % 5 else 'no'},19{50 + at}-03-15,"
        f"{'' if at == 7 else at * 3},{'' if at == 9 else 'NSWE'[at % 4]},"
        f"{('low', 'mid', 'high')[at % 3]}"
        for at in range(COUNT)
    ]
    header = "company_id,name,listed,founded,employees,region,rating"
    (folder / f"{nodes}.csv").write_text("\n".join([header, *rows]))
    ends = [(at, (at * 5 + 1) % COUNT) for at in range(COUNT)]
    lines = [f"ORG-{a:02},ORG-{b:02},{a / 4},{'xy'[a % 2]}" for a, b in ends]
    lines += ["ORG-01,ORG-99,1,x"]
    header = "supplier,customer,volume,kind"
    (folder / f"{edges}.csv").write_text("\n".join([header, *lines]))
    return folder


SETTLED: dict[str, Any] = {
    "label": "rating",
    "id": "company_id",
    "one_hot": ("listed", "region"),
    "drop": ("name",),
    "fill": "median",
    "dates": "days",
    "source": "supplier",
    "dest": "customer",
    "drop_unknown_edges": True,
}


def read(folder: Path, **changes: Any) -> Dataset:
    return as_dataset(folder, options=ReadOptions(**{**SETTLED, **changes}))


def test_a_check_collects_all_problems_and_ends_with_a_command(tmp_path: Path) -> None:
    folder = write(tmp_path / "suppliers")
    findings = check_graph(folder, ReadOptions(label="rating"))
    problems = [each.value for each in findings if each.subject == "problem"]
    for column in ("supplier", "name", "listed", "founded", "employees", "ORG-99"):
        assert any(column in problem for problem in problems), column
    refusal, command = findings[-2:]
    assert refusal.subject == "compare"
    assert refusal.action == problems[0]
    with pytest.raises(UserError) as caught:
        as_dataset(folder, options=ReadOptions(label="rating"))
    assert str(caught.value) == problems[0]
    words = shlex.split(command.value)
    assert words[:3] == ["tempergat", "compare", str(folder)]
    assert {"--drop", "name", "--fill", "median", "--dates"} <= {*words}
    assert {"--source", "supplier", "--dest", "customer"} <= {*words}
    assert {"--id", "company_id", "--one-hot", "--drop-unknown-edges"} <= {*words}
    settled = check_graph(folder, ReadOptions(**SETTLED))
    assert {"problem", "compare", "command"}.isdisjoint(f.subject for f in settled)
    values = {finding.subject: finding.value for finding in settled}
    assert values["edges"] == COUNT


def test_a_column_that_edges_name_nodes_by_is_offered_as_ids(tmp_path: Path) -> None:
    folder = write(tmp_path / "suppliers")
    text = (folder / "nodes.csv").read_text()
    (folder / "nodes.csv").write_text(text.replace("company_id", "Company No."))
    *findings, command = check_graph(folder, ReadOptions(label="rating"))
    words = shlex.split(command.value)
    assert words[words.index("--id") + 1] == "Company No."
    assert any("--id 'Company No.', or" in str(each.value) for each in findings)
    assert words[words.index("--drop") + 1] == "name"


def test_a_column_of_words_is_offered_as_the_label_where_none_is_called_so(
    tmp_path: Path,
) -> None:
    findings = check_graph(write(tmp_path / "g"))
    problems = [each.value for each in findings if each.subject == "problem"]
    assert any("has no column label, only" in problem for problem in problems)
    assert not any("rating is" in problem for problem in problems)
    words = shlex.split(findings[-1].value)
    assert words[words.index("--label") + 1] == "rating"
    assert words[words.index("--one-hot") + 1] == "listed,region"
    assert Finding("classes", 3) in findings


def test_a_name_with_a_comma_is_one_name_in_the_command(tmp_path: Path) -> None:
    folder = write(tmp_path / "g")
    text = (folder / "nodes.csv").read_text()
    (folder / "nodes.csv").write_text(text.replace("region", '"region, state"'))
    words = shlex.split(check_graph(folder)[-1].value)
    assert words[words.index("--one-hot") + 1] == 'listed,"region, state"'


def test_gaps_and_words_of_edges_are_collected_and_filled(tmp_path: Path) -> None:
    folder = write(tmp_path / "g")
    table = folder / "edges.csv"
    table.write_text(table.read_text().replace(",2.0,", ",,"))
    columns = ("volume", "kind")
    findings = check_graph(folder, ReadOptions(label="rating", edge_features=columns))
    problems = [each.value for each in findings if each.subject == "problem"]
    assert any("kind is 'x', which is not a number" in line for line in problems)
    words = shlex.split(findings[-1].value)
    assert words[words.index("--one-hot") + 1] == "listed,region,kind"
    options = {"one_hot": ("listed", "region", "kind"), "edge_features": columns}
    graph = read(folder, fill="flag", directed=True, **options)
    names = ("volume", "volume is missing", "kind=x", "kind=y")
    assert graph.edge_feature_names == names
    by_edge = {
        tuple(e): row
        for e, row in zip(
            graph.data.edge_index.T.tolist(), graph.data.edge_attr.tolist(), strict=True
        )
    }
    # The median of the other volumes.
    assert by_edge[8, 41 % COUNT][:2] == [3.0, 1.0]
    assert by_edge[7, 36 % COUNT][:2] == [1.75, 0.0]
    # A model fills gaps of another graph as in the one that it was trained on.
    table.write_text(
        table.read_text().replace(",1.75,", ",,").replace(",2.25,", ",99,")
    )
    again = as_dataset(folder, options=graph.read_options)
    assert again.edge_feature_names == names
    assert [3.0, 1.0] in again.data.edge_attr[:, :2].tolist()


def test_words_beside_gaps_that_are_filled_are_encoded(tmp_path: Path) -> None:
    options = ReadOptions(label="rating", fill="median", drop=("name",))
    words = shlex.split(check_graph(write(tmp_path / "g"), options)[-1].value)
    assert words[words.index("--one-hot") + 1] == "listed,region"
    assert words[words.index("--drop") + 1] == "name"


def test_a_problem_that_no_option_settles_is_listed_with_the_others(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path / "g")
    table = folder / "nodes.csv"
    table.write_text(table.read_text().replace("ORG-03,", "ORG-04,"))
    findings = check_graph(folder, ReadOptions(label="rating"))
    assert [finding.subject for finding in findings][-1] == "compare"
    assert "is also that of row" in findings[-2].value


def test_options_settle_what_is_messy(tmp_path: Path) -> None:
    graph = read(write(tmp_path / "g"))
    assert graph.feature_names is not None
    assert "name" not in graph.feature_names
    assert graph.predicted.width == 3
    assert any("1 edge of nodes" in note for note in graph.notes)
    assert any("filled 1 gap in employees" in note for note in graph.notes)
    column = {name: graph.data.x[:, at] for at, name in enumerate(graph.feature_names)}
    days = np.datetime64("1950-03-15").astype(int)
    assert int(column["founded"][0]) == days
    years = read(tmp_path / "g", dates="years")
    assert years.data.x[3, graph.feature_names.index("founded")] == 1953
    assert graph.node_ids is not None
    assert graph.node_ids[1] == "ORG-01"


@pytest.mark.parametrize(
    ("fill", "number", "region"),
    [("median", 36.0, "N"), ("most-frequent", 0.0, "N"), ("flag", 36.0, "missing")],
)
def test_gaps_are_filled_as_in_the_graph_that_was_trained_on(
    fill: str, number: float, region: str, tmp_path: Path
) -> None:
    trained = read(write(tmp_path / "g"), fill=fill)
    names = list(trained.feature_names or ())
    assert trained.data.x[7, names.index("employees")] == number
    assert trained.data.x[9, names.index(f"region={region}")] == 1
    assert ("employees is missing" in names) == (fill == "flag")
    if fill == "flag":
        assert trained.data.x[:, names.index("employees is missing")].sum() == 1
    # Another graph of other values, read with the options that a model passes on.
    other = write(tmp_path / "h")
    table = other / "nodes.csv"
    rows = table.read_text().replace(",yes,", ",yes,").splitlines()
    rows = [row.replace("-03-15,", "-03-15,9", 1) for row in rows]
    table.write_text("\n".join(rows).replace("-03-15,9,", "-03-15,,"))
    again = as_dataset(other, options=trained.read_options)
    assert list(again.feature_names or ()) == names
    assert again.data.x[7, names.index("employees")] == number
    assert again.data.x[8, names.index("employees")] != 24


def test_words_of_edges_are_encoded(tmp_path: Path) -> None:
    folder = write(tmp_path / "g")
    options = {"one_hot": ("listed", "region", "kind")}
    graph = read(folder, edge_features=("volume", "kind"), directed=True, **options)
    assert graph.edge_feature_names == ("volume", "kind=x", "kind=y")
    assert graph.data.edge_attr[:, 1:].sum(dim=1).tolist() == [1.0] * COUNT
    with pytest.raises(UserError, match=r"kind is 'x'.*--one-hot"):
        read(folder, edge_features=("kind",))


def test_two_tables_of_other_names_are_taken_for_nodes_and_edges(
    tmp_path: Path,
) -> None:
    plain = read(write(tmp_path / "g"))
    other = read(write(tmp_path / "h", "companies", "links"))
    assert other.fingerprint == plain.fingerprint
    assert any("links.csv for the edges" in note for note in other.notes)
    (tmp_path / "h" / "third.csv").write_text("a\n1\n")
    with pytest.raises(UserError, match=r"has no nodes\.csv.*call its tables so"):
        read(tmp_path / "h")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"drop": ("name", "kindd")}, "--drop names 'kindd'.*did you mean kind"),
        ({"dest": None}, "only one of --source and --dest"),
        ({"source": "sender"}, "--source names 'sender', but the columns"),
        ({"drop_unknown_edges": False}, "'ORG-99'.*--drop-unknown-edges"),
        ({"fill": None}, "a missing value; fill it, for example with --fill median"),
        ({"dates": None}, "founded is '1950-03-15'.*--dates years or --dates days"),
        ({"fill": "mean"}, "fill is 'mean'"),
        ({"dates": "weeks"}, "dates is 'weeks'"),
    ],
)
def test_a_wrong_option_is_one_line(
    options: dict[str, Any], line: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=line):
        read(write(tmp_path / "g"), **options)


def graphml(path: Path, **attributes: list[Any]) -> Path:
    graph = networkx.cycle_graph(12)
    for name, values in attributes.items():
        networkx.set_node_attributes(graph, dict(enumerate(values)), name)
    networkx.write_graphml(graph, path)
    return path


NAMES = [f"P{at}" for at in range(12)]
KINDS = [at % 2 for at in range(12)]
SIZES = [float(at) for at in range(12)]


def test_graphml_of_igraph_and_gephi_takes_the_options_of_columns(
    tmp_path: Path,
) -> None:
    igraph = graphml(tmp_path / "i.graphml", name=NAMES, f0=SIZES, label=KINDS)
    plain = as_dataset(igraph, options=ReadOptions(drop=("name",)))
    named = as_dataset(igraph, options=ReadOptions(id="name"))
    assert plain.node_ids is not None
    assert plain.node_ids[3] == "3"
    assert named.node_ids == tuple(NAMES)
    assert named.feature_names == plain.feature_names == ("f0",)
    assert torch.equal(named.data.edge_index, plain.data.edge_index)
    assert (
        as_dataset(igraph, options=ReadOptions(features=("f0",))).predicted.width == 2
    )
    gephi = graphml(
        tmp_path / "g.graphml", label=NAMES, modularity_class=KINDS, size=SIZES
    )
    options = ReadOptions(label="modularity_class", drop=("label",))
    graph = as_dataset(gephi, options=options)
    assert (graph.predicted.width, graph.feature_names) == (2, ("size",))


def test_graphml_with_two_attributes_of_one_name_is_refused(tmp_path: Path) -> None:
    path = graphml(tmp_path / "g.graphml", a=SIZES, b=SIZES, label=KINDS)
    path.write_text(path.read_text().replace('attr.name="b"', 'attr.name="a"'))
    with pytest.raises(UserError, match="a second value of a; give"):
        as_dataset(path)


def test_an_object_that_is_no_graph_of_nodes_gets_a_line_on_what_to_do() -> None:
    with pytest.raises(UserError, match=r"networkx\.write_graphml\(graph, path\)"):
        as_dataset(networkx.cycle_graph(3))
    molecule = Data(
        x=torch.ones(4, 2), y=torch.tensor([1]), edge_index=torch.ones(2, 1).long()
    )
    with pytest.raises(UserError, match=r"y has 1; .* use the layers in a model"):
        as_dataset(molecule)
    with pytest.raises(UserError, match=r"a list; .* use the layers in a model"):
        train([molecule, molecule])  # type: ignore[arg-type]


def command_of(findings: list[Finding]) -> list[str]:
    assert findings[-1].subject == "command", findings[-1].value
    return shlex.split(findings[-1].value)


def replaced(folder: Path, column: str, values: list[str], mark: str = ",") -> Path:
    """A folder with other values of a column, and perhaps another mark."""
    header, *rows = (folder / "nodes.csv").read_text().splitlines()
    at = header.split(",").index(column)
    lines = [header.split(",")]
    for value, row in zip(values, rows, strict=True):
        cells = row.split(",")
        lines.append([*cells[:at], value, *cells[at + 1 :]])
    (folder / "nodes.csv").write_text("\n".join(map(mark.join, lines)))
    return folder


def test_numbers_of_unclear_marks_are_one_problem_among_others(tmp_path: Path) -> None:
    folder = write(tmp_path / "g")
    replaced(folder, "employees", [f"{271 + at}.000" for at in range(COUNT)], ";")
    findings = check_graph(folder)
    problems = [each.value for each in findings if each.subject == "problem"]
    assert any("may be 271000 or 271.000" in problem for problem in problems)
    words = command_of(findings)
    assert words[words.index("--drop") + 1] == "name,employees"
    assert words[words.index("--label") + 1] == "rating"


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("%d.03.2020", "write dates like 2020-12-31 and add --dates"),
        ("1/%d/2020", "write dates like 2020-12-31 and add --dates"),
        ("%d.5%%", "write numbers like 1234.5"),
        ("$%d", "write numbers like 1234.5"),
        ("about %d", "encode it with --one-hot"),
    ],
)
def test_many_words_that_are_dates_or_numbers_are_not_to_be_encoded(
    value: str, remedy: str, tmp_path: Path
) -> None:
    rows = [f"{value % (at // 2)},{'ab'[at % 2]}" for at in range(120)]
    (tmp_path / "nodes.csv").write_text("\n".join(["founded,label", *rows]))
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    with pytest.raises(UserError, match=re.escape(remedy)):
        as_dataset(tmp_path)


def test_ids_that_are_numbers_are_found_beside_edges_of_unknown_nodes(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path / "g")
    for table in ("nodes.csv", "edges.csv"):
        text = (folder / table).read_text().replace("ORG-", "50")
        (folder / table).write_text(text.replace("company_id", "registered"))
    words = command_of(check_graph(folder))
    assert words[words.index("--id") + 1] == "registered"
    assert words[words.index("--drop") + 1] == "name"
    assert "--drop-unknown-edges" in words


def test_a_graph_without_features_gets_a_command_that_makes_some(
    tmp_path: Path,
) -> None:
    path = tmp_path / "club.graphml"
    networkx.write_graphml(networkx.karate_club_graph(), path)
    words = command_of(check_graph(path, refuse=refuse_untrainable))
    assert words[3:] == ["--label", "club", "--make-features", "degree"]


def test_a_note_names_the_columns_with_gaps(tmp_path: Path) -> None:
    folder = write(tmp_path / "g")
    note = f"{folder}/nodes.csv: --fill median filled 1 gap in employees, 1 gap in "
    assert f"{note}region" in read(folder).notes
