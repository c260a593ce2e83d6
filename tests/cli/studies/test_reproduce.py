"""`tempergat reproduce` writes its pages and prints what it found."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tempergat.base.errors import UserError
from tempergat.cli.application import app
from tempergat.study.engine import Store
from tempergat.study.paper import read_paper
from tests.cli.conftest import Command
from tests.support.made_up_runs import study
from tests.support.small_study import make_small, tiny_cora

FACTS = Path(__file__).parents[3] / "results"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    return folder


def test_from_a_store_to_the_pages(results: Path, tmp_path: Path) -> None:
    means = {method: cell.mean for method, cell in read_paper()["cora"].items()}
    with Store(tmp_path / "out.sqlite") as store:
        store.put_group(study("cora", means, range(4)))
    runner = CliRunner()
    table = str(results / "homogeneous.csv")
    store_path = str(tmp_path / "out.sqlite")
    exported = runner.invoke(app, ["reproduce", "export", store_path, "--to", table])
    assert exported.output == f"wrote 44 runs to {table}\n"
    result = runner.invoke(
        app, ["reproduce", "export", store_path, "--to", table, "--json"]
    )
    assert json.loads(result.output) == {
        "runs": 44,
        "replaced": {"cora": 44},
        "kept": {},
        "file": table,
    }
    places = ["--results", str(results), "--docs", str(tmp_path / "docs")]
    places += ["--out", str(tmp_path / "out")]
    for command, page in (("homogeneous", "reproduction.md"), ("ranks", "ranks.md")):
        plain = runner.invoke(app, ["reproduce", command, *places])
        assert plain.exit_code == 0, plain.output
        assert f"wrote {tmp_path / 'docs' / page}" in plain.output
        report = tmp_path / "out" / f"{command}.html"
        assert f"report   {report}" in plain.output
        assert report.stat().st_size < 3_000_000
        result = runner.invoke(app, ["reproduce", command, *places, "--json"])
        found = json.loads(result.output)
        assert found["page"] == str(tmp_path / "docs" / page)
    assert len(found["below_backbone"]) == 26


def test_a_missing_store_is_not_created(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "export", str(tmp_path / "none")])
    assert isinstance(done.exception, UserError)
    assert not (tmp_path / "none").exists()


@pytest.fixture
def small(
    monkeypatch: pytest.MonkeyPatch, results: Path, tmp_path: Path
) -> dict[str, list[object]]:
    """Short runs on tiny graphs, and the options that name their folders."""
    from tempergat.cli.ui import graphs

    make_small(monkeypatch, tmp_path)
    monkeypatch.setattr(graphs, "load_graph", lambda name, *rest: tiny_cora(name))
    places: list[object] = ["--results", results, "--docs", tmp_path / "docs"]
    return {
        "page": places,
        "run": [*places, "--out", tmp_path / "o", "--device", "cpu"],
    }


def test_plan_then_run_then_the_page(
    command: Command, small: dict[str, list[object]], results: Path, tmp_path: Path
) -> None:
    planned = command("reproduce", "homogeneous", "--plan", *small["run"])
    assert planned.status == 0, planned.err
    assert "cora: 0 of 44 runs in homogeneous.csv" in planned.out
    assert "time: unknown (no finished runs on cpu" in planned.out
    assert "memory: about " in planned.out
    assert str(tmp_path / "docs" / "reproduction.md") in planned.out
    assert not (results / "homogeneous.csv").exists()
    assert not (tmp_path / "o").exists()
    words = ("reproduce", "homogeneous", "--run", "--datasets", "cora", *small["run"])
    ran = command(*words)
    assert ran.status == 0, ran.err
    assert f"wrote 44 runs to {results / 'homogeneous.csv'}" in ran.out
    assert "8 gains in the paper's table" in ran.out
    assert "cora: 44 of 44 runs" in ran.err
    again = command(*words, "--json", "--quiet")
    assert again.err == ""
    facts = json.loads(again.out)
    assert facts["made"] == []
    assert facts["page"] == str(tmp_path / "docs" / "reproduction.md")
    plan = json.loads(
        command("reproduce", "ranks", "--plan", *small["run"], "--json").out
    )
    assert [(job["dataset"], job["present"]) for job in plan["jobs"]] == [
        ("cora", 44),
        ("pubmed", 0),
    ]
    assert plan["jobs"][1]["time_s"] > 0


def test_results_that_stay_incomplete_end_in_status_1(
    command: Command,
    small: dict[str, list[object]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from tempergat.cli.ui import graphs

    words = ("reproduce", "homogeneous", "--run", *small["run"], "--quiet")
    command(*words, "--datasets", "cora")

    def no_network(name: str, *rest: object) -> None:
        raise UserError(f"cannot download {name}")

    monkeypatch.setattr(graphs, "load_graph", no_network)
    ending = command(*words)
    assert ending.status == 1
    assert ending.err == "pubmed: not complete: cannot download pubmed\n"
    assert f"wrote {tmp_path / 'docs' / 'reproduction.md'}" in ending.out


def test_options_that_contradict_each_other_end_in_one_line(command: Command) -> None:
    for words, message in (
        (("--plan", "--run"), "--plan and --run were both given"),
        (("--datasets", "cora"), "--datasets needs --run or --plan"),
        (("--plan", "--datasets", ","), "--datasets is ','"),
        (("--plan", "--datasets", "nowhere"), "no dataset 'nowhere'"),
    ):
        ending = command("reproduce", "calibration", *words, "--device", "cpu")
        assert ending.status == 2
        assert message in ending.err
        assert ending.err.count("\n") == 1


@pytest.mark.parametrize("study_name", ["default", "when"])
def test_outside_the_project_a_study_says_where_to_run_it(
    command: Command, study_name: str
) -> None:
    ended = command("reproduce", study_name, "--plan")
    assert ended.status == 2
    assert "plan.yaml: No such file or directory; run this in the project" in ended.err


def test_the_plan_of_a_finished_study_says_that_nothing_is_missing(
    command: Command, tmp_path: Path
) -> None:
    nothing = "nothing is missing: --run trains nothing"
    finished = command("reproduce", "tuned", "--plan", "--results", FACTS)
    assert nothing in finished.out
    empty = command("reproduce", "tuned", "--plan", "--results", tmp_path)
    assert nothing not in empty.out
