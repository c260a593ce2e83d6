"""`tempergat compare` says which recipe was used, and what its `gat` is."""

from pathlib import Path

from torch_geometric.nn import SAGEConv

import tempergat
from tests.cli.conftest import Command
from tests.support.tiny_graph import write_graph

QUICK = ("--methods", "gcn,gat", "--runs", 2, "--epochs", 2)
RESIDUAL = (
    "All methods have a residual: each layer adds a linear map of its input, and batch "
    "norm stands between layers."
)


def test_the_table_says_that_the_default_recipe_has_residuals_and_batch_norm(
    command: Command, graph: Path
) -> None:
    ended = command("compare", graph, *QUICK, "--verbose")
    assert RESIDUAL in " ".join(ended.out.split())
    assert "--recipe plain" in " ".join(ended.out.split())
    assert "recipe   default with epochs=2" in ended.out
    assert RESIDUAL in Path("tempergat-out/graph.md").read_text()
    assert RESIDUAL in Path("tempergat-out/graph.html").read_text()


def test_the_table_of_a_recipe_without_a_residual_does_not_mention_one(
    command: Command, graph: Path
) -> None:
    ended = command("compare", graph, *QUICK, "--recipe", "plain", "--verbose")
    assert "residual" not in ended.out
    assert "recipe   plain with epochs=2" in ended.out


def test_tables_of_two_recipes_in_one_store_can_be_worse_than_best(
    command: Command, graph: Path
) -> None:
    command("compare", graph, *QUICK, "--recipe", "plain")
    command("compare", graph, *QUICK)
    plain, default = command.facts("compare", "--table", "tempergat-out")
    assert plain["recipe"].endswith("residual no, norm none")
    assert not any("residual" in note for note in plain["notes"])
    assert default["recipe"].endswith("residual yes, norm batch")
    assert any(RESIDUAL in note for note in default["notes"])


def test_own_layers_are_not_among_the_methods_with_a_residual(tmp_path: Path) -> None:
    found = tempergat.compare(
        write_graph(tmp_path / "graph.npz"),
        methods=["gat", SAGEConv],
        runs=2,
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
    ended = command("compare", graph, *QUICK, "--verbose")
    assert other in " ".join(ended.out.split())
    # Other methods of the same recipe are no other settings.
    one = command("compare", graph, "--methods", "gat", *QUICK[2:], "--verbose")
    assert "2 runs of these methods" in " ".join(one.out.split())


def test_a_screening_says_which_recipe_was_used(command: Command, graph: Path) -> None:
    ended = command("diagnose", graph, *QUICK)
    said = " ".join(ended.out.split())
    assert "The recipe is default." in said
    assert RESIDUAL in said
