"""Measurements of a graph, what a screening shows, and the command around them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from typer.testing import CliRunner

from tempergat.base.errors import UserError
from tempergat.cli.application import app
from tempergat.comparison.measure import Separability, measure, separability
from tempergat.comparison.screening import (
    Screening,
    diagnose_graph,
    screening_of,
    validation_scores,
)
from tempergat.comparison.storage.store import Store
from tempergat.data import csbm
from tempergat.data.features import as_layout
from tempergat.stats import compare_all
from tempergat.training import Recipe, Run, Scores, load_recipe
from tests.support.run_settings import config
from tests.support.tiny_graph import write_graph

CPU = torch.device("cpu")
ByMethod = dict[str, dict[int, float | None]]


def quick_recipe() -> Recipe:
    recipe = load_recipe("demo")
    attention = recipe.attention.model_copy(update={"epochs": 4})
    return recipe.model_copy(update={"attention": attention})


def screening(means: dict[str, float], spread: float = 0.5, seeds: int = 8) -> ByMethod:
    """Scores around given means, the same effect of the seed on all methods."""
    draw = np.random.default_rng(0)
    shared = draw.standard_normal(seeds)
    return {
        method: {
            seed: mean + shared[seed] + spread * draw.standard_normal()
            for seed in range(seeds)
        }
        for method, mean in means.items()
    }


def test_the_signal_to_noise_of_the_block_model_is_recovered() -> None:
    # Two classes at -mu and +mu: variance 2 |mu|^2 between means, d sigma^2 within.
    graph = csbm(n=4000, a=4, b=4, mu=2.0, d=16, sigma=1.5, split="100/0/0")
    expected = 2 * 2.0**2 / (16 * 1.5**2)
    measured = measure(graph).own.signal_to_noise
    assert measured == pytest.approx(expected, rel=0.1)


def test_features_without_signal_have_hardly_any_reliable_coordinate() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(4, size=300)
    measured = separability(draw.standard_normal((300, 200)), labels)
    assert measured.signal_to_noise == pytest.approx(0.0, abs=0.005)
    assert measured.reliable_share is not None
    assert measured.reliable_share <= 0.01


def test_coordinates_that_carry_the_signal_are_counted() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(3, size=300)
    x = draw.standard_normal((300, 100))
    x[:, :10] += 2.0 * labels[:, None]
    measured = separability(x, labels)
    assert measured.reliable_share == pytest.approx(0.1, abs=0.02)
    assert measured.top_tenth_share == pytest.approx(1.0, abs=0.03)


def test_constant_features_and_single_classes_are_unknown_not_numbers() -> None:
    draw = np.random.default_rng(0)
    labels = np.arange(20) % 2
    # What rounding leaves of constant features is not measured.
    rounded = 1.0 + 1e-16 * draw.integers(-3, 4, (20, 3))
    unknown = Separability(None, None, None)
    assert separability(np.ones((20, 3)), labels) == unknown
    assert separability(rounded, labels) == unknown
    assert separability(draw.random((20, 3)), np.zeros(20, int)) == unknown


def test_a_coordinate_that_separates_the_classes_perfectly_is_reliable() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(2, size=60)
    x = draw.standard_normal((60, 10))
    x[:, 0] = labels
    assert separability(x, labels).reliable_share == pytest.approx(0.1)
    sure = separability(x[:, :1], labels)
    assert (sure.signal_to_noise, sure.reliable_share) == (None, 1.0)


def test_averaging_over_like_neighbours_raises_the_signal() -> None:
    measured = measure(csbm(n=1000, a=12, b=1, mu=1.0, d=16, sigma=1.0))
    own, means = measured.own.signal_to_noise, measured.neighbours.signal_to_noise
    assert own is not None
    assert means is not None
    assert means > 2 * own
    assert measured.adjusted_homophily == pytest.approx(11 / 13, abs=0.1)


def test_sparse_and_dense_features_measure_alike() -> None:
    graph = csbm(n=200, d=12, sigma=0.5)
    x = torch.where(graph.data.x > 0.6, graph.data.x, 0.0)
    measured = []
    for sparse in (True, False):
        data = graph.data.clone()
        data.x = as_layout(x, sparse)
        settings = config("gat", normalize_features=True)
        measured.append(measure(replace(graph, data=data), settings))
    assert measured[0].density == measured[1].density < 0.5
    for side in ("own", "neighbours"):
        ours, theirs = (vars(getattr(m, side)) for m in measured)
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_test_labels_play_no_part_in_the_measurements() -> None:
    graph = csbm(n=200, d=12)
    data = graph.data.clone()
    data.y = torch.where(data.test_mask, 0, data.y)
    assert measure(replace(graph, data=data)) == measure(graph)


def members(shown: Screening) -> tuple[str, ...]:
    assert shown.best_set is not None
    return shown.best_set.members


def test_one_method_better_than_all_others_is_called_best() -> None:
    means = {"gcn": 70.0, "gat": 71.0, "mlp": 60.0, "temp_gated": 76.0}
    shown = screening_of(screening(means), validation_nodes=500)
    assert (shown.best, members(shown)) == ("temp_gated", ("temp_gated",))
    assert shown.screened[0].highest_share == pytest.approx(1.0)
    assert shown.beats_mlp is not None
    assert shown.beats_mlp.word == "shown"
    assert shown.sentence == (
        "temp_gated is the best of four on the validation nodes (95 %); left out: gat, "
        "gcn, mlp."
    )


def test_a_screening_has_the_words_of_compare() -> None:
    means = {"gcn": 60.0, "gat": 71.0, "mlp": 71.1, "temp_gated": 71.2}
    parameters = {"gcn": 10, "gat": 20, "mlp": 15, "temp_gated": 30}
    shown = screening_of(screening(means), 500, parameters)
    assert (shown.best, shown.simplest) == ("temp_gated", "mlp")
    assert set(members(shown)) == {"temp_gated", "gat", "mlp"}
    assert shown.sentence == (
        "No method beats mlp by a point or more: the edges do not help by as much. The "
        "best of four on the validation nodes is one of these three (95 %): "
        "temp_gated, gat and mlp; the simplest of them: mlp; left out: gcn."
    )


def test_a_screening_tests_all_pairs_of_methods() -> None:
    scores = screening({"gcn": 80.0, "gat": 79.8, "gatv2": 79.9, "mlp": 79.7})
    shown = screening_of(scores, 500)
    ranked = {entry.method: scores[entry.method] for entry in shown.screened}
    expected = {c.method: c for c in compare_all(ranked) if c.baseline == shown.best}
    assert {e.method: e.against_best for e in shown.screened[1:]} == expected


def test_a_screening_leaves_out_a_method_with_one_finished_run() -> None:
    scores = screening({"gat": 70.0, "gatv2": 60.0})
    scores["gated"] = {0: 99.0} | dict.fromkeys(range(1, 8))
    shown = screening_of(scores, 500)
    assert (shown.best, members(shown)) == ("gat", ("gat",))
    assert shown.sentence == (
        "gated has too few runs to be compared. gat is the best of two on the "
        "validation nodes (95 %); left out: gatv2."
    )


def test_one_run_or_one_finished_method_shows_nothing() -> None:
    shown = screening_of(screening({"gat": 70.0, "gated": 90.0}, seeds=1), 500)
    assert shown.best_set is None
    assert shown.sentence.startswith("Too few runs to compare methods")
    scores = screening({"gat": 70.0})
    scores["gated"] = dict.fromkeys(range(8))
    shown = screening_of(scores, 500)
    assert (shown.failed, shown.best_set) == (("gated",), None)
    assert shown.sentence == "Only gat finished a run; there is nothing to compare."
    scores["gatv2"] = screening({"gatv2": 60.0})["gatv2"]
    assert screening_of(scores, 500).failed == ("gated",)


def test_few_validation_nodes_have_a_large_standard_error() -> None:
    scores = screening({"gat": 80.0, "gated": 70.0}, spread=0.0)
    assert screening_of(scores, 100).standard_error == pytest.approx(4.0, abs=0.1)
    # All right, but of one node only.
    scores["gat"] = dict.fromkeys(range(8), 100.0)
    assert screening_of(scores, 1).standard_error > 20


def test_the_screening_is_stored_and_not_trained_twice(tmp_path: Path) -> None:
    graph = csbm(n=80, d=8)
    with Store(tmp_path / "store.sqlite") as store:
        methods = ("gat", "temp_only")
        first, again = (
            diagnose_graph(
                graph, quick_recipe(), store, CPU, methods=methods, runs=2, epochs=3
            )
            for _ in range(2)
        )
        assert again == first
        assert [run.config["epochs"] for run in store.runs()] == [3] * 4


def test_methods_are_judged_on_validation_nodes_alone() -> None:
    scores = {"best_val_accuracy": Scores(epoch=3, train=1.0, val=0.7, test=0.9)}
    config = {"selection": "best_val_accuracy"}
    run = Run("mine", "f", "gat", 5, config, scores)
    failed = Run("mine", "f", "gat", 6, config, status="failed", reason="nan")
    assert validation_scores([run, failed]) == {"gat": {5: 70.0, 6: None}}


def test_a_screening_of_one_method_is_refused(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "store.sqlite") as store,
        pytest.raises(UserError, match="gat alone has nothing to be compared with"),
    ):
        diagnose_graph(csbm(n=80), quick_recipe(), store, CPU, methods=("gat",))


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_measures_and_screens_and_recommends_nothing(
    tmp_path: Path, as_json: bool
) -> None:
    write_graph(tmp_path / "mine.npz")
    recipe = quick_recipe().model_dump(mode="json")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    words = ["diagnose", str(tmp_path / "mine.npz"), "--methods", "gat,gated"]
    words += ["--runs", "2", "--device", "cpu", "--out", str(tmp_path / "out")]
    words += ["--recipe", str(tmp_path / "recipe.yaml"), "--quiet"]
    words += ["--json"] if as_json else []
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0
    if as_json:
        facts = json.loads(result.stdout)
        names = "best best_set simplest beats_mlp screened failed standard_error"
        assert set(facts["screening"]) == set(names.split())
        assert facts["measurements"]["own"]["signal_to_noise"] > 0
        assert facts["sentence"]
    else:
        assert "feature signal-to-noise" in result.stdout
        assert "mine: screening" in result.stdout
        assert "standard error of" in result.stdout
