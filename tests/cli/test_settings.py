"""The options that change settings of a recipe."""

import json
import shlex
from pathlib import Path

import pytest

from tempergat.training import METRICS
from tests.cli.conftest import Command

TWO = ("--methods", "gcn,gat", "--runs", "2", "--device", "cpu")


def test_compare_takes_settings_says_them_and_keeps_runs_apart(
    command: Command, graph: Path, recipe: Path
) -> None:
    usual = ("compare", graph, "--recipe", recipe, *TWO)
    assert command(*usual).status == 0
    changed = (*usual, "--epochs", 3, "--hidden", 6, "--heads", 3, "--lr", 0.1)
    ended = command(*changed)
    assert ended.status == 0
    assert f"recipe {recipe} with hidden=6, heads=3, epochs=3, lr=0.1" in ended.err
    assert "are there already" not in ended.err
    again = command(*changed, "--json")
    assert "4 of 4 runs are there already" in again.err
    facts = json.loads(again.out)
    assert facts["settings"] == {"epochs": 3, "lr": 0.1, "hidden": 6, "heads": 3}


def test_compare_reports_another_metric(compare: Command) -> None:
    ended = compare(*(*TWO, "--metric", "roc_auc"))
    assert ended.status == 0
    title = "graph: test ROC AUC in percent, at the first epoch of best validation ROC"
    assert title in ended.out


def test_the_help_names_every_metric(command: Command) -> None:
    words = command("compare", "--help").out
    assert all(metric in words for metric in METRICS)


def test_any_setting_can_be_given_and_stands_in_table_report_and_store(
    command: Command, graph: Path, recipe: Path
) -> None:
    usual = ("compare", graph, "--recipe", recipe, "--methods", "gat,gated,temp_only")
    usual = (*usual, "--runs", "2", "--device", "cpu")
    assert command(*usual).status == 0
    asked = (*usual, "--set", "gate_penalty=0.5", "--set", "epochs=8")
    ended = command(*asked)
    assert ended.status == 0, ended.err
    words = "with gate_penalty=0.5, epochs=8"
    assert f"recipe {recipe} {words}" in ended.err
    line = "gate_penalty is for methods with a gate, like gated, and does not change "
    assert f"{line}gat and temp_only" in ended.err
    # Runs of gat and temp_only are those of before.
    assert "4 of 6 runs are there already" in ended.err
    assert f"recipe   {recipe} {words}" in ended.out
    note = f"Settings: recipe {recipe} {words}. {line}gat and temp_only."
    assert note in Path("tempergat-out/graph.md").read_text().replace("\\_", "_")
    page = Path("tempergat-out/graph.html").read_text()
    assert "gate_penalty 0.5, epochs 8" in page
    assert command.facts(*asked)["settings"] == {"gate_penalty": 0.5, "epochs": 8}
    first, second = command.facts("compare", "--table", "tempergat-out")
    assert first["recipe"].endswith("gate_penalty 0.0001")
    assert second["recipe"].endswith("gate_penalty 0.5")
    for table in (first, second):
        methods = [row["method"] for row in table["results"]]
        assert sorted(methods) == ["gat", "gated", "temp_only"]
    command("report")
    report = Path("tempergat-out/report.html").read_text()
    assert "gate_penalty 0.0001" in report
    assert "gate_penalty 0.5" in report


def test_the_command_that_repeats_a_run_has_the_settings_of_its_method(
    compare: Command, command: Command
) -> None:
    asked = ("--methods", "gat,gated", "--runs", 2, "--baseline", "gat")
    ended = compare(*asked, "--set", "gate_penalty=0.5", "--set", "norm=layer")
    *_, line, _ = ended.out.splitlines()
    typed = shlex.split(line)[2:]
    assert "norm=layer" in typed
    assert ("gate_penalty=0.5" in typed) == ("gated" in typed)
    assert command(*typed).status == 0


def test_where_residual_or_norm_is_given_there_is_one_recipe(
    command: Command, graph: Path
) -> None:
    ended = command("compare", graph, *TWO, "--set", "norm=none", "--set", "epochs=2")
    assert "recipe default with norm=none, epochs=2" in ended.err
    assert "4 of 4 runs" in ended.err


def test_a_setting_that_no_method_has_is_refused_before_work(
    compare: Command, command: Command, graph: Path
) -> None:
    words = "is for methods with a gate, like gated, not for gcn, gat; leave it out"
    compare.refuses(words, *TWO, "--set", "gate_penalty=1e-6")
    words = "heads is for methods with attention, like gat, not for mlp; leave it out"
    command.refuses(words, "train", graph, "--method", "mlp", "--set", "heads=4")


def test_the_settings_that_can_be_given_are_listed(command: Command) -> None:
    printed = command("methods", "--settings").out
    assert "learning_rate (short: lr): a number above 0" in printed
    listed = command.facts("methods", "--settings")["settings"]
    assert {row["setting"] for row in listed} >= {"gate_penalty", "jk", "selection"}


def test_train_takes_settings_and_continues_with_them(
    command: Command, graph: Path, recipe: Path
) -> None:
    usual = ("train", graph, "--method", "gat", "--recipe", recipe, "--device", "cpu")
    settings = ("--epochs", 4, "--metric", "macro_f1", "--class-weights", "balanced")
    first = command(*usual, *settings, "--out", "run", "--json")
    assert first.status == 0
    assert "epochs=4, metric=macro_f1, class_weights=balanced" in first.err
    facts = json.loads(first.out)
    assert facts["metric"] == "macro_f1"
    counts = facts["confusion"]
    assert len(counts) == len(counts[0]) == 2
    scores = facts["scores"]["best_val_accuracy"]
    assert facts["metrics"]["macro_f1"]["best_val_accuracy"] == scores
    second = command(*usual, *settings, "--out", "run", "--json")
    assert json.loads(second.out)["scores"] == facts["scores"]
    command.refuses("belongs to another run", *usual, "--epochs", 5, "--out", "run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epochs", 0), "epochs is 0; give a whole number from 1 to 1,000,000"),
        (("--training", "x"), "training is 'x'; give full or sampled"),
        (("--fanout", "5,5"), "fanout is for sampled training, and these settings"),
        (("--training", "sampled", "--fanout", "5,x"), "fanout is '5,x'; give how"),
    ],
)
def test_a_wrong_setting_ends_in_one_line(
    compare: Command, options: tuple[object, ...], message: str
) -> None:
    ended = compare(*TWO, *options)
    assert ended.status == 2
    assert message in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_train_and_compare_sample_where_they_are_told_to(
    compare: Command, command: Command, graph: Path, recipe: Path
) -> None:
    sampled = ("--training", "sampled", "--fanout", "4,3", "--batch-size", 8)
    usual = ("train", graph, "--method", "temp_gated", "--recipe", recipe)
    first = command(*usual, *sampled, "--device", "cpu", "--out", "run", "--json")
    assert first.status == 0, first.err
    assert "with training=sampled, fanout=4,3, batch_size=8" in first.err
    facts = json.loads(first.out)
    assert len(facts["gate_means"]["selected"]) == 2
    predicted = command("predict", "run", graph)
    assert predicted.status == 0, predicted.err
    # The recipe's own settings suffice as well.
    text = recipe.read_text().replace("training: full", "training: sampled")
    text = text.replace("  epochs: 8", "  epochs: 8\n  fanout: [4]\n  batch_size: 20")
    recipe.write_text(text)
    ended = compare(*TWO)
    assert ended.status == 0, ended.err
    exact = compare(*TWO, "--training", "full")
    assert exact.status == 0, exact.err
