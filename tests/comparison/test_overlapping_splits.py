"""Splits that share training nodes: p and intervals are corrected, and notes say so."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats as scipy_stats
from torch_geometric.data import Data

import tempergat
from tempergat.comparison.report.tables import interval_text
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.from_store import stored_comparisons
from tempergat.comparison.results.notes import note_on_splits, stored_split_ratio
from tempergat.data import csbm
from tests.support.made_up_runs import failed_run, run

SETTINGS = {"epochs": 4}


def graph_with(train: list[list[int]], test_nodes: int) -> Data:
    """A graph with a split for each list of training nodes."""
    data = csbm(n=80, d=8).data.clone()
    masks = {
        name: torch.zeros(80, len(train), dtype=torch.bool)
        for name in ("train_mask", "val_mask", "test_mask")
    }
    for number, nodes in enumerate(train):
        masks["train_mask"][nodes, number] = True
        masks["val_mask"][70:, number] = True
        masks["test_mask"][70 - test_nodes : 70, number] = True
    for name, mask in masks.items():
        data[name] = mask
    return data


def compare(data: Data, out: Path | None = None) -> tempergat.Comparison:
    return tempergat.compare(
        data,
        ["gcn", "gat", "gated"],
        runs=4,
        settings=SETTINGS,
        device="cpu",
        progress=False,
        out=out,
    )


def test_given_splits_that_share_a_training_node_are_corrected_for(
    tmp_path: Path,
) -> None:
    train = [list(range(n, n + 10)) for n in (0, 9, 20, 30)]
    found = compare(graph_with(train, 5), tmp_path / "out")
    assert found.result.test_to_train == 0.5
    pair = found.pairs[0]
    scores = {m: list(found.result[m].scores.values()) for m in found.result.methods}
    d = np.subtract(scores[pair["method"]], scores[pair["baseline"]])
    # What one of the test nodes changes is the least deviation.
    deviation = max(d.std(ddof=1), 100 / 5)
    t = d.mean() / deviation / math.sqrt(1 / 4 + 0.5)
    assert pair["t_p"] == pytest.approx(2 * scipy_stats.t.sf(abs(t), 3))
    summary = found.result["gat"].summary
    half = scipy_stats.t.ppf(0.975, 3) * summary.std * math.sqrt(1 / 4 + 0.5)
    assert summary.high == pytest.approx(summary.mean + half)
    assert "The splits share training nodes" in repr(found)
    # The runs are enough to make the same table again, without the graph.
    (again,) = stored_comparisons(tmp_path / "out")
    assert again.pairs == found.pairs
    assert (again.best_set, again.simplest) == (found.best_set, found.simplest)
    assert again.verdict == found.verdict
    facts = json.loads(again.to_json())
    assert facts["pairs"] == found.pairs
    assert facts["test_to_train"] == 0.5


def test_splits_without_a_common_training_node_need_no_correction(
    tmp_path: Path,
) -> None:
    train = [list(range(n, n + 10)) for n in (0, 10, 20, 30)]
    found = compare(graph_with(train, 5), tmp_path / "out")
    assert found.result.test_to_train == 0.0
    assert "share training nodes" not in "".join(found.notes)
    # The store says so too.
    (again,) = stored_comparisons(tmp_path / "out")
    assert again.result.test_to_train == 0.0
    assert again.pairs == found.pairs
    assert "training nodes" not in "".join(again.notes)


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ((40, 40, 40, 40), "No split has test nodes of its own, so intervals"),
        ((40, 40, 50, 60), "Some splits have the same test nodes, so intervals"),
        ((40, 45, 50, 60), "Each split has other test nodes, so intervals"),
    ],
)
def test_the_note_on_splits_says_whether_they_have_other_test_nodes(
    tests: tuple[int, ...], said: str, tmp_path: Path
) -> None:
    data = graph_with([list(range(n, n + 10)) for n in (0, 5, 10, 15)], 5)
    data.test_mask[:] = False
    for number, first in enumerate(tests):
        data.test_mask[first : first + 10, number] = True
    found = compare(data, tmp_path / "out")
    (again,) = stored_comparisons(tmp_path / "out")
    for notes in (found.notes, again.notes):
        assert sum(said in note for note in notes) == 1
        assert sum("test nodes" in note for note in notes) == 1


def test_with_more_test_than_training_nodes_the_note_gives_the_plain_p() -> None:
    draw = np.random.default_rng(0)
    runs = [
        run(method, seed, mean + noise, split=seed, fingerprint=f"print-{seed}")
        for method, mean in (("gcn", 0.7), ("gat", 0.8), ("gated", 0.84))
        for seed, noise in enumerate(draw.normal(0, 0.01, 6))
    ]
    found = dataset_result(
        runs,
        ["gcn", "gat", "gated"],
        {"gated": "gat"},
        all_pairs=True,
        test_to_train=8.0,
    )
    assert found.best_set is not None
    assert found.best_set.members == ("gated", "gat")
    _, note = note_on_splits(found, runs)
    assert "8.0 test nodes per training node" in note
    assert "very conservative" in note
    assert "gat and gcn worse than gated; against gat p is: gated 0.0" in note


def test_stored_runs_that_do_not_say_how_many_nodes_they_had_are_not_corrected() -> (
    None
):
    runs = [run(seed=seed, split=seed, fingerprint=str(seed)) for seed in range(3)]
    assert stored_split_ratio(runs) is None
    assert stored_split_ratio(runs[:1]) == 0.0
    known = [replace(r, training_nodes=20, confusion=((5, 5), (0, 0))) for r in runs]
    assert stored_split_ratio(known) == 0.5
    found = dataset_result(runs, ["gat"], {}, test_to_train=None)
    (note,) = note_on_splits(found, runs, stored=True)
    assert "p is not corrected for that" in note


def test_an_interval_is_over_the_splits_that_finished() -> None:
    def shown(splits: int, finished: int, each: int) -> str:
        runs = []
        for seed in range(splits * each):
            split = seed % splits
            make = run if split < finished else failed_run
            how = {"split": split, "fingerprint": f"print-{split}"}
            score = {"test": 0.7 + 0.01 * seed} if split < finished else {}
            runs.append(make("gat", seed, **score, **how))
        result = dataset_result(runs, ["gat"], {}, test_to_train=0.5)
        return interval_text(result["gat"].summary, result.metric)

    assert shown(splits=5, finished=3, each=2) == "-"
    assert shown(splits=5, finished=1, each=5) == "-"
    assert " to " in shown(splits=6, finished=5, each=2)
