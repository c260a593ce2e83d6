"""Real layers: the paper's weights, the oracle gate, and what training finds."""

import pytest
import torch

from studies.results import read_csv
from studies.theory.learned import learned_study, paper_layer
from studies.theory.model import (
    GaussianNoise,
    MissingNoise,
    Setting,
    standard_setting,
)
from studies.theory.study import Effort

UNEVEN = Setting(signal=(0.5, -0.2, 0.9), weights=(1.0, 2.5, 0.3))


@pytest.mark.parametrize("gate", [None, "first", "post"])
@pytest.mark.parametrize("temperature", [0.125, 1.0, 1024.0])
def test_a_real_layer_with_the_papers_weights_attends_as_the_formula(temperature, gate):
    features = torch.randn(12, 3, dtype=torch.float64)
    observed = (torch.rand(12, 3) < 0.5).double()
    edge_index = torch.cartesian_prod(torch.arange(12), torch.arange(12)).T
    layer = paper_layer(UNEVEN, temperature, gate, oracle=True)
    inputs = torch.cat([features, observed], dim=1)
    _, ((source, target), attention) = layer(
        inputs, edge_index, return_attention_weights=True
    )
    shown = features * observed if gate == "first" else features
    weights = torch.tensor(UNEVEN.weights, dtype=torch.float64)
    logit = -((shown[:, None] - shown).abs() @ weights) / temperature
    expected = logit.softmax(dim=1)[target, source]
    assert torch.allclose(attention.squeeze(1), expected, rtol=0, atol=1e-14)


def test_a_temperature_is_absorbed_by_the_attention_vector():
    x = torch.randn(20, 3, dtype=torch.float64)
    edge_index = torch.cartesian_prod(torch.arange(20), torch.arange(20)).T
    tempered = paper_layer(UNEVEN, 4.0, None, oracle=False)
    folded = paper_layer(UNEVEN, 1.0, None, oracle=False)
    with torch.no_grad():
        folded.att /= 4.0
        expected, actual = tempered(x, edge_index), folded(x, edge_index)
    assert torch.allclose(actual, expected, rtol=1e-12, atol=0)


@pytest.mark.slow
def test_training_again_gives_the_published_rows_to_four_digits():
    """Whatever the processor: in single precision, rounding grows to what is seen."""
    noise, effort = GaussianNoise(2.0), Effort()
    seeds = range(effort.graphs)
    rows = learned_study(
        standard_setting(), [noise], nodes=1000, seeds=seeds, steps=effort.steps
    )
    published = read_csv("theory/learned.csv").query(f"noise == '{noise}'")
    assert len(rows) == len(published) == 6
    for row, before in zip(rows, published.to_dict("records"), strict=True):
        assert row.pop("variant") == before.pop("variant")
        assert row.pop("noise") == before.pop("noise")
        assert row == pytest.approx(before, rel=1e-4, abs=1e-4, nan_ok=True)


def test_training_keeps_the_papers_logits_and_reports_every_variant():
    setting = standard_setting(coordinates=8, neighbours=8)
    table = learned_study(
        setting, [MissingNoise(0.5, 2.0)], nodes=200, seeds=[0, 1], steps=20
    )
    rows = {row["variant"]: row for row in table}
    assert rows["fixed"]["temperature"] == 1.0
    assert rows["temperature"]["temperature"] != 1.0
    assert rows["oracle_fixed"]["gate_observed"] == 1.0
    assert rows["oracle_fixed"]["gate_lost"] == 0.0
    assert rows["oracle_fixed"]["snr"] > rows["fixed"]["snr"]
    # A sigmoid of a linear map rises along every line, so it cannot tell a value near
    # the signal from a large one on both sides: the learned gate is no oracle.
    learned = rows["gate_first"]
    assert abs(learned["gate_observed"] - learned["gate_lost"]) < 0.1
