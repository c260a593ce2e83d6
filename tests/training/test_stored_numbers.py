"""Training gives the numbers of stored runs."""

from pathlib import Path

import pytest
import torch

from tempergat.comparison.storage.export import read_runs
from tempergat.data import as_dataset
from tempergat.training import RunConfig, train_group

FIXTURES = Path(__file__).parents[1] / "fixtures" / "small_graph"


@pytest.mark.parametrize("method", ["gcn", "gat", "gated", "temp_gated"])
def test_stored_runs_are_trained_again_to_the_same_scores(method: str) -> None:
    stored = [r for r in read_runs(FIXTURES / "runs.csv") if r.method == method]
    settings = RunConfig.model_validate(stored[0].config)
    graph = as_dataset(FIXTURES / "graph")
    seeds = [run.seed for run in stored]
    runs = train_group(graph, settings, seeds, torch.device("cpu"))
    for run, expected in zip(runs, stored, strict=True):
        assert run.scores == expected.scores
        learned = run.selected.temperatures + run.selected.gate_means
        assert learned == pytest.approx(
            expected.selected.temperatures + expected.selected.gate_means, rel=1e-5
        )
