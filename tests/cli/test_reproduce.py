"""`tempergat reproduce` writes its pages and prints what it found."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tempergat.base.errors import UserError
from tempergat.cli.application import app
from tempergat.study.engine import Store
from tempergat.study.paper import read_paper
from tests.support.made_up_runs import study

FACTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    shutil.copytree(FACTS / "paper", tmp_path / "results" / "paper")
    return tmp_path / "results"


def test_from_a_store_to_the_pages(results: Path, tmp_path: Path) -> None:
    means = {method: cell.mean for method, cell in read_paper(FACTS)["cora"].items()}
    with Store(tmp_path / "out.sqlite") as store:
        store.put_group(study("cora", means, range(4)))
    runner = CliRunner()
    table = str(results / "homogeneous.csv")
    store_path = str(tmp_path / "out.sqlite")
    exported = runner.invoke(app, ["reproduce", "export", store_path, "--to", table])
    assert exported.output == f"wrote 44 runs to {table}\n"
    told = runner.invoke(
        app, ["reproduce", "export", store_path, "--to", table, "--json"]
    )
    assert json.loads(told.output) == {
        "runs": 44,
        "replaced": {"cora": 44},
        "kept": {},
        "file": table,
    }
    places = ["--results", str(results), "--docs", str(tmp_path / "docs")]
    for command, page in (("homogeneous", "reproduction.md"), ("ranks", "ranks.md")):
        plain = runner.invoke(app, ["reproduce", command, *places])
        assert plain.exit_code == 0, plain.output
        assert f"wrote {tmp_path / 'docs' / page}" in plain.output
        told = runner.invoke(app, ["reproduce", command, *places, "--json"])
        found = json.loads(told.output)
        assert found["page"] == str(tmp_path / "docs" / page)
    assert len(found["below_backbone"]) == 26


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "export", str(tmp_path / "none")])
    assert isinstance(done.exception, UserError)
    assert not (tmp_path / "none").exists()
