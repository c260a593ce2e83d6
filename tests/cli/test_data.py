"""`tempergat data list | info | check`, as a user calls them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tempergat.base.errors import UserError
from tempergat.cli.application import app
from tempergat.data.catalog.entries import CATALOG, RemoteFile
from tests.support.company_graph import write_companies

pytestmark = pytest.mark.usefixtures("no_mirror")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["data", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_list_names_every_dataset(tmp_path: Path) -> None:
    printed = run("list", "--root", str(tmp_path))
    for name in CATALOG:
        assert name in printed
    assert "10,556" in printed
    assert "generated" in printed


def test_list_as_json_says_what_is_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "cora" / "raw"
    raw.mkdir(parents=True)
    for file in CATALOG["cora"].files:
        (raw / file.name).touch()
    listed = json.loads(run("list", "--root", str(tmp_path), "--json"))
    at_hand = {entry["name"]: entry["at_hand"] for entry in listed}
    assert at_hand["cora"] == "raw files"
    assert at_hand["pubmed"] == "no"
    assert at_hand["csbm"] == "generated"


def test_info_prints_what_is_known(tmp_path: Path) -> None:
    printed = run("info", "OGBN_arxiv", "--root", str(tmp_path))
    for expected in ("169,343", "1,166,243", "ODC-BY", "accuracy", "arxiv.zip", "2018"):
        assert expected in printed
    facts = json.loads(run("info", "cora", "--root", str(tmp_path), "--json"))
    assert facts["nodes"] == 2708
    assert facts["metric"] == "accuracy"
    assert facts["download_bytes"] == sum(f.size or 0 for f in CATALOG["cora"].files)
    assert all(len(file["sha256"]) == 64 for file in facts["files"])


def test_info_names_every_address_what_is_needed_and_the_recipe(tmp_path: Path) -> None:
    printed = run("info", "oag-chem", "--root", str(tmp_path))
    first, second = (file.url for file in find_files("oag-chem"))
    assert f"OAG_Engineering.pt: {first}" in printed
    assert f"OAG_Chemistry.pt: {second}" in printed
    assert "if the first file holds another graph" in printed
    lines = dict(line.split("  ", 1) for line in printed.splitlines() if "  " in line)
    assert lines["recipe"].strip() == "paper/oag-chem"
    for need in (
        "disk for raw files",
        "disk for processed graph",
        "memory to read",
    ):
        assert lines[need].strip().startswith("about "), need
        assert lines[need].endswith("GiB"), need
    bound = "at most 33.1 GiB, of a batch of 1,918,881 nodes; it has fewer where nodes"
    assert lines["most memory of a step"].strip().startswith(bound)
    facts = json.loads(run("info", "cora", "--root", str(tmp_path), "--json"))
    assert facts["recipe"] == "paper/cora"
    assert facts["disk_for_processed_graph_bytes"] is None
    # On the whole graph there are no batches.
    whole = run("info", "cora", "--root", str(tmp_path))
    assert "most memory of a step  about 21.8 MiB\n" in whole


def find_files(name: str) -> list[RemoteFile]:
    return [*CATALOG[name].files, *CATALOG[name].swapped_files]


def test_info_on_an_unknown_name_is_a_users_error() -> None:
    with pytest.raises(UserError, match="did you mean pokec"):
        run("info", "poke")


def test_check_says_what_will_be_done(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("f,label\n" + "1,0\n1,1\n" * 5)
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n0,1\n")
    printed = run("check", str(tmp_path))
    line = next(line for line in printed.splitlines() if "repeated" in line)
    assert line.split() == ["repeated", "edges", "1", "->", "merged", "into", "one"]
    found = json.loads(run("check", str(tmp_path), "--json"))
    assert {"subject": "nodes", "value": 10, "action": ""} in found


def test_check_lists_the_columns_that_are_scaled_and_how_to_use_them_as_given(
    tmp_path: Path,
) -> None:
    folder = str(write_companies(tmp_path / "companies", n=60))
    lines = run("check", folder).splitlines()
    (line,) = (line for line in lines if line.startswith("scaled"))
    assert "employees (mean " in line
    assert "founded (mean 19" in line
    assert "listed" not in line
    assert "--no-scale" in line
    assert "\nscaled" not in run("check", folder, "--no-scale")
