"""The figures of docs/theory.md can be read without colours."""

import pytest

from studies.theory.tables import FIGURES


@pytest.mark.parametrize("name", ["theory/gate_rho", "theory/scenarios"])
def test_every_curve_of_a_legend_looks_different_without_its_colour(name: str) -> None:
    lines = FIGURES[name]().axes[-1].get_lines()
    looks = {
        (line.get_marker(), line.get_markerfacecolor() == "white") for line in lines
    }
    assert len(looks) == len(lines) == 8
