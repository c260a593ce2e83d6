"""`tempergat compare a b c`: several graphs, one store, one summary."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import tempergat
from tempergat.comparison.storage.store import Store
from tempergat.data import csbm, load_splits
from tempergat.training import Run
from tests.cli.conftest import Command
from tests.cli.test_compare_table import without_split
from tests.support.tiny_graph import write_graph, write_graph_of_splits

METHODS = ("--methods", "gcn,gat,temp_gated")


@pytest.fixture
def graphs(tmp_path: Path) -> list[Path]:
    return [
        write_graph(tmp_path / f"{name}.npz", n) for name, n in (("a", 60), ("b", 70))
    ]


def runs_of(out: Path) -> list[Run]:
    with Store(out / "store.sqlite", read_only=True) as store:
        runs = [replace(run, time_s=0.0, group_id=None) for run in store.runs()]
    return sorted(runs, key=lambda run: (run.dataset, run.method, run.seed))


def tables(out: Path, *names: str) -> list[object]:
    found: list[object] = []
    for name in names:
        rows = list(csv.DictReader((out / f"{name}.csv").read_text().splitlines()))
        found.append([{k: v for k, v in row.items() if k != "time_s"} for row in rows])
        found += [(out / f"{name}.{end}").read_text() for end in ("md", "tex")]
    return found


def test_each_graph_has_the_tables_of_a_command_of_its_own(
    command: Command, graphs: list[Path], recipe: Path
) -> None:
    common = ("--recipe", recipe, "--runs", 2, *METHODS)
    ended = command("compare", *graphs, *common, "--out", "both")
    assert ended.status == 0, ended.err
    alone = command("compare", graphs[1], *common, "--out", "alone")
    of_b = [line for line in alone.out.splitlines() if not line.startswith("more ")]
    assert set("\n".join(of_b).replace("alone/", "both/").splitlines()) <= set(
        ended.out.splitlines()
    )
    assert tables(Path("both"), "b") == tables(Path("alone"), "b")
    of_b = [run for run in runs_of(Path("both")) if run.dataset == "b"]
    assert of_b == runs_of(Path("alone"))
    assert not list(Path("alone").glob("summary*"))
    summary = ended.out[ended.out.index("Summary of 2 graphs") :]
    assert "2 graphs are too few for a test of ranks" in summary
    assert "both/summary.csv" in summary


def test_the_same_command_trains_nothing_twice_and_json_holds_every_graph(
    command: Command, graphs: list[Path], recipe: Path
) -> None:
    common = ("--recipe", recipe, "--runs", 2, "--methods", "gat,gated", "--json")
    first, again = (command("compare", *graphs, *common) for _ in range(2))
    assert first.status == again.status == 0
    assert again.err.count("4 of 4 runs are there already") == 2
    assert again.out == first.out
    found = json.loads(first.out)
    assert list(found["graphs"]) == ["a", "b"]
    assert found["graphs"]["b"]["dataset"] == "b"
    assert set(found["summary"]["average_ranks"]) == {"gat", "gated"}
    assert found["complete"]
    stored = command("compare", "b", "a", "--table", "tempergat-out")
    assert stored.out.index("b: test") < stored.out.index("a: test")
    assert "Summary of 2 graphs" in stored.out


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ("none.npz", "none.npz"),
        ("citeseeer", "citeseeer"),
        ("empty.npz", "empty.npz has no node in train_mask"),
        ("a.npz", "a and a are the same graph; give each graph once"),
    ],
)
def test_a_graph_that_is_missing_untrainable_or_given_twice_stops_before_training(
    command: Command,
    graphs: list[Path],
    recipe: Path,
    tmp_path: Path,
    graph: str,
    words: str,
) -> None:
    write_graph(tmp_path / "empty.npz", train_mask=np.zeros(60, bool))
    command.refuses(words, "compare", *graphs, graph, "--recipe", recipe)
    assert not Path("tempergat-out/store.sqlite").exists()


def test_made_splits_are_for_the_graphs_that_come_with_none(tmp_path: Path) -> None:
    given = write_graph_of_splits(tmp_path / "given.npz", 3)
    made = without_split(tmp_path / "made.npz", 70)
    keep = {"made_splits": 2, "keep_given_splits": True}
    assert [len(load_splits(path, **keep)) for path in (given, made)] == [3, 2]


def test_a_list_of_graphs_in_python_gives_the_comparison_of_each(
    recipe: Path,
) -> None:
    first, second = (csbm(n=n, a=10.0, b=4.0, d=8, mu=2.0).data for n in (60, 70))
    found = tempergat.compare(
        [first, second],
        methods=["gat", "gated"],
        runs=2,
        recipe=recipe,
        progress=False,
    )
    assert isinstance(found, tempergat.Comparisons)
    assert len(set(found.names)) == 2
    assert [len(one.runs) for one in found] == [4, 4]
    with pytest.raises(tempergat.UserError, match="there are no graphs"):
        tempergat.compare([])


def test_a_mapping_gives_graphs_their_names(recipe: Path) -> None:
    first, second = (csbm(n=n, a=10.0, b=4.0, d=8, mu=2.0).data for n in (60, 70))
    options: dict[str, Any] = {"methods": ["gat"], "runs": 2, "recipe": recipe}
    found = tempergat.compare(
        {"small": first, "large": second}, progress=False, **options
    )
    assert found.names == ("small", "large")
    assert [one.runs[0].dataset for one in found] == ["small", "large"]
    for name in ("", "a\nb", "\ud800"):
        with pytest.raises(tempergat.UserError, match="give it a name in words"):
            tempergat.compare({name: first}, progress=False, **options)


@pytest.mark.parametrize(
    ("y", "task"), [(torch.tensor([1]), "classification"), (torch.rand(1, 2), "regre")]
)
def test_graphs_with_one_target_each_are_refused_by_the_name_of_their_task(
    y: torch.Tensor, task: str
) -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    graphs = [Data(x=torch.rand(3, 4), edge_index=edges, y=y) for _ in range(4)]
    # A molecule may be one atom.
    graphs.insert(1, Data(x=torch.rand(1, 4), edge_index=edges[:, :0], y=y))
    with pytest.raises(tempergat.UserError, match=f"5 graphs .* for graph {task}"):
        tempergat.compare(graphs)
