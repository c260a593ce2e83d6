"""`tempergat compare --splits` and `compare --table`."""

import json
import math
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import yaml

from tests.cli.conftest import Command
from tests.support.tiny_graph import write_graph, write_recipe


def without_split(path: Path, nodes: int = 60) -> Path:
    """The small graph as an .npz without masks."""
    whole = write_graph(path, nodes)
    with np.load(whole) as arrays:
        kept = {name: arrays[name] for name in ("x", "y", "edge_index")}
    np.savez(whole, **kept)
    return whole


def test_tests_are_paired_over_the_splits_that_were_made(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = without_split(tmp_path / "graph.npz")
    ended = command(
        "compare", graph, "--recipe", recipe, "--methods", "gat,gated", "--runs", 10,
        "--splits", 5, "--json",
    )  # fmt: skip
    assert ended.status == 0, ended.err
    found = json.loads(ended.out)
    assert (found["pairing"], found["splits"]) == ("splits", 5)
    assert list(found["fingerprints"]) == ["0", "1", "2", "3", "4"]
    assert "5 splits: run r is on split r mod 5" in ended.err
    assert any("The splits share training nodes" in note for note in found["notes"])
    scores = {row["method"]: row["scores"] for row in found["results"]}
    means = {
        method: [(by[str(s)] + by[str(s + 5)]) / 2 for s in range(5)]
        for method, by in scores.items()
    }
    differences = np.subtract(means["gated"], means["gat"])
    # What one of the test nodes changes is the least deviation.
    test_nodes = sum(map(sum, found["results"][0]["confusion"])) / 10
    deviation = max(differences.std(ddof=1), 100 / test_nodes)
    t = differences.mean() / deviation * math.sqrt(5)
    expected = 2 * scipy.stats.t.sf(abs(t), 4)
    comparison = found["results"][1]["comparison"]
    assert comparison["plain_p_holm"] == pytest.approx(expected)
    # The splits share training nodes.
    assert found["test_to_train"] == pytest.approx(1 / 3, abs=0.05)
    assert comparison["t_p"] > expected


def test_a_table_says_which_runs_were_taken_out_of_the_store(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = write_graph(tmp_path / "graph.npz")
    arguments = ("--methods", "gat,gcn", "--runs", 4, "--recipe", recipe)
    command("compare", graph, *arguments)
    assert (
        "no longer in the store"
        not in command("compare", "--table", "tempergat-out", "--verbose").out
    )
    with sqlite3.connect("tempergat-out/store.sqlite") as store:
        store.execute("DELETE FROM runs WHERE method = 'gat' AND seed = 2")
    store.close()
    ended = command("compare", "--table", "tempergat-out", "--verbose")
    assert ended.status == 0, ended.err
    said = "gat: 1 run (seed 2) that was trained with the others is no longer in the"
    assert said in " ".join(ended.out.split())


def test_a_table_is_printed_from_the_store_alone(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = without_split(tmp_path / "graph.npz")
    arguments = ("--methods", "gat,temp_gated,gcn", "--runs", 6, "--splits", 3)
    first = command("compare", graph, "--recipe", recipe, *arguments, "--json")
    assert first.status == 0, first.err
    graph.unlink()
    store = Path("tempergat-out/store.sqlite")
    before = store.read_bytes()
    for where in (store, store.parent):
        (found,) = command.facts("compare", "--table", where)
        expected = json.loads(first.out)
        for name in ("dataset", "metric", "pairing", "splits", "best", "verdict"):
            assert found[name] == expected[name]
        assert found["results"] == expected["results"]
    assert store.read_bytes() == before
    text = command("compare", "--table", store)
    assert "temp_gated" in text.out
    assert text.out.splitlines()[-1] == expected["answer"]


def test_several_graphs_and_recipes_have_a_table_each(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    longer = write_recipe(tmp_path / "longer.yaml", epochs=9)
    one = write_graph(tmp_path / "one.npz")
    two = write_graph(tmp_path / "two.npz", 50)
    for graph, settings, methods in (
        (one, recipe, "gat,gated"),
        (two, recipe, "gat"),
        (one, longer, "gcn,gat,gated"),
    ):
        ended = command(
            "compare", graph, "--recipe", settings, "--methods", methods, "--runs", 2
        )
        assert ended.status == 0
    found = command.facts("compare", "--table", "tempergat-out")
    tables = [
        (table["dataset"], [row["method"] for row in table["results"]])
        for table in found
    ]
    assert ("two", ["gat"]) in tables
    assert ("one", ["gcn", "gat", "gated"]) in tables
    chosen = command("compare", "two", "--table", "tempergat-out", "--json")
    assert [table["dataset"] for table in json.loads(chosen.out)] == ["two"]
    missing = command("compare", "tow", "--table", "tempergat-out")
    assert missing.status == 2
    assert "has no runs on 'tow'; did you mean two?" in missing.err


@pytest.mark.parametrize(
    "option", [("--methods", "gat"), ("--metric", "roc_auc"), ("--no-scale",)]
)
def test_what_a_table_does_not_heed_is_refused(
    option: tuple[str, ...], command: Command
) -> None:
    command.refuses(
        f"prints what a store holds and trains nothing; leave out {option[0]}",
        "compare",
        *("--table", "tempergat-out"),
        *option,
    )


def test_runs_that_two_recipes_share_are_in_the_table_of_each(
    command: Command, graph: Path, recipe: Path, tmp_path: Path
) -> None:
    settings = yaml.safe_load(recipe.read_text())
    settings["attention"]["heads"] = 4
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(settings))
    printed = []
    for chosen in (recipe, other):
        ended = command(
            "compare", graph, "--recipe", chosen, "--methods", "gcn,gat", "--runs", 2,
            "--json",
        )  # fmt: skip
        assert ended.status == 0, ended.err
        printed.append(json.loads(ended.out)["results"])
    found = command.facts("compare", "--table", "tempergat-out")
    assert [table["results"] for table in found] == printed


def test_a_table_has_no_method_that_only_a_later_recipe_asked_for(
    compare: Command, command: Command, recipe: Path
) -> None:
    for methods, heads in (("gat,gated", 4), ("gat,gcn", 2), ("gat", 1)):
        ended = compare("--methods", methods, "--heads",
            heads, "--runs", 2,
        )  # fmt: skip
        assert ended.status == 0, ended.err
    found = command.facts("compare", "--table", "tempergat-out")
    tables = [[row["method"] for row in table["results"]] for table in found]
    assert tables[:2] == [["gat", "gated"], ["gat", "gcn"]]
    # The third recipe may have asked for the earlier runs of gcn, so a note says it.
    assert tables[2] == ["gcn", "gat"]
    assert "gcn: the runs are also in an earlier table" in found[2]["notes"][0]


def test_learned_values_are_printed_from_the_store(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = write_graph(tmp_path / "graph.npz")
    methods = ("--methods", "gat,temp_gated")
    ended = command("compare", graph, *methods, "--runs", 2, "--recipe", recipe)
    assert "last gate" not in ended.out
    found = command.facts("compare", "--table", "tempergat-out")[0]["results"][1]
    ended = command("compare", "--table", "tempergat-out", "--learned")
    (heading,) = (line for line in ended.out.splitlines() if "last gate" in line)
    assert " ".join(heading.split()) == "method layer T gate last T last gate"
    *_, first, second = (
        line.split() for line in ended.out.splitlines() if "temp_gated " in line
    )
    for layer, row in enumerate((first, second)):
        assert row[:2] == ["temp_gated", str(layer + 1)]
        means = (
            found[moment][name][layer]
            for moment in ("selected", "last")
            for name in ("temperatures", "gate_means")
        )
        assert row[2::3] == [f"{mean:.3f}" for mean in means]


def test_methods_without_temperature_and_gate_have_learned_nothing_to_print(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = write_graph(tmp_path / "graph.npz")
    ended = command(
        "compare", graph, "--methods", "gat", "--runs", 2, "--recipe", recipe,
        "--learned",
    )  # fmt: skip
    assert "no method here has a temperature or a gate" in ended.out
