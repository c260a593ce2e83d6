"""`tempergat tune` and `tempergat calibrate` end in files, or in one line."""

import json
from pathlib import Path

import pytest

from tempergat.training import load_recipe
from tests.cli.conftest import Command
from tests.study.tuning.test_search import write_plan
from tests.support.tiny_graph import write_graph


def test_a_search_ends_in_a_recipe_that_compare_takes(
    command: Command, graph: Path, tmp_path: Path
) -> None:
    pytest.importorskip("optuna")
    plan = write_plan(tmp_path, trials=2)
    out = tmp_path / "tuned"
    words = ("tune", graph, "--search", plan, "--out", out, "--device", "cpu")
    ending = command(*words, "--json", "--quiet")
    assert ending.status == 0, ending.err
    assert ending.err == ""
    found = json.loads(ending.out)
    assert found["recipe"] == str(out / "graph.yaml")
    settings = found["best"]["gat"]["settings"]
    recipe = load_recipe(out / "graph.yaml")
    assert recipe.config_for("temp_gated").learning_rate == settings["learning_rate"]
    again = command(*words)
    assert again.status == 0
    assert f"recipe   {out / 'graph.yaml'}" in again.out
    compared = command(
        "compare", graph, "--recipe", out / "graph.yaml", "--runs", 2,
        "--methods", "gat,temp_gated", "--quiet", "--device", "cpu",
    )  # fmt: skip
    assert compared.status == 0, compared.err


def test_two_graphs_of_one_name_have_a_recipe_each(
    command: Command, tmp_path: Path
) -> None:
    pytest.importorskip("optuna")
    plan = write_plan(tmp_path, trials=1)
    out = tmp_path / "tuned"
    made = []
    for nodes in (60, 50):
        (tmp_path / str(nodes)).mkdir()
        graph = write_graph(tmp_path / str(nodes) / "graph.npz", nodes)
        words = ("tune", graph, "--search", plan, "--out", out, "--device", "cpu")
        for _ in range(2):
            made.append(command(*words, "--json", "--quiet"))
    first, first_again, other, other_again = (json.loads(end.out) for end in made)
    assert first["recipe"] == first_again["recipe"] == str(out / "graph.yaml")
    assert other["recipe"] == other_again["recipe"] != first["recipe"]
    assert other["trials"] != first["trials"]
    assert [end.err for end in made[:2]] == ["", ""]
    assert "another graph called graph, so this one is in graph-" in made[2].err


def test_mistakes_end_in_one_line(command: Command, graph: Path) -> None:
    for words, message in (
        (("tune", "reddit"), "there is no search for 'reddit'"),
        (("tune", graph, "--search", "none.yaml"), "cannot read none.yaml"),
        (("calibrate", "reddit"), "there is no calibration of reddit"),
    ):
        ending = command(*words)
        assert ending.status == 2
        assert message in ending.err
        assert ending.err.count("\n") == 1
