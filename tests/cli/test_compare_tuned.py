"""`tempergat compare --tune`, as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command


def test_a_tuned_table_names_its_settings_and_continues(
    command: Command, graph: Path, recipe: Path
) -> None:
    pytest.importorskip("optuna")
    words = (
        "compare", graph, "--recipe", recipe, "--methods", "gat", "--runs", 2,
        "--tune", 2, "--device", "cpu",
    )  # fmt: skip
    first = command(*words)
    assert first.status == 0, first.err
    assert "2 settings of each method are tried by validation score: 4 runs" in (
        first.err
    )
    assert "search: 2 of 2 settings of each method tried" in first.err
    assert "graph_tuned_trials.csv\n" in first.out
    found = Path("tempergat-out", "graph_tuned_recipe.yaml")
    by_validation = "each method has the best of 2 settings by validation score"
    assert f"tuned    {by_validation}; for --recipe: {found}\n" in first.out
    with_it = command(
        "compare", graph, "--recipe", found, "--methods", "gat", "--runs", 2,
        "--device", "cpu", "--out", "with-it", "--json",
    )  # fmt: skip
    assert with_it.status == 0, with_it.err
    assert json.loads(with_it.out)["recipe"] == str(found)
    again = command(*words, "--json")
    assert "2 of 2 runs are there already" in again.err
    assert json.loads(again.out)["tuned"]["trials"] == 2
    shown = command("compare", "--table", "tempergat-out", "--verbose")
    assert shown.out.count("gat: learning_rate") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tune", 0), "tune is 0; give how many settings to try"),
        (("--tune", 2, "--table", "tempergat-out"), "leave out --tune"),
    ],
)
def test_what_cannot_be_tuned_ends_in_one_line(
    command: Command, graph: Path, words: tuple[object, ...], message: str
) -> None:
    ended = command("compare", graph, *words)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert message in ended.err
