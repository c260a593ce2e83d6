"""Figures of a report stay readable where there is little or much to draw."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tempergat.comparison.html_report import svg
from tempergat.comparison.html_report.charts import cost_chart, strips_chart
from tempergat.comparison.html_report.heat_maps import confusion_chart
from tempergat.comparison.html_report.line_charts import (
    _pieces_above,
    curves_chart,
    lines_of,
)
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.nn import METHODS as OURS
from tempergat.training import METRICS
from tests.support.made_up_comparisons import comparison
from tests.support.made_up_runs import METHODS, study


def test_the_band_is_the_deviation_of_the_tables() -> None:
    shown = comparison()
    values = dict(zip(range(8), np.linspace(0.5, 0.8, 8).tolist(), strict=True))
    (line,) = lines_of(
        shown.runs, ("gat",), lambda run: {1: values[run.seed], 2: values[run.seed]}
    )
    assert line.high[0] - line.mean[0] == pytest.approx(
        np.std(list(values.values()), ddof=1)
    )


def test_one_epoch_has_no_learning_curve() -> None:
    shown = comparison()
    runs = [replace(run, curves={"epoch": (1,), "val": (0.5,)}) for run in shown.runs]
    assert curves_chart(runs, shown.result.methods, METRICS["accuracy"]) is None


def test_epochs_are_whole_numbers() -> None:
    shown = comparison()
    drawn = curves_chart(shown.runs, shown.result.methods, METRICS["accuracy"]) or ""
    # Runs have three epochs; half of one is no tick.
    assert ">2</text>" in drawn
    assert "1.5</text>" not in drawn


def test_every_class_has_a_name_and_only_the_largest_of_many_are_drawn() -> None:
    for classes, drawn in ((2, 2), (50, 50), (500, 60)):
        counts = np.ones((classes, classes), dtype=int)
        counts[-1] *= 9
        names = [f"class {number}" for number in range(classes)]
        chart = confusion_chart("gat", counts.tolist(), names)
        assert chart.count('class="tick end"') == drawn
        assert chart.count("<title>") == drawn**2
        assert f">class {classes - 1}</text>" in chart


def test_a_report_of_many_classes_says_what_it_leaves_out() -> None:
    counts = tuple(map(tuple, np.eye(500, dtype=int).tolist()))
    shown = comparison()
    rows = tuple(replace(row, confusion=counts) for row in shown.result.results)
    many = replace(shown, result=replace(shown.result, results=rows), class_names=None)
    text = many.to_html()
    assert "Of 500 classes, the 60 with the most test nodes are shown." in text
    assert len(text) < 1_000_000


def test_names_of_methods_of_equal_cost_and_score_do_not_cover_each_other() -> None:
    shown = comparison()
    rows = tuple(
        replace(row, summary=replace(row.summary, mean=80.0))
        for row in shown.result.results
    )
    runs = [replace(run, time_s=1.0) for run in shown.runs]
    chart = cost_chart(replace(shown.result, results=rows), runs, "time") or ""
    places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="name"', chart)
    heights = sorted(float(y) for _, y in places)
    assert len(heights) == 3
    assert min(np.diff(heights)) >= 12


def test_a_long_name_of_a_method_is_cut_and_kept_in_full_for_the_pointer() -> None:
    name, longest = "a_method_of_the_user_with_many_layers", max(OURS, key=len)
    scores = {name: 80.0, longest: 81.0}
    drawn = strips_chart(
        dataset_result(study("g", scores, range(3)), list(scores), {}), None
    )
    assert ">a_method_of_the_user_…</text>" in drawn
    assert f"<title>{name}: mean " in drawn
    assert f">{longest}</text>" in drawn


def test_names_stand_above_their_dots_on_a_phone() -> None:
    drawn = strips_chart(comparison().result, "gat", svg.NARROW)
    assert 'viewBox="0 0 380 ' in drawn
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]
    assert min(places) < 60
    assert max(places) < 330
    names = re.findall(r'<text x="14" y="[\d.]+" class="name">(\w+)<', drawn)
    assert names == ["gcn", "gat", "gated"]


def test_of_many_methods_each_has_a_panel_beside_its_backbone() -> None:
    (first, *_) = comparison().runs
    runs = [replace(first, method=method) for method in METHODS]
    for width, per_row in ((svg.WIDE, 4), (svg.NARROW, 2)):
        drawn = curves_chart(runs, METHODS, METRICS["accuracy"], width) or ""
        titles = re.findall(r'x="([\d.]+)" y="\d+" class="name strong">(\w+)<', drawn)
        assert sorted(name for _, name in titles) == sorted(METHODS)
        assert len({x for x, _ in titles}) == per_row
        # One line each, those of eight variants with that of the backbone.
        assert drawn.count('class="line ') == len(METHODS) + 8 + 1
        assert drawn.count(">its backbone</text>") == 1
        assert float(re.findall(r'viewBox="0 0 ([\d.]+)', drawn)[0]) <= 1.4 * width


def test_a_learning_curve_is_cut_where_the_axis_begins() -> None:
    points = [(1.0, 10.0), (2.0, 70.0), (3.0, 80.0), (4.0, 60.0)]
    assert list(_pieces_above(points, 65.0)) == [
        [(pytest.approx(1.9167, abs=1e-3), 65.0), *points[1:3], (3.75, 65.0)]
    ]
    assert list(_pieces_above(points, 0.0)) == [points]
    assert list(_pieces_above(points, 90.0)) == []


def test_a_short_logarithmic_axis_has_ticks() -> None:
    assert svg.log_ticks(0.1, 100.0)[0] == 0.1
    assert len(svg.log_ticks(0.6, 1.7)) >= 2
    assert len(svg.log_ticks(0.21, 0.39)) >= 2
