"""Sampled training reaches what full-batch training reaches."""

import pytest
import torch

from tempergat.data import csbm
from tempergat.training import train_group
from tests.support.run_settings import config

CPU = torch.device("cpu")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gcn", "temp_gated", "temp_gated_v2"])
def test_sampled_training_reaches_full_batch_accuracy_within_noise(method: str) -> None:
    graph = csbm(n=600, a=12, b=4, d=16, mu=2.0, classes=3)
    full = config(
        method,
        hidden_channels=16,
        epochs=60,
        learning_rate=0.01,
        gate_penalty=1e-4,
        feature_dropout=0.3,
    )
    sampled = full.with_changes(
        training="sampled", fanout=(8, 4), batch_size=64, epochs=15
    )
    tests = {}
    for name, settings in (("full", full), ("sampled", sampled)):
        runs = train_group(graph, settings, [0, 1, 2], CPU)
        tests[name] = torch.tensor([run.selected_scores.test for run in runs])
    noise = 3 * (tests["full"].std() + tests["sampled"].std()) / 3**0.5
    difference = tests["full"].mean() - tests["sampled"].mean()
    assert tests["full"].mean() > 0.7
    assert difference < max(noise, 0.02)
