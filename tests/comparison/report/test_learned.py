"""Learned temperatures and gates as a table, from the runs that finished."""

import pytest

from tempergat.comparison.report.learned import learned_rows, learned_table
from tempergat.training import LayerRecord
from tests.support.made_up_runs import failed_run, run


def test_learned_values_are_means_and_deviations_by_method_and_layer() -> None:
    last = LayerRecord((2.0, 4.0), (0.25,))
    runs = [
        run("gat", selected=LayerRecord(), last=LayerRecord()),
        run("gated_temp", 0, selected=LayerRecord((1.0, 2.0), (0.5,)), last=last),
        run("gated_temp", 1, selected=LayerRecord((3.0, 2.0), (0.25,)), last=last),
        failed_run("gated_temp", 2, selected=LayerRecord((9.0, 9.0), (0.9,))),
        run("temp_only", selected=LayerRecord((1.0,)), last=LayerRecord((1.5,))),
    ]
    first, second, single = rows = learned_rows(runs)
    assert [(r["method"], r["layer"]) for r in rows] == [
        *(("gated_temp", layer) for layer in (1, 2)),
        ("temp_only", 1),
    ]
    assert (first["temperature"], first["gate"]) == (2.0, 0.375)
    assert first["temperature_std"] == pytest.approx(2**0.5)
    assert (first["last_temperature"], first["last_gate_std"]) == (2.0, 0.0)
    assert (second["temperature"], second["gate"]) == (2.0, None)
    # One run has no deviation.
    assert (single["temperature"], single["temperature_std"]) == (1.0, None)
    table = learned_table("cora", rows)
    assert table.columns == ("method", "layer", "T", "gate", "last T", "last gate")
    assert table.rows[0][2:4] == ("2.000 ± 1.414", "0.375 ± 0.177")
    assert learned_table("cora", [single]).columns == ("method", "layer", "T", "last T")
