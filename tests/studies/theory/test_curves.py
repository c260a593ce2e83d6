"""The tables of both theorems and of settings outside them, and their figures."""

import pytest

from studies.results import read_csv
from studies.theory.curves import (
    gate_boundary,
    gate_curves,
    gate_scenarios,
    temperature_curves,
)
from studies.theory.model import MissingNoise, standard_setting
from studies.theory.rows import to_csv
from studies.theory.study import Effort, analyse
from studies.theory.tables import FIGURES

SETTING = standard_setting(coordinates=4, neighbours=6)
TEMPERATURES = [2.0 ** (half / 2) for half in range(-4, 17)]


def inside(row, name, value):
    return row[f"{name}_low"] <= value <= row[f"{name}_high"]


def test_best_temperature_meets_its_closed_form_at_high_noise():
    _, (row,) = temperature_curves(
        SETTING, [2.0], TEMPERATURES, targets=400_000, seed=2
    )
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


def test_the_gate_helps_everywhere_but_with_self_loops():
    table = gate_scenarios(
        SETTING, MissingNoise(0.5, 1.0), [2.0], targets=20_000, seed=7
    )
    for row in table:
        helps = row["gain_low"] > 0
        hurts = row["gain_high"] < 0
        assert hurts if "self_loop" in row["scenario"] else helps


def test_tables_are_written_with_every_column_and_six_digits():
    text = to_csv([{"a": 1 / 3, "b": True, "c": "x y", "d": 3}])
    assert text == "a,b,c,d\n0.333333,yes,x y,3\n"


@pytest.mark.slow
def test_the_whole_analysis_makes_every_table_of_the_results():
    noises = (MissingNoise(0.5, 1.0),)
    made = analyse(Effort(4000, 2000, 2000, 2000, 2, 2, noises))
    for name, table in made.items():
        assert to_csv(table).splitlines()[0] == ",".join(read_csv(f"theory/{name}.csv"))


@pytest.mark.parametrize("name", ["theory/gate_rho", "theory/scenarios"])
def test_every_curve_of_a_legend_looks_different_without_its_colour(name):
    lines = FIGURES[name]().axes[-1].get_lines()
    looks = {
        (line.get_marker(), line.get_markerfacecolor() == "white") for line in lines
    }
    assert len(looks) == len(lines) == 8
