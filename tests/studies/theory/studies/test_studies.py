"""The tables of both theorems and of settings outside them."""

import math

import numpy as np
import pytest
import torch

from studies.theory.model import MissingNoise, standard_setting
from studies.theory.rows import to_csv
from studies.theory.studies.beyond import (
    gate_scenarios,
    scenarios,
    temperature_scenarios,
)
from studies.theory.studies.gate import gain_order, gate_boundary, gate_curves
from studies.theory.studies.learned import VARIANTS, sample_graph, train
from studies.theory.studies.temperature import temperature_study

SETTING = standard_setting(coordinates=4, neighbours=6)
TEMPERATURES = [2.0 ** (half / 2) for half in range(-4, 17)]


def inside(row, name, value):
    return row[f"{name}_low"] <= value <= row[f"{name}_high"]


def test_best_temperature_is_the_maximum_of_its_curve_and_rises_with_the_noise():
    study = temperature_study(
        SETTING, [0.5, 1.0, 2.0], TEMPERATURES, targets=40_000, seed=1
    )
    best = [row["best_temperature"] for row in study.best]
    assert best == sorted(best)
    for row in study.best:
        curve = [r["snr"] for r in study.curves if r["sigma"] == row["sigma"]]
        assert max(curve) <= row["best_snr"] <= 1.01 * max(curve)
        assert inside(row, "best_temperature", row["best_temperature"])
        assert row["share_at_one"] == pytest.approx(row["snr_at_one"] / row["best_snr"])


def test_best_temperature_meets_its_closed_form_at_high_noise():
    study = temperature_study(SETTING, [2.0], TEMPERATURES, targets=400_000, seed=2)
    (row,) = study.best
    assert row["best_temperature"] == pytest.approx(row["weak_logit_best"], rel=0.15)


def test_the_oracle_gate_wins_at_large_tau_and_loses_below_the_boundary():
    (row,) = gate_boundary(SETTING, [0.7], [1.0], targets=100_000, seed=3)
    boundary = row["tau_star"]
    assert inside(row, "tau_star", boundary)
    curves = gate_curves(
        SETTING, [0.7], [boundary / 2, 8 * boundary], [1.0], targets=100_000, seed=4
    )
    below, above = (
        next(r for r in curves if r["tau"] == tau and r["variant"] == "gate_first")
        for tau in (boundary / 2, 8 * boundary)
    )
    assert below["gate_first_gain_high"] < 0 < above["gate_first_gain_low"]


def test_gain_of_the_gate_is_of_second_order():
    noise = MissingNoise(0.5, 2.0)
    table = gain_order(SETTING, [noise], [8.0, 16.0, 32.0], targets=400_000, seed=5)
    times_t = [row["gain_times_t"] for row in table]
    assert times_t == sorted(times_t, reverse=True)
    last = table[-1]
    assert last["gain_times_t2"] == pytest.approx(last["gain_times_t2_limit"], rel=0.1)


def test_every_scenario_meets_its_uniform_limit():
    table = temperature_scenarios(
        scenarios(SETTING), [1.0], [2.0, math.inf], targets=40_000, seed=6
    )
    uniform = [row for row in table if row["temperature"] == math.inf]
    assert len(uniform) == len(scenarios(SETTING))
    for row in uniform:
        assert row["snr"] == pytest.approx(row["uniform_limit"], rel=0.03)
        assert row["size"] == abs(row["snr"])


def test_the_gate_helps_everywhere_but_with_self_loops():
    table = gate_scenarios(
        scenarios(SETTING), MissingNoise(0.5, 1.0), [2.0], targets=20_000, seed=7
    )
    for row in table:
        helps = row["gain_low"] > 0
        hurts = row["gain_high"] < 0
        assert hurts if "self_loop" in row["scenario"] else helps


def test_tables_are_written_with_every_column_and_six_digits():
    text = to_csv([{"a": 1 / 3, "b": True, "c": "x y", "d": 3}])
    assert text == "a,b,c,d\n0.333333,yes,x y,3\n"


def test_percentiles_of_an_unseen_boundary_reach_zero():
    (row,) = gate_boundary(SETTING, [0.3], [64.0], targets=2000, seed=8)
    assert row["tau_star_low"] == 0.0
    assert row["tau_star_high"] > row["tau_star_weak_logit"]
    assert np.isfinite(row["tau_star_weak_logit"])


def test_training_a_layer_leaves_the_random_generators_of_the_caller_alone(monkeypatch):
    # `torch.manual_seed` seeds the generators of CUDA devices as well.
    monkeypatch.setattr(torch, "manual_seed", lambda seed: pytest.fail("seeds CUDA"))
    before = torch.get_rng_state()
    noise = MissingNoise(0.5, 1.0)
    data = sample_graph(SETTING, noise, nodes=40, seed=0)
    train(SETTING, data, VARIANTS[2], seed=3, steps=1)
    assert torch.equal(torch.get_rng_state(), before)
