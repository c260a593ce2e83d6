"""The report of the noise study as one HTML file."""

import re
from pathlib import Path

from tempergat.study.noise import analyse, write_noise_report
from tests.study.noise.test_noise import made_up_runs, small_plan


def test_the_report_has_the_answer_the_tables_and_the_curves(tmp_path: Path) -> None:
    plan = small_plan(seeds=10)
    found = analyse(made_up_runs(temperature=0.1, gate=-0.05), plan)
    path = write_noise_report(plan, [found], tmp_path / "noise.html", "tempergat noise")
    text = path.read_text()
    assert "the learned temperature rises in 4 of 4 layers and variants" in text
    labels = re.findall(r'<svg [^>]*aria-label="([^"]*)"', text)
    assert labels == [
        f"{what} against noise on csbm"
        for what in (
            "learned T",
            "entropy / log degree",
            "mean gate",
            "test accuracy (%)",
        )
    ]
    assert "<code>tempergat noise</code>" in text
    # The tables have a row for every method.
    for method in {run.method for run in found.runs}:
        assert f'data-key="{method}">{method}</th>' in text
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    assert len(text) < 3_000_000


def test_a_curve_has_a_tick_for_every_level(tmp_path: Path) -> None:
    plan = small_plan(seeds=10)
    found = analyse(made_up_runs(), plan)
    text = write_noise_report(plan, [found], tmp_path / "noise.html").read_text()
    chart = text.split('aria-label="learned T')[1].split("</svg>")[0]
    for level in plan.gaussian:
        assert f">{level:g}</text>" in chart
