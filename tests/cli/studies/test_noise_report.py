"""`tempergat noise --only-report` writes the page and the report."""

import json
from pathlib import Path

import pytest
import yaml

from tempergat.study.noise.export import write_noise_csv
from tests.cli.conftest import Command
from tests.study.noise.test_noise import made_up_runs, small_plan

# Draws the figures of the page.
pytestmark = pytest.mark.slow


def test_the_page_and_the_report_are_written_from_the_csv(
    command: Command, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(yaml.safe_dump(small_plan(seeds=10).model_dump(mode="json")))
    write_noise_csv(tmp_path / "out" / "csbm.csv", made_up_runs(temperature=0.1))
    words = ("noise", "--only-report", "--out", "out", "--levels", plan, "--json")
    ended = command(*words)
    assert ended.status == 0, ended.err
    facts = json.loads(ended.out)
    assert (facts["page"], facts["report"]) == ("out/noise.md", "out/noise.html")
    report = (tmp_path / "out" / "noise.html").read_text()
    assert "noise --only-report --out out" in report
    # The figures are drawn in the file and not taken from the page's folder.
    assert "<img" not in report
