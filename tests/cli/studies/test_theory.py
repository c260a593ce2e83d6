"""`tempergat theory`, run as a user runs it, with next to no targets."""

import csv
import json
from functools import cache

import pytest
from typer.testing import CliRunner

from tempergat import theory
from tempergat.theory import Effort, MissingNoise, analyse

TINY = Effort(
    proofs=4000,
    curves=2000,
    gates=2000,
    order=2000,
    graphs=2,
    steps=2,
    learned=(MissingNoise(0.5, 1.0),),
)


@cache
def analysed():
    """One analysis, printed both as text and as JSON."""
    return analyse(TINY)


@pytest.fixture
def run(monkeypatch):
    from tempergat.cli.application import app

    monkeypatch.setattr(theory, "analyse", lambda effort, progress: analysed())
    return lambda *words: CliRunner().invoke(app, ["theory", "--quick", *words])


@pytest.mark.slow
def test_command_writes_tables_and_figures_and_prints_verdicts(run, tmp_path):
    result = run("--out", str(tmp_path / "new" / "folder"))
    assert result.exit_code == 0, result.output
    folder = tmp_path / "new" / "folder"
    tables = {path.stem for path in folder.glob("*.csv")}
    assert {"proof_steps", "best_temperature", "gate_boundary", "learned"} <= tables
    with (folder / "gate_curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["variant"] for row in rows} == {"ungated", "gate_first", "post_gate"}
    assert "snr_low" in rows[0]
    assert len(list((folder / "figures").glob("*.svg"))) == 7
    assert len(list((folder / "figures").glob("*.png"))) == 7
    assert "proof steps:" in result.output
    assert "self-loops" in result.output


def test_published_tables_are_not_written_by_default(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    published = tmp_path / "results" / "theory" / "best_temperature.csv"
    published.parent.mkdir(parents=True)
    published.write_text("published")
    result = run()
    assert result.exit_code == 0, result.output
    assert published.read_text() == "published"
    assert (tmp_path / "tempergat-out" / "theory" / published.name).is_file()


def test_command_prints_json_that_parses_without_infinities(run, tmp_path):
    result = run("--out", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(
        result.stdout, parse_constant=lambda word: pytest.fail(f"not JSON: {word}")
    )
    assert set(content) == {"verdicts", "tables", "files"}
    temperatures = {
        row["temperature"] for row in content["tables"]["temperature_scenarios"]
    }
    assert "inf" in temperatures


def test_command_refuses_an_output_that_is_a_file_before_working(
    run, monkeypatch, tmp_path
):
    (tmp_path / "taken").write_text("")
    monkeypatch.setattr(
        theory, "analyse", lambda effort, progress: pytest.fail("it worked first")
    )
    result = run("--out", str(tmp_path / "taken"))
    assert result.exit_code != 0
    assert "taken is a file; choose another folder with --out" in str(result.exception)


def test_command_stopped_by_ctrl_c_says_so_and_leaves_no_folder(
    run, monkeypatch, tmp_path
):
    def stopped(effort, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(theory, "analyse", stopped)
    result = run("--out", str(tmp_path / "new"))
    assert result.exit_code == 130
    assert "Stopped; nothing was written." in result.output
    assert not (tmp_path / "new").exists()
