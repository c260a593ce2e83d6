"""Studies by the paper's names, and how much of the paper each has run."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from studies import __main__ as command
from studies import results
from studies.paper import ITEMS
from studies.results import write_runs
from tempergat.cli.application import app
from tempergat.comparison.paper import HETEROGENEOUS
from tests.support.made_up_runs import run


def studies(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["studies", *words])
    return command.main()


@pytest.mark.parametrize(
    ("name", "study"),
    [
        ("homogeneous", "homogeneous"),
        ("table3", "homogeneous"),
        ("Table 5", "heterogeneous"),
        ("figure2", "ranks"),
        ("Figure3", "ranks"),
        ("figure4", "noise"),
        ("theorem1", "theory"),
        ("theorem2", "theory"),
    ],
)
def test_a_study_has_the_names_of_what_it_answers(
    name: str, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[str] = []
    monkeypatch.setattr(command, "fill_page", filled.append)
    assert studies(monkeypatch, name) == 0
    assert filled == [study]


def test_an_item_that_is_no_study_names_a_command_that_exists(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [found for found in ITEMS.values() if found not in command.names()]
    for words in map(str.split, commands):
        if words[0] == "python":
            assert Path(words[1]).exists()
        else:
            assert CliRunner().invoke(app, [*words[1:], "--help"]).exit_code == 0
    assert studies(monkeypatch, "table1") == 2
    assert "`tempergat methods` shows it" in capsys.readouterr().err


def test_a_name_that_does_not_exist_is_answered_with_those_that_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert studies(monkeypatch, "table9") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no study or item of the paper 'table9'" in line
    assert all(name in line for name in (*command.names(), *ITEMS))


def test_the_list_says_how_many_of_the_papers_datasets_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert studies(monkeypatch) == 0
    printed = capsys.readouterr().out
    assert "3 of 6 datasets; 1,650 of 1,650 rows" in printed
    assert "0 of 5 datasets; proxy: 2 graphs; 242 of 242 rows" in printed
    assert "3 of 4 datasets; 12,720 of 12,720 rows" in printed
    monkeypatch.setattr(results, "STUDIES", tmp_path)
    graphs = ("dblp", "imdb", HETEROGENEOUS[0])
    write_runs("heterogeneous/runs.csv", [run(dataset=name) for name in graphs])
    command.list_studies()
    assert "1 of 5 datasets; proxy: 2 graphs; 3 of" in capsys.readouterr().out
