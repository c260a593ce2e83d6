"""Real layers: the paper's weights, the oracle gate, and what training finds."""

import pytest
import torch

from studies.theory.model import MissingNoise, Setting, standard_setting
from studies.theory.studies.layer import direct_attention, layer_check, paper_layer
from studies.theory.studies.learned import Variant, learned_study, sample_graph, train

UNEVEN = Setting(signal=(0.5, -0.2, 0.9), weights=(1.0, 2.5, 0.3))


def test_a_real_layer_with_the_papers_weights_attends_as_the_formula():
    table = layer_check(UNEVEN, [0.125, 1.0, 64.0], nodes=40, seed=0)
    assert {row["variant"] for row in table} == {"ungated", "gate_first", "post_gate"}
    for row in table:
        assert row["edges"] > 300
        assert row["largest_difference"] < 1e-12


def test_a_temperature_is_absorbed_by_the_attention_vector():
    x = torch.randn(20, 3, dtype=torch.float64)
    edge_index = torch.cartesian_prod(torch.arange(20), torch.arange(20)).T
    tempered = paper_layer(UNEVEN, 4.0, None, oracle=False)
    folded = paper_layer(UNEVEN, 1.0, None, oracle=False)
    with torch.no_grad():
        folded.att /= 4.0
        expected, actual = tempered(x, edge_index), folded(x, edge_index)
    assert torch.allclose(actual, expected, rtol=1e-12, atol=0)


def test_the_oracle_gate_is_exactly_the_mask():
    observed = (torch.rand(10, 3, dtype=torch.float64) < 0.5).double()
    inputs = torch.cat([torch.randn(10, 3, dtype=torch.float64), observed], dim=1)
    layer = paper_layer(UNEVEN, 1.0, "first", oracle=True)
    assert torch.equal(layer.gate_values(inputs), torch.cat([observed] * 2, dim=1))


def test_a_gate_that_learns_starts_at_one_half():
    layer = paper_layer(UNEVEN, 1.0, "post", oracle=False)
    gate = layer.gate_values(torch.zeros(2, 3, dtype=torch.float64))
    assert (gate == 0.5).all()


def test_the_formula_gives_weights_that_add_up_to_one():
    edge_index = torch.tensor([[0, 1, 2, 0], [3, 3, 3, 1]])
    x = torch.randn(4, 3, dtype=torch.float64)
    attention = direct_attention(UNEVEN, x, edge_index, 0.5)
    assert attention[:3].sum() == pytest.approx(1.0)
    assert attention[3] == 1.0


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


def test_training_is_the_same_for_the_same_seed():
    setting = standard_setting(coordinates=4, neighbours=6)
    data = sample_graph(setting, MissingNoise(0.5, 1.0), 100, 0)
    variant = Variant("gate_first", True, "first")
    assert train(setting, data, variant, 3, 5) == train(setting, data, variant, 3, 5)
