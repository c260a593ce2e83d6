"""`compare` with `tune`: every method has its own search, on validation nodes."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tempergat
from tempergat.base import UserError
from tempergat.comparison.display import Display
from tempergat.comparison.options import CompareOptions
from tempergat.comparison.plan import make_plan, read_graphs
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.from_store import stored_comparisons
from tempergat.comparison.run import finished_part, run_plan
from tempergat.comparison.storage.store import Store
from tempergat.comparison.tune import Choice
from tempergat.training import config_hash
from tests.comparison.test_user_methods import MeanOfNeighbours
from tests.support.tiny_graph import write_graph, write_graph_of_splits, write_recipe

pytest.importorskip("optuna")
CPU = torch.device("cpu")
SEARCH_SEEDS = {100_000, 100_001}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path / "recipe.yaml", epochs=4)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_graph(tmp_path / "graph.npz")


def tuned(graph: object, recipe: Path, **changes: Any) -> Comparison:
    arguments: dict[str, Any] = {
        "methods": ("gat", "gated"),
        "runs": 2,
        "recipe": recipe,
        "device": "cpu",
        "progress": False,
        "tune": 3,
    }
    return tempergat.compare(graph, **(arguments | changes))  # type: ignore[arg-type]


def settings_of(found: Comparison) -> list[dict[str, Any]]:
    return [choice.config.model_dump() for choice in found.tuned]


def scores_on_test(found: Comparison) -> list[float]:
    return [run.scores["best_val_accuracy"].test for run in found.runs]


def best(choice: Choice) -> float:
    return max(trial.score for trial in choice.trials if trial.score is not None)


def test_every_method_gets_as_many_settings_and_reports_other_seeds(
    graph: Path, recipe: Path, tmp_path: Path
) -> None:
    found = tuned(graph, recipe, out=tmp_path / "out")
    with Store(tmp_path / "out" / "store.sqlite") as store:
        runs = store.runs()
    for choice in found.tuned:
        searched = [
            run
            for run in runs
            if run.method == choice.method and run.seed in SEARCH_SEEDS
        ]
        assert len({run.config_hash for run in searched}) == 3
        assert len(searched) == 6
        assert choice.chosen.score == best(choice)
    assert {run.seed for run in found.runs} == {200_000, 200_001}
    for run, config in zip(found.runs[::2], settings_of(found), strict=True):
        assert run.config.items() <= config.items()
    with (tmp_path / "out" / "graph_tuned_trials.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["chosen"] for line in lines].count("True") == 2
    assert len(lines) == 6
    assert not any("test" in name for name in lines[0])


def test_the_first_setting_tried_is_the_recipes_own(graph: Path, recipe: Path) -> None:
    found = tuned(graph, recipe, tune=1)
    plan = make_plan(CompareOptions(graph, ("gat", "gated"), 2, recipe))
    assert [choice.config for choice in found.tuned] == list(plan.configs)


def test_labels_of_test_nodes_change_no_choice(recipe: Path, tmp_path: Path) -> None:
    path = write_graph_of_splits(tmp_path / "graph.npz", 2)
    with np.load(path) as arrays:
        labels, test = arrays["y"].copy(), arrays["test_mask"]
    # Test nodes of split 0 that no part of split 1 but its test part holds.
    hidden = test[:, 0] & test[:, 1]
    assert hidden.any()
    labels[hidden] = 1 - labels[hidden]
    other = tmp_path / "other.npz"
    with np.load(path) as arrays:
        np.savez(other, **{**arrays, "y": labels})
    first, second = (tuned(p, recipe, methods="gat", tune=2) for p in (path, other))
    assert settings_of(first) == settings_of(second)
    assert scores_on_test(first) != scores_on_test(second)


def test_each_split_has_its_own_search(recipe: Path, tmp_path: Path) -> None:
    path = write_graph_of_splits(tmp_path / "graph.npz", 2)
    found = tuned(path, recipe, runs=3, out=tmp_path / "out", methods="gat")
    assert [run.split for run in found.runs] == [0, 1, 0]
    chosen = {(c.method, c.split): c.config.model_dump() for c in found.tuned}
    assert len(chosen) == 2
    for run in found.runs:
        assert run.config.items() <= chosen[run.method, run.split].items()
    with Store(tmp_path / "out" / "store.sqlite") as store:
        runs = store.runs()
    for choice in found.tuned:
        scores: dict[str, list[float]] = {}
        for run in runs:
            if run.seed in SEARCH_SEEDS and run.split == choice.split:
                val = run.scores["best_val_accuracy"].val
                scores.setdefault(run.config_hash, []).append(100.0 * val)
        means = [sum(values) / 2 for values in scores.values()]
        assert choice.chosen.score == pytest.approx(max(means))
    assert "of each of the 2 splits by itself" in " ".join(found.notes)
    assert "Another search" not in " ".join(found.notes)


def test_the_recipe_that_was_found_trains_with_the_settings_found(
    recipe: Path, tmp_path: Path
) -> None:
    path = write_graph_of_splits(tmp_path / "graph.npz", 2)
    methods = ("gcn", "gat", "temp_gated_v2", MeanOfNeighbours)
    found = tuned(
        path,
        recipe,
        out=tmp_path / "out",
        methods=methods,
        metric="macro_f1",
        class_weights="balanced",
        settings={
            "training": "sampled", "fanout": "4,3", "batch_size": 8, "hidden": 4
        },
    )  # fmt: skip
    files = [file for file in found.files if file.suffix == ".yaml"]
    assert [file.name for file in files] == [
        "graph_tuned_recipe_split0.yaml",
        "graph_tuned_recipe_split1.yaml",
    ]
    for split, file in enumerate(files):
        hashes = [run.config_hash for run in found.runs if run.split == split]
        for same in (file, found.tuned_recipes[split]):
            made = [make_plan(CompareOptions(path, methods, recipe=same))]
            (plan,) = read_graphs(made)
            configs = [config.model_dump(mode="json") for config in plan.configs]
            assert [config_hash(config) for config in configs] == hashes
    trained = tempergat.compare(
        path, methods, 1, files[1], split=1, device="cpu", progress=False
    )
    assert [run.config_hash for run in trained.runs] == hashes
    again = tuned(path, files[1], split=1, methods=methods, tune=1)
    assert [run.config_hash for run in again.runs][::2] == hashes
    assert again.tuned_recipes[1] == found.tuned_recipes[1]


def test_a_stopped_search_continues_to_the_same_table(
    graph: Path, recipe: Path, tmp_path: Path
) -> None:
    whole = tuned(graph, recipe, methods="gat")
    (plan,) = read_graphs([make_plan(CompareOptions(graph, "gat", 2, recipe, tune=3))])

    class Stop(Display):
        def search(self, done: int, of: int) -> None:
            if done == 2:
                raise KeyboardInterrupt

    with Store(tmp_path / "store") as store:
        with pytest.raises(KeyboardInterrupt):
            run_plan(plan, store, CPU, Stop())
        assert finished_part(plan, store, CPU) is None
        before = len(store.runs())
        resumed = run_plan(plan, store, CPU)
        part = finished_part(plan, store, CPU)
        assert (before, len(store.runs())) == (4, 8)
    assert resumed.tuned == whole.tuned
    assert scores_on_test(resumed) == scores_on_test(whole)
    assert part is not None
    assert part.tuned == resumed.tuned
    assert part.to_csv() == resumed.to_csv()


def test_settings_that_the_user_gives_are_not_searched(
    graph: Path, recipe: Path
) -> None:
    found = tuned(graph, recipe, settings={"lr": 0.3, "dropout": 0.1}, methods="gat")
    for choice in found.tuned:
        assert {t.settings.get("learning_rate") for t in choice.trials} == {None}
        assert choice.config.learning_rate == 0.3
        assert choice.config.feature_dropout == 0.1


def test_a_users_module_is_searched_over_what_affects_it(
    graph: Path, recipe: Path
) -> None:
    found = tuned(graph, recipe, methods={"mine": MeanOfNeighbours})
    (choice,) = found.tuned
    assert set(choice.chosen.settings) == {"learning_rate", "weight_decay"}


def test_a_method_whose_trials_all_fail_is_in_the_table_as_failed(
    graph: Path, recipe: Path
) -> None:
    found = tuned(graph, recipe, methods="gat", settings={"lr": 1e30})
    assert found.result["gat"].summary.failed == 2


def test_the_table_says_what_was_tuned_and_a_store_gives_it_back(
    graph: Path, recipe: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    plain = tuned(graph, recipe, out=out, tune=None)
    found = tuned(graph, recipe, out=out)
    assert plain.files[0] != found.files[0]
    assert "best of 3 settings by mean validation" in found.to_markdown()
    assert "Another search can find others" in " ".join(found.notes)
    for choice in found.tuned:
        (line,) = (n for n in found.notes if n.startswith(f"{choice.method}: "))
        assert f"learning_rate {choice.config.learning_rate:g}" in line
    assert found.facts["tuned"]["trials"] == 3
    assert plain.facts["tuned"] is None
    first, second = stored_comparisons(out)
    assert first.to_csv() == plain.to_csv()
    assert second.to_csv() == found.to_csv()
    assert "Tuned: each method" in second.notes[0]
    assert second.notes[1:3] == found.notes[1:3]


def test_optuna_is_asked_for_before_any_work(
    graph: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match=r"pip install 'tempergat\[tune\]'"):
        tuned(graph, recipe)
