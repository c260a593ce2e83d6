"""`tempergat.compare`: the command's study, called from Python."""

import csv
import io
import json
import re
import tempfile
from functools import partial
from pathlib import Path

import pytest
import torch

import tempergat
from tempergat import nn
from tempergat.base import UserError
from tempergat.comparison.options import CompareOptions
from tempergat.comparison.plan import make_plan
from tempergat.comparison.storage.store import Store
from tempergat.data import load
from tempergat.stats import wilson
from tests.support.tiny_graph import write_graph, write_graph_of_splits, write_recipe
from tests.support.typed_graph import typed_graph

quiet_compare = partial(tempergat.compare, device="cpu", progress=False)
METHODS = ("gcn", "gat", "temp_gated")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path / "recipe.yaml")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_graph(tmp_path / "graph.npz")


def test_a_name_a_path_a_data_and_a_dataset_give_the_same_scores(
    graph: Path, recipe: Path
) -> None:
    dataset = load(graph)
    scores = [
        [
            run.scores["best_val_accuracy"].test
            for run in quiet_compare(given, "gat", runs=2, recipe=recipe).runs
        ]
        for given in (graph, str(graph), dataset, dataset.data)
    ]
    assert scores == [scores[0]] * 4


def test_a_comparison_can_be_read_in_every_form(graph: Path, recipe: Path) -> None:
    found = quiet_compare(graph, METHODS, runs=5, recipe=recipe)
    *rows, largest = found.table
    assert [row["method"] for row in rows] == list(METHODS)
    assert [row["mean"] for row in rows] == [
        found.result[method].summary.mean for method in METHODS
    ]
    assert largest["method"] == "largest class"
    assert len(found.runs) == 15
    assert found.best in METHODS
    assert found.best in found.verdict
    lines = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [line["baseline"] for line in lines] == ["", "", "gat", ""]
    # A dagger marks runs that predict one class only.
    assert re.search(r"\| temp_gated( †)? \|", found.to_markdown())
    assert r"temp\_gated" in found.to_latex()
    assert json.loads(found.to_json())["results"][0]["method"] == "gcn"
    assert re.search(r">temp_gated( †)?</td>", found._repr_html_())
    assert repr(found).splitlines()[-1] == found.verdict
    labels = [text.get_text() for text in found.plot().axes[0].get_yticklabels()]
    assert labels == list(METHODS)


def test_nothing_is_written_without_a_folder(
    graph: Path, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    found = quiet_compare(graph, "gat", runs=1, recipe=recipe)
    assert (found.store, found.files) == (None, ())
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_keeps_the_runs_and_the_files(
    graph: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    first = tempergat.compare(
        graph, METHODS, runs=2, recipe=recipe, device="cpu", out=out
    )
    assert [path.name for path in first.files] == [
        f"graph.{kind}" for kind in ("csv", "md", "tex", "svg", "png", "html")
    ]
    assert (out / "graph.csv").read_text() == first.to_csv()
    with Store(out / "store.sqlite") as store:
        assert len(store.runs()) == 6
    again = tempergat.compare(
        graph, METHODS, runs=2, recipe=recipe, device="cpu", out=out
    )
    assert "6 of 6 runs are there already" in capsys.readouterr().err
    assert again.to_csv() == first.to_csv()


def test_progress_goes_to_standard_error_or_nowhere(
    graph: Path, recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tempergat.compare(graph, "gat", runs=2, recipe=recipe, device="cpu")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "graph: 60 nodes" in shown.err
    assert "gat: " in shown.err
    quiet_compare(graph, "gat", 2, recipe)
    assert capsys.readouterr() == ("", "")


def test_the_table_says_what_the_choice_of_test_nodes_adds(
    graph: Path, recipe: Path, tmp_path: Path
) -> None:
    found = quiet_compare(graph, "gat", runs=2, recipe=recipe)
    nodes = int(load(graph).store.test_mask.sum())
    mean = found.table[0]["mean"]
    low, high = (100 * end for end in wilson(mean / 100, nodes))
    note = (
        f"Scores are on one test set of {nodes} nodes: with others the highest, "
        f"{mean:.2f}, could be {low:.2f} to {high:.2f} (95 %); more seeds do not "
        "reduce that."
    )
    assert note in repr(found)
    assert note in found.to_markdown()
    splits = quiet_compare(
        write_graph_of_splits(tmp_path / "splits.npz", 3), *("gat", 3, recipe)
    )
    assert "one test set" not in repr(splits)
    assert "Each split has other test nodes" in repr(splits)


def test_methods_are_compared_on_a_typed_graph(recipe: Path) -> None:
    found = quiet_compare(typed_graph(), METHODS, 2, recipe)
    assert [result.method for result in found.result.results] == list(METHODS)
    assert all(result.summary.runs == 2 for result in found.result.results)


def test_a_module_of_the_user_on_a_typed_graph_is_refused(recipe: Path) -> None:
    def mine(in_channels: int, out_channels: int) -> torch.nn.Module:
        return torch.nn.Linear(in_channels, out_channels)

    with pytest.raises(UserError, match="your own module, which takes") as refused:
        tempergat.compare(typed_graph(), [mine], 1, recipe, device="cpu")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"methods": "gta"}, "'gta'.*did you mean gat"),
        ({"methods": []}, "no methods"),
        ({"baseline": "gta"}, "'gta'.*did you mean gat"),
        ({"runs": 0}, "runs is 0; give a number from 1"),
        ({"runs": 2.5}, r"runs is 2\.5"),
        ({"runs": "many"}, "runs is 'many'"),
        ({"device": "tpu"}, "device is 'tpu'; choose auto, cpu or cuda"),
        ({"recipe": "no-such"}, "no recipe 'no-such'"),
        ({"graph": "coar"}, "did you mean cora"),
        ({"graph": 3}, "the graph is a int"),
    ],
)
def test_mistakes_are_reported_before_any_work(
    arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        tempergat.compare(**arguments)  # type: ignore[arg-type]


def test_mlp_joins_the_papers_methods_but_for_runs_paper() -> None:
    papers = tuple(name for name, method in nn.METHODS.items() if method.in_paper)
    assert len(papers) == 11
    assert make_plan(CompareOptions("cora")).methods == ("mlp", *papers)
    assert make_plan(CompareOptions("cora", runs="paper")).methods == papers
    assert make_plan(CompareOptions("cora", ["mlp"], "paper")).methods == ("mlp",)
