"""`tempergat compare`: what a user sees, keeps and can get wrong."""

import csv
import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import yaml

from tempergat.comparison.storage.store import Store
from tempergat.data import load
from tests.cli.conftest import Command
from tests.support.all_signs import wilcoxon_by_all_signs
from tests.support.processes import ProcessStarter
from tests.support.tiny_graph import (
    write_graph,
    write_graph_of_splits,
    write_recipe,
    write_tables,
)

THREE = ("--methods", "gcn,gat,temp_gated")


def test_the_table_and_the_files_come_out(compare: Command) -> None:
    ended = compare("--runs", 5, *THREE)
    assert ended.status == 0
    for method in ("gcn", "gat", "temp_gated"):
        row = rf"^{method}(?: †)? +\d+\.\d\d ± \d+\.\d\d +\d+\.\d\d to \d+\.\d\d +5 "
        assert re.search(row, ended.out, re.MULTILINE), ended.out
    assert re.search(r"^temp_gated .* (within noise|better|worse)$", ended.out, re.M)
    assert "picture  tempergat-out/graph.png" in ended.out
    made = {path.name for path in Path("tempergat-out").iterdir()}
    assert made >= {f"graph.{kind}" for kind in ("csv", "md", "tex", "svg", "png")}
    assert made >= {"store.sqlite"}
    with open("tempergat-out/graph.csv") as file:
        assert [row["method"] for row in csv.DictReader(file)] == [
            "gcn",
            "gat",
            "temp_gated",
            "largest class",
        ]
    assert Path("tempergat-out/graph.png").read_bytes().startswith(b"\x89PNG")


def test_noise_on_the_features_is_an_option(compare: Command) -> None:
    common = ("--runs", 2, "--methods", "gat")
    ended = compare(*common, "--noise", "gaussian:0.5")
    assert ended.status == 0
    assert "With Gaussian noise on the features, 0.5 times their RMS;" in ended.out
    assert Path("tempergat-out/graph_gaussian_0.5.md").exists()
    ended = compare(*common, "--noise", "0.5")
    assert ended.status == 2
    assert "the noise is '0.5'; give gaussian:LEVEL" in ended.err


def test_progress_goes_to_standard_error_with_the_time_left(compare: Command) -> None:
    ended = compare("--runs", 2, *THREE)
    assert "graph: 60 nodes" in ended.err
    assert re.search(r"gcn: .* 2 of 6 runs, about \d+ s left", ended.err)
    assert "6 of 6 runs" in ended.err
    assert "of 6 runs" not in ended.out


def test_the_numbers_are_those_of_scipy_on_the_exported_runs(
    compare: Command, command: Command
) -> None:
    names = ("gat", "gcn", "gated", "temp_gated")
    methods = ("--methods", ",".join(names), "--baseline", "gat")
    found = {r["method"]: r for r in compare.facts("--runs", 7, *methods)["results"]}
    command("export", "tempergat-out/store.sqlite", "--to", "runs.csv")
    with open("runs.csv") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["seed"]))
    scores = {
        name: np.array(
            [
                100 * float(row["best_val_accuracy_test"])
                for row in rows
                if row["method"] == name
            ]
        )
        for name in names
    }
    gat, *variants = names
    tests = {name: scipy.stats.ttest_rel(scores[name], scores[gat]) for name in names}
    # Holm by hand: the smallest p times three, the next times two, never falling.
    corrected: dict[str, float] = {}
    for place, name in enumerate(sorted(variants, key=lambda n: tests[n].pvalue)):
        p = min(1.0, (3 - place) * tests[name].pvalue)
        corrected[name] = max([p, *corrected.values()])
    for name in names:
        assert len(scores[name]) == found[name]["runs"] == 7
        assert found[name]["mean"] == pytest.approx(np.mean(scores[name]))
        assert found[name]["std"] == pytest.approx(np.std(scores[name], ddof=1))
        interval = scipy.stats.ttest_1samp(scores[name], 0.0).confidence_interval(0.95)
        assert found[name]["low"] == pytest.approx(interval.low)
        assert found[name]["high"] == pytest.approx(interval.high)
    for name in variants:
        difference = np.round(scores[name] - scores[gat], 9)
        compared = found[name]["comparison"]
        assert compared["difference"] == pytest.approx(np.mean(difference))
        assert compared["t_p"] == pytest.approx(tests[name].pvalue)
        assert compared["t_p_holm"] == pytest.approx(corrected[name])
        wilcoxon = wilcoxon_by_all_signs(difference)
        assert compared["wilcoxon_p"] == pytest.approx(wilcoxon)
        d = np.mean(difference) / np.std(difference, ddof=1)
        assert compared["effect_size"] == pytest.approx(d)
        assert (compared["verdict"] == "within noise") == (corrected[name] >= 0.05)


def test_a_baseline_is_compared_with_all_and_run_when_not_named(
    compare: Command,
) -> None:
    facts = compare.facts("--runs", 2, "--methods", "gat,gatv2", "--baseline", "gcn")
    found = {r["method"]: r["comparison"] for r in facts["results"]}
    assert list(found) == ["gcn", "gat", "gatv2"]
    assert found["gcn"] is None
    assert found["gat"]["baseline"] == found["gatv2"]["baseline"] == "gcn"


def test_a_variant_without_its_backbone_is_reported(compare: Command) -> None:
    ended = compare("--runs", 2, "--methods", "temp_gated,gatv2")
    assert "the backbone of temp_gated is not among the methods" in ended.err


def test_runs_paper_takes_the_recipes(compare: Command) -> None:
    found = compare.facts("--runs", "paper", "--methods", "gcn")
    assert found["results"][0]["runs"] == 4


def test_failed_runs_are_shown_and_exit_with_one(
    command: Command, graph: Path, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "wild.yaml", learning_rate=1e30)
    ended = command("compare", graph, "--recipe", recipe, "--runs", 2, *THREE)
    assert ended.status == 1
    assert re.search(r"gat: 2 of 2 runs failed.*seed 0: .* at epoch \d;", ended.out)
    assert not re.search(r"at epoch \d: .* at epoch", ended.out)
    assert "Traceback" not in ended.err


def test_a_split_can_be_made(compare: Command) -> None:
    common = ("--runs", 1, "--methods", "gcn")
    first = compare(*common, "--split", "50/25/25", "--split-seed", 1)
    assert "30/15/15" in first.err
    other = compare(*common, "--split", "50/25/25", "--split-seed", 2)
    assert "already" not in other.err


def test_runs_take_turns_over_the_splits_of_a_graph(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = write_graph_of_splits(tmp_path / "of splits.npz", 3)
    common = ("compare", graph, "--recipe", recipe, *THREE)
    ended = command(*common, "--runs", 6, "--json")
    assert "3 splits: run r is on split r mod 3" in ended.err
    found = json.loads(ended.out)
    assert (found["splits"], found["pairing"]) == (3, "splits")
    assert {
        number: load(graph, split=int(number)).fingerprint for number in "012"
    } == found["fingerprints"]
    assert [r["runs"] for r in found["results"]] == [6, 6, 6]
    assert found["results"][2]["comparison"]["pairs"] == 3
    with Store("tempergat-out/store.sqlite") as store:
        assert {(run.seed, run.split) for run in store.runs()} == {
            (seed, seed % 3) for seed in range(6)
        }
    table = command(*common, "--runs", 6, "--verbose")
    assert "take turns over 3 splits" in table.out
    assert ",3," in Path("tempergat-out/of-splits.csv").read_text()

    one = command.facts(*common, "--runs", 4, "--split", 1)
    assert (one["splits"], one["pairing"]) == (1, "seeds")
    assert one["fingerprints"] == {"1": found["fingerprints"]["1"]}
    seeded = command.facts(*common, "--runs", 1, "--split-seed", 5)
    assert seeded["fingerprints"] == {"2": found["fingerprints"]["2"]}


def test_fewer_runs_than_splits_take_the_first_splits(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = write_graph_of_splits(tmp_path / "splits.npz", 5)
    ended = command(
        *("compare", graph, "--recipe", recipe, "--runs", 2, "--json"),
        *("--methods", "gcn"),
    )
    assert list(json.loads(ended.out)["fingerprints"]) == ["0", "1"]
    assert "run r is on split r;" in ended.err


@pytest.mark.parametrize("name", ["demo", "csbm"])
def test_a_generated_graph_is_the_one_that_load_gives(
    name: str, command: Command
) -> None:
    graph = [] if name == "demo" else [name]
    found = command.facts("compare", *graph, "--runs", 1, "--methods", "gcn")
    assert (found["dataset"], found["recipe"]) == (name, "demo")
    assert found["fingerprints"] == {"0": load(name).fingerprint}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["coar"], ["no dataset 'coar'", "did you mean cora"]),
        (["no/such/graph.npz"], ["no/such/graph.npz"]),
        (["csbm", "--methods", ","], ["--methods is ','"]),
        (["csbm", "--methods", "gat,gcn,gat"], ["--methods names gat twice"]),
        (["csbm", "--runs", "0"], ["--runs is '0'", "paper"]),
        (["csbm", "--runs", "9" * 5000], ["--runs is '9999", "1 to 100000"]),
        ([""], ["the graph is ''"]),
        (["csbm", "--split", ""], ["--split is ''"]),
        (["csbm", "--recipe", ""], ["no recipe ''"]),
        (["csbm", "--recipe", "gone.yaml"], ["gone.yaml", "No such file"]),
        (["csbm", "--device", "tpu"], ["--device is 'tpu'", "cpu or cuda"]),
        (["csbm", "--device", "cuda:63"], ["'cuda:63'", "doctor"]),
        (["csbm", "--split", "60-20-20"], ["60-20-20", "60/20/20"]),
        (["csbm", "--split", "3"], ["no numbered splits"]),
        (["csbm", "--out", "/dev/null"], ["/dev/null", "--out"]),
    ],
)
def test_a_mistake_ends_in_one_line_and_status_two(
    command: Command, arguments: list[str], words: list[str]
) -> None:
    ended = command("compare", *arguments)
    assert ended.status == 2
    assert ended.out == ""
    lines = [line for line in ended.err.splitlines() if line.startswith("tempergat: ")]
    assert len(lines) == 1
    assert ended.err.rstrip().endswith(lines[0])
    for word in words:
        assert word in lines[0]
    assert not Path("tempergat-out").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": np.zeros(60, np.int64)}, "two classes"),
        ({"val_mask": np.zeros(60, bool)}, "no labelled validation nodes"),
        ({"train_mask": np.zeros(60, bool)}, "train_mask"),
        ({"x": np.full((60, 3), np.nan)}, "not finite"),
        ({"x": np.zeros((60, 0), np.float32)}, "0 features per node"),
        ({"edge_index": np.array([[0], [60]])}, "edge_index"),
    ],
    ids=["one class", "no validation", "no training", "nan", "no column", "edge"],
)
def test_a_graph_without_anything_to_learn_is_refused_with_a_reason(
    command: Command,
    tmp_path: Path,
    recipe: Path,
    changes: dict[str, np.ndarray],
    words: str,
) -> None:
    graph = write_graph(tmp_path / "odd.npz", **changes)
    ended = command("compare", graph, "--recipe", recipe, "--runs", 1, *THREE)
    assert ended.status == 2
    assert words in ended.err.splitlines()[-1]
    assert "Traceback" not in ended.err
    assert words in command("data", "check", graph).err.splitlines()[-1]


def test_a_recipe_with_two_rules_of_selection_is_refused(
    compare: Command, recipe: Path
) -> None:
    text = recipe.read_text()
    recipe.write_text(
        text.replace("selection: best_val_accuracy", "selection: last_epoch", 1)
    )
    compare.refuses("best_val_accuracy and by last_epoch", "--runs", 1, *THREE)


def test_a_model_that_exceeds_memory_is_refused_with_a_reason(
    command: Command, graph: Path, tmp_path: Path
) -> None:
    # More than a process can address, so that no machine has it.
    recipe = write_recipe(tmp_path / "huge.yaml", hidden_channels=2**44)
    ended = command("compare", graph, "--recipe", recipe, "--runs", 3, *THREE)
    assert ended.status == 1
    last = ended.err.splitlines()[-1]
    assert last.startswith("tempergat: cpu has too little memory to train one run of")
    assert "the same goes for gat, temp_gated" in last
    assert "Traceback" not in ended.err


def test_methods_that_fit_memory_are_shown_when_others_do_not(
    command: Command, graph: Path, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml")
    settings = yaml.safe_load(recipe.read_text())
    settings["attention"]["hidden_channels"] = 2**44
    recipe.write_text(yaml.safe_dump(settings))
    ended = command("compare", graph, "--recipe", recipe, "--runs", 2, *THREE)
    assert ended.status == 1
    assert re.search(r"^gcn +\d+\.\d\d ± ", ended.out, re.MULTILINE)
    assert Path("tempergat-out/graph.csv").exists()
    assert "one run of gat" in ended.err.splitlines()[-1]


def test_an_option_given_twice_is_refused(command: Command) -> None:
    ended = command("data", "check", "folder", "--one-hot", "a", "--one-hot", "b")
    assert ended.status == 2
    assert "'--one-hot': it is given 2 times" in ended.err


def test_unknown_options_are_usage_errors(command: Command) -> None:
    ended = command("compare", "csbm", "--run", "3")
    assert ended.status == 2
    assert "--run" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_being_stopped_prints_the_table_so_far_and_how_to_continue(
    starter: ProcessStarter,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    graph: Path,
    number: signal.Signals,
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = write_recipe(tmp_path / "long.yaml", epochs=40)
    arguments = [
        "compare",
        "graph.npz",
        *("--recipe", recipe.name),
        *("--runs", "2"),
        *THREE,
    ]
    output = tmp_path / "output.txt"
    status = starter.stop_at("gcn: ", number, arguments, output)
    printed = output.read_text()
    assert status == 128 + number, printed
    assert re.search(r"^gcn +\d+\.\d\d ± ", printed, re.MULTILINE)
    assert not re.search("^temp_gated ", printed, re.MULTILINE)
    assert "Stopped with 2 of 6 runs" in printed
    assert f"tempergat {' '.join(arguments)}\n" in printed
    assert "Traceback" not in printed
    with Store(tmp_path / "tempergat-out" / "store.sqlite") as store:
        assert [run.method for run in store.runs()] == ["gcn", "gcn"]


@pytest.mark.parametrize(
    "name",
    [b"latin-\xe4", r"gräph 図 $\frac$ & $ _%#~^{}".encode(), b"x" * 240],
    ids=["no UTF-8", "letters of other fonts, a formula and marks", "long"],
)
def test_a_graph_may_have_any_name_a_file_can_have(
    command: Command, tmp_path: Path, recipe: Path, name: bytes
) -> None:
    graph = tmp_path / f"{os.fsdecode(name)}.npz"
    try:
        write_graph(graph)
    except OSError:
        pytest.skip("this file system has no such names")
    arguments = ("--recipe", recipe, "--methods", "gat,gated", "--runs", 2, "--json")
    ended = command("compare", graph, *arguments)
    assert ended.status == 0, ended.err
    found = json.loads(ended.out)
    assert found["dataset"] == name.decode(errors="replace")
    assert all(Path(file).exists() for file in found["files"])
    one = command("train", graph, "--recipe", recipe, "--method", "gat", "--json")
    assert one.status == 0, one.err
    assert Path(json.loads(one.out)["checkpoint"]).parent.name.endswith("-gat-seed0")


def test_control_characters_in_a_name_reach_neither_terminal_nor_files(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = write_graph(tmp_path / "\x1b]0;title\x07\x01.npz")
    arguments = ("--recipe", recipe, "--methods", "gat,gated", "--runs", 2)
    ended = command("compare", graph, *arguments)
    assert ended.status == 0, ended.err
    files = [
        path.read_text()
        for path in Path("tempergat-out").glob("*.[cmts]*")
        if path.suffix != ".sqlite"
    ]
    assert len(files) >= 4
    for text in (ended.out, ended.err, *files):
        assert not set("\x1b\x07\x01") & set(text)
    assert r"\x1b]0;title" in ended.out


def test_graphs_of_one_name_keep_their_own_tables(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    arguments = ("--recipe", recipe, "--methods", "gat", "--runs", 2)
    for folder, nodes in (("a", 60), ("b", 50), ("a", 60), ("b", 50)):
        (tmp_path / folder).mkdir(exist_ok=True)
        graph = write_graph(tmp_path / folder / "graph.npz", nodes)
        assert command("compare", graph, *arguments).status == 0
    tables = sorted(path.name for path in Path("tempergat-out").glob("*.csv"))
    assert len(tables) == 2
    assert "graph.csv" in tables
    assert re.fullmatch(r"graph-[0-9a-f]{6}\.csv", tables[0])
    # Another split of the first graph is still the first graph.
    again = ("compare", tmp_path / "a" / "graph.npz", *arguments, "--split", "50/25/25")
    assert "tempergat-out/graph.csv" in command(*again).out


def test_a_folders_name_is_not_cut_and_stays_inside_the_output_folder(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    common = ("--recipe", recipe, "--methods", "gat", "--runs", 2, "--out", "out/inner")
    for name in ("exp.1", "exp.2", "..x"):
        write_tables(tmp_path / name, [f"n{number}" for number in range(20)])
        ended = command("compare", tmp_path / name, *common)
        assert ended.status == 0, ended.err
    assert {path.name for path in Path("out/inner").glob("*.csv")} == {
        "exp.1.csv",
        "exp.2.csv",
        "x.csv",
    }
    assert [path.name for path in Path("out").iterdir()] == ["inner"]


def test_fewer_runs_than_there_are_are_counted_as_asked_for(compare: Command) -> None:
    arguments = ("--methods", "gat,gated")
    assert compare(*arguments, "--runs", 3).status == 0
    fewer = compare(*arguments, "--runs", 1)
    assert "2 methods x 1 run" in fewer.err
    assert "2 of 2 runs are there already" in fewer.err
