"""Figures are drawn without a display, the same each time, and complete."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
import pytest

from tempergat import nn
from tempergat.base.figures import save_figure
from tempergat.comparison.report import figures as plots
from tempergat.comparison.report.figures import result_figure
from tempergat.comparison.report.tables import indistinct_groups
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tempergat.stats import average_ranks
from tests.support.made_up_runs import METHODS, failed_run, study


@pytest.fixture
def result() -> DatasetResult:
    means = {method: 80 + index / 10 for index, method in enumerate(METHODS)}
    runs = study("cora", means, range(6))
    return dataset_result([*runs, failed_run("gat", 9)], METHODS, "gat")


def test_a_figure_is_the_same_bytes_whatever_the_users_settings_which_stay(
    result: DatasetResult, tmp_path: Path
) -> None:
    first = save_figure(result_figure(result, "gat"), tmp_path / "first")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        second = save_figure(result_figure(result, "gat"), tmp_path / "second")
        assert dict(matplotlib.rcParams) == before
    assert [p.suffix for p in first] == [".svg", ".png"]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()


def test_the_scores_figure_shows_every_run_and_names_failures(
    result: DatasetResult,
) -> None:
    figure = result_figure(result, "gat")
    (axes,) = figure.axes
    assert sum(len(points.get_offsets()) for points in axes.collections) == 66
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["gcn", "gat (1 failed)", *METHODS[2:]]


def test_methods_without_a_finished_run_can_be_drawn(tmp_path: Path) -> None:
    runs = [failed_run("gat", 0), failed_run("gcn", 0)]
    result = dataset_result(runs, METHODS, "gat")
    svg, _ = save_figure(result_figure(result, "gat"), tmp_path / "figure")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_the_ranks_figure_carries_its_critical_difference() -> None:
    table = average_ranks(
        {
            name: {m: float((i * step) % 11) for i, m in enumerate(METHODS)}
            for name, step in (("a", 1), ("b", 3), ("c", 7))
        }
    )
    figure = plots.ranks_figure("title", table)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert f"critical difference {table.critical_difference:.2f}" in texts
    for method, rank in table.average.items():
        assert any(method in text and f"{rank:.2f}" in text for text in texts)


def test_groups_that_do_not_differ_are_the_widest_within_the_difference() -> None:
    # Four methods on forty datasets in one order: ranks 1 to 4, difference 0.74.
    table = average_ranks(
        {
            str(n): {"gat": 4.0, "gcn": 3.0, "gated": 2.0 + n % 2, "gatv2": 2.5}
            for n in range(40)
        }
    )
    # gated and gatv2 swap places, and half the time gated ties with gcn.
    assert table.average == {"gat": 1.0, "gcn": 2.25, "gated": 3.25, "gatv2": 3.5}
    assert indistinct_groups(table) == [(3.25, 3.5)]


def test_a_method_of_a_new_backbone_can_be_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gat = nn.METHODS["gat"]
    monkeypatch.setitem(nn.METHODS, "new", gat._replace(backbone="new"))
    result = dataset_result(study("cora", {"new": 70.0}, range(3)), ["new"], {})
    assert len(plots.result_figure(result).axes[0].get_yticklabels()) == 1
