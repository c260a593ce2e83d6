"""Training gives the numbers that version 0.1.0 stored."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import torch

from tempergat.data import as_dataset
from tempergat.training import RunConfig, train_group

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1_0"


@pytest.mark.parametrize("method", ["gcn", "gat", "gated", "temp_gated"])
def test_stored_runs_are_trained_again_to_the_same_scores(method: str) -> None:
    address = f"file:{FIXTURES / 'store.sqlite'}?immutable=1"
    query = "SELECT seed, record FROM runs WHERE method = ? ORDER BY seed"
    with closing(sqlite3.connect(address, uri=True)) as store:
        rows = store.execute(query, (method,)).fetchall()
    seeds = [seed for seed, _ in rows]
    records = [json.loads(text) for _, text in rows]
    settings = RunConfig.model_validate(records[0]["config"])
    graph = as_dataset(FIXTURES / "graph")
    runs = train_group(graph, settings, seeds, torch.device("cpu"))
    for run, record in zip(runs, records, strict=True):
        scores = {rule: vars(found) for rule, found in run.scores.items()}
        assert scores == record["scores"]
        learned = run.selected.temperatures + run.selected.gate_means
        stored = record["selected"]
        expected = stored["temperatures"] + stored["gate_means"]
        assert learned == pytest.approx(expected, rel=1e-5)
