"""`tempergat compare` says which recipe was used, and what its `gat` is."""

import re
import shlex
from pathlib import Path

import pytest
from torch_geometric.nn import SAGEConv

import tempergat
from tests.cli.conftest import Command
from tests.support.tiny_graph import write_graph

QUICK = ("--methods", "gcn,gat", "--runs", 2, "--epochs", 2)
RESIDUAL = (
    "All methods have a residual: each layer adds a linear map of its input, and batch "
    "norm stands between layers."
)


def test_validation_chooses_between_two_recipes_where_a_graph_has_none(
    command: Command, graph: Path
) -> None:
    ended = command("compare", graph, *QUICK)
    assert "2 methods x 2 runs on cpu, recipe plain or default" in ended.err
    assert "each is trained with both, 8 runs" in ended.err
    assert "8 of 8 runs" in ended.err
    assert "recipe   plain or default with epochs=2" in ended.out
    said = re.search(
        "settings chosen by validation: (.*); both took .* times", ended.out
    )
    assert said is not None
    facts = command.facts("compare", graph, *QUICK)
    for row in facts["chosen"]:
        assert re.search(rf"{row['chosen']} for [\w and]*{row['method']}", said[1])
    stored = command("compare", "--table", "tempergat-out").out
    assert said[0] in stored
    assert "settings plain or default, epochs 2" in stored
    command("report")
    for file in ("graph.html", "report.html", "graph.md"):
        page = Path("tempergat-out", file).read_text()
        assert "what residual and norm bring" in page


def test_before_the_answer_stands_the_command_that_repeats_the_best_method(
    command: Command, graph: Path, recipe: Path
) -> None:
    options = ("--no-scale", "--split", "50/25/25", "--split-seed", 3)
    ended = command("compare", graph, *QUICK, *options)
    *_, line, _ = ended.out.splitlines()
    assert line.startswith("repeat   tempergat train ")
    typed = shlex.split(line)[2:]
    trained = command.facts(*typed)
    (kept,) = command.facts("compare", "--table", "tempergat-out")
    scores = {row["method"]: row["scores"]["0"] for row in kept["results"]}
    test = trained["scores"]["best_val_accuracy"]["test"]
    assert test == pytest.approx(scores[typed[3]])
    ended = command("compare", graph, *QUICK, "--recipe", recipe)
    assert f"--recipe {recipe} --epochs 2" in ended.out
    # `train` makes no noise.
    assert (
        "repeat" not in command("compare", graph, *QUICK, "--noise", "missing:0.1").out
    )


def test_the_table_says_that_the_default_recipe_has_residuals_and_batch_norm(
    command: Command, graph: Path
) -> None:
    ended = command("compare", graph, *QUICK, "--recipe", "default", "--verbose")
    assert RESIDUAL in " ".join(ended.out.split())
    assert "recipe   default with epochs=2" in ended.out
    assert RESIDUAL in Path("tempergat-out/graph.md").read_text()
    assert RESIDUAL in Path("tempergat-out/graph.html").read_text()


def test_the_table_of_a_recipe_without_a_residual_does_not_mention_one(
    command: Command, graph: Path
) -> None:
    ended = command("compare", graph, *QUICK, "--recipe", "plain", "--verbose")
    assert "residual" not in ended.out
    assert "recipe   plain with epochs=2" in ended.out


def test_a_store_of_both_recipes_gives_the_table_of_what_validation_chooses(
    command: Command, graph: Path
) -> None:
    command("compare", graph, *QUICK, "--recipe", "plain")
    (plain,) = command.facts("compare", "--table", "tempergat-out")
    assert plain["recipe"].endswith("residual no, norm none")
    assert not any("residual" in note for note in plain["notes"])
    command("compare", graph, *QUICK, "--recipe", "default")
    (both,) = command.facts("compare", "--table", "tempergat-out")
    ended = command("compare", graph, *QUICK)
    assert "8 of 8 runs are there already" in ended.err
    assert both["recipe"].startswith("plain or default, epochs 2")
    assert both["chosen"] == command.facts("compare", graph, *QUICK)["chosen"]


def test_own_layers_are_not_among_the_methods_with_a_residual(tmp_path: Path) -> None:
    found = tempergat.compare(
        write_graph(tmp_path / "graph.npz"),
        methods=["gat", SAGEConv],
        runs=2,
        recipe="default",
        settings={"epochs": 2},
        progress=False,
    )
    assert any(note.startswith("gat has a residual") for note in found.notes)


def test_the_note_on_residuals_names_a_norm_only_where_there_is_one(
    command: Command, graph: Path, tmp_path: Path
) -> None:
    source = Path(tempergat.__file__).parent / "recipes" / "default.yaml"
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(source.read_text().replace("norm: batch", "norm: null"))
    ended = command("compare", graph, *QUICK, "--recipe", recipe, "--verbose")
    said = " ".join(ended.out.split())
    assert "a linear map of its input, which layers of the usual GCN" in said
    assert "norm stands" not in said


def test_runs_of_another_recipe_in_the_store_are_mentioned_below_the_table(
    command: Command, graph: Path
) -> None:
    other = "4 runs of these methods with other settings (of another recipe"
    alone = command("compare", graph, *QUICK, "--recipe", "plain", "--verbose")
    assert "with other settings" not in alone.out
    ended = command("compare", graph, *QUICK, "--recipe", "default", "--verbose")
    assert other in " ".join(ended.out.split())
    # Other methods of the same recipe are no other settings.
    gat = ("--methods", "gat", *QUICK[2:], "--recipe", "default", "--verbose")
    one = command("compare", graph, *gat)
    assert "2 runs of these methods" in " ".join(one.out.split())
