"""Methods that predict one class are named; confusion matrices of many are small."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import tempergat
from tempergat.base import UserError
from tempergat.comparison.report.formats import as_text
from tempergat.comparison.report.records import as_json
from tempergat.comparison.report.sentences import verdict
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tempergat.training import Run
from tests.support.made_up_runs import run
from tests.support.tiny_graph import write_graph, write_recipe

ONLY_LARGEST = ((0, 12), (0, 88))
ONLY_SMALLEST = ((12, 0), (88, 0))
BOTH = ((10, 2), (8, 80))


def result(**confusions: list[tuple[tuple[int, ...], ...]]) -> DatasetResult:
    runs: list[Run] = []
    for method, matrices in confusions.items():
        for seed, matrix in enumerate(matrices):
            score = (matrix[0][0] + matrix[1][1]) / 100
            runs.append(run(method, seed, score, confusion=matrix))
    return dataset_result(runs, list(confusions), "gat")


def test_a_method_that_only_predicts_the_largest_class_is_marked_and_named() -> None:
    found = result(gat=[BOTH] * 4, gated=[ONLY_LARGEST] * 4)
    text = as_text(result_table(found))
    assert "\ngated †  " in text
    assert "\ngat  " in text
    assert "\n† predicts only the largest class: gated in all 4 runs. " in text
    said = "Only the largest class is predicted by gated in all runs."
    assert said in verdict(found)
    record = as_json(found)["results"][1]
    assert record["only_class"] == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert np.array(record["confusion"]).tolist() == [[0, 48], [0, 352]]


def test_some_runs_and_other_classes_are_said() -> None:
    some = result(gat=[BOTH, ONLY_LARGEST, BOTH], gated=[BOTH] * 3)
    assert "predicts only the largest class: gat in 1 of 3 runs" in as_text(
        result_table(some)
    )
    assert "class is predicted by gat in 1 of 3 runs. " in verdict(some)
    other = result(gat=[ONLY_SMALLEST, BOTH], gated=[BOTH] * 2)
    assert "predicts only one class: gat in 1 of 2 runs" in as_text(result_table(other))
    every = result(gat=[ONLY_LARGEST] * 2, gated=[ONLY_SMALLEST] * 2)
    assert "Every method predicts only one class in all runs. " in verdict(every)
    many = result(gat=[BOTH], **{name: [ONLY_LARGEST] for name in "abcd"})
    assert "methods predict only the largest class in all runs. " in verdict(many)
    mixed = result(gat=[BOTH] * 2, **{name: [ONLY_LARGEST, BOTH] for name in "abcd"})
    some_of = "4 of 5 methods predict only the largest class in some runs. "
    assert some_of in verdict(mixed)


def test_nothing_is_said_without_such_runs_or_without_confusion() -> None:
    fine = result(gat=[BOTH] * 3, gated=[BOTH] * 3)
    assert "†" not in as_text(result_table(fine))
    assert "class" not in verdict(fine)
    old = dataset_result([run("gat", seed) for seed in range(3)], ["gat"], "gat")
    assert old["gat"].confusion is None
    one_class_of_labels = result(gat=[((0, 0), (0, 100))] * 3)
    assert one_class_of_labels["gat"].only_class == {}


@pytest.fixture
def imbalanced(tmp_path: Path) -> Path:
    """A graph with 6 nodes in 60 of one class."""
    rng = np.random.default_rng(0)
    y = np.zeros(60, dtype=np.int64)
    y[::10] = 1
    masks = {
        f"{name}_mask": np.arange(60) // 20 == number
        for number, name in enumerate(("train", "val", "test"))
    }
    features = rng.normal(size=(60, 8)).astype(np.float32)
    features[:, :3] += y[:, None]
    return write_graph(tmp_path / "imbalanced.npz", y=y, x=features, **masks)


def test_an_imbalanced_graph_shows_it_from_training_to_verdict(
    imbalanced: Path, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml")
    found = tempergat.compare(
        imbalanced, ["gcn", "gat"], 3, recipe, device="cpu", progress=False
    )
    assert "largest class" in found.verdict
    assert found.result["gat"].only_class
    assert found.confusion("gat")[:, 0].sum() > 0
    facts = json.loads(found.to_json())
    assert facts["results"][1]["confusion"] == found.confusion("gat").tolist()
    balanced = tempergat.compare(
        imbalanced,
        ["gat"],
        3,
        recipe,
        device="cpu",
        progress=False,
        class_weights="balanced",
        metric="macro_f1",
        settings={"epochs": 60, "lr": 0.05, "dropout": 0},
    )
    collapsed = found.result["gat"].only_class
    assert len(balanced.result["gat"].only_class) < len(collapsed)
    assert "macro-F1" in repr(balanced)
    assert balanced.facts["settings"] == {
        "epochs": 60,
        "lr": 0.05,
        "dropout": 0,
        "metric": "macro_f1",
        "class_weights": "balanced",
    }
    with pytest.raises(UserError, match="no runs of 'gta'; did you mean gat"):
        found.confusion("gta")


@pytest.mark.filterwarnings("ignore:.*labelled nodes are of 700 classes")
def test_a_confusion_matrix_of_many_classes_is_small_in_memory_and_in_files(
    tmp_path: Path,
) -> None:
    classes, nodes = 700, torch.arange(2100)
    parts = enumerate(("train", "val", "test"))
    ring = torch.stack([nodes, nodes.roll(1)])
    graph = Data(
        x=torch.eye(4)[nodes % 4],
        edge_index=torch.cat([ring, ring.flip(0)], 1),
        y=nodes % classes,
        **{f"{name}_mask": nodes // classes == number for number, name in parts},
    )
    usual = {"device": "cpu", "progress": False, "settings": {"epochs": 1, "hidden": 2}}
    model = tempergat.train(graph, "mlp", **usual)
    again = tempergat.load_model(model.save(tmp_path / "model"), device="cpu").run
    # The second time, all runs are read from the folder.
    new, found = (
        tempergat.compare(graph, ["mlp", "gcn"], 2, out=tmp_path / "runs", **usual)
        for _ in range(2)
    )
    for one in (model.run, again, *new.runs, *found.runs):
        assert len(pickle.dumps(one)) < 60 * classes
        assert np.array(one.confusion).sum() == sum(map(sum, one.confusion)) == classes
    assert again.confusion == model.run.confusion
    full = found.confusion("mlp")
    assert full.shape == (classes, classes)
    assert full.sum(1).tolist() == [2] * classes
    record = json.loads(found.to_json())["results"][0]["confusion"]
    assert record["classes"] == classes
    cells = [[*cell, full[tuple(cell)]] for cell in np.argwhere(full).tolist()]
    assert record["cells"] == cells
    assert len(found.to_json()) < 200 * classes


def test_runs_of_one_class_are_counted_among_all_that_finished() -> None:
    runs = result(gat=[ONLY_LARGEST] * 4, gated=[BOTH] * 3)
    assert runs["gat"].summary.runs == 3
    assert "gat in all 4 runs" in as_text(result_table(runs))
