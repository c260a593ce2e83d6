"""`tempergat report` and `export`, and the report that `compare` writes."""

from pathlib import Path

import pytest

from tempergat.comparison.storage.export import read_runs
from tempergat.comparison.storage.store import Store
from tests.cli.conftest import Command
from tests.support.made_up_runs import study


@pytest.fixture
def compared(compare: Command, tmp_path: Path) -> Path:
    ended = compare("--methods", "gat,temp_gated", "--runs", 3)
    assert ended.status == 0, ended.err
    assert "report   tempergat-out/graph.html" in ended.out
    return tmp_path / "tempergat-out"


def test_compare_writes_a_report_with_its_command(compared: Path) -> None:
    text = (compared / "graph.html").read_text()
    assert "compare" in text
    assert "--methods gat,temp_gated" in text
    for part in ("Learning curves", "Gates at the selected epoch", "Confusion matrix"):
        assert part in text


def test_a_report_of_the_folder_shows_the_same_table(
    command: Command, compared: Path
) -> None:
    ended = command("report")
    assert ended.status == 0, ended.err
    first, answer = ended.out.splitlines()
    assert first == "report   tempergat-out/report.html"
    printed = command("compare", "--table", "tempergat-out").out
    assert printed.splitlines()[-1] == answer
    table = (compared / "graph.html").read_text().split("<table")[1].split("</table>")
    again = (compared / "report.html").read_text().split("<table")[1].split("</table>")
    assert again[0] == table[0]


def test_the_report_of_three_machines_has_the_table_of_one(
    command: Command, compare: Command, compared: Path
) -> None:
    for method, folder in (("gat", "A"), ("temp_gated", "B")):
        assert compare("--methods", method, "--runs", 3, "--out", folder).status == 0
    ended = command("report", "A", "B", "tempergat-out")
    assert ended.out.startswith("report   A/report.html\n"), ended.err
    tables = [
        Path(file).read_text().split("<table")[1].split("</table>")[0]
        for file in ("A/report.html", compared / "graph.html")
    ]
    assert tables[0] == tables[1]
    assert command.facts("export", "A", "B")["runs"] == 6


def test_a_report_goes_where_the_user_said_and_nowhere_else(
    command: Command, compared: Path
) -> None:
    shown = command("report", "--out", "-")
    assert shown.status == 0, shown.err
    assert shown.out.startswith("<!doctype html>")
    assert shown.out.endswith("</html>\n")
    Path("link").symlink_to("target")
    assert command("report", "--out", "link").status == 0
    assert Path("link").is_symlink()
    assert Path("target").read_text() == shown.out
    (compared / "report.html").symlink_to(Path("victim").absolute())
    assert command("report").status == 0
    assert not Path("victim").exists()


def test_a_checkpoint_is_shown_node_by_node_at_the_end(
    command: Command, compared: Path, recipe: Path
) -> None:
    arguments = ("--method", "temp_gated", "--recipe", recipe, "--out", "run")
    command("train", "graph.npz", *arguments, "--quiet")
    ended = command("report", "--checkpoint", "run", "--data", "graph.npz")
    assert ended.status == 0, ended.err
    text = (compared / "report.html").read_text()
    table, node = text.index("<table"), text.index("Node by node: temp_gated on graph")
    assert table < node < text.index('class="explorer"')
    command.refuses("add --checkpoint", "report", "--data", "graph.npz")


def test_a_missing_store_ends_in_a_line_that_says_what_to_do(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("nowhere", "there is no file or folder nowhere; make one with `tempergat"),
        ("empty", "the folder empty has no store.sqlite with runs; make one with"),
    ):
        ended = command("report", name)
        assert ended.status == 2
        assert ended.err.count("\n") == 1
        assert words in ended.err


def test_a_file_that_is_no_store_is_not_called_damaged(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "labels.csv").write_text("node,label\n" + "0,a\n" * 500)
    (tmp_path / "store.sqlite").write_bytes(b"\xff" * 5000)
    ended = command("report", "labels.csv")
    assert ended.status == 2
    assert "labels.csv is not a store of tempergat; name a store.sqlite" in ended.err
    ended = command("report", "store.sqlite")
    assert "store.sqlite is not a store, or is damaged" in ended.err


def test_every_run_of_a_store_is_a_row(command: Command, tmp_path: Path) -> None:
    runs = study("cora", {"gat": 80.0, "gated": 81.0}, range(4))
    with Store(tmp_path / "store.sqlite") as store:
        store.put_group(runs)
    table = tmp_path / "runs.csv"
    ended = command("export", tmp_path / "store.sqlite", "--to", table)
    assert (ended.status, ended.out) == (0, f"wrote 8 runs to {table}\n")
    assert {(run.method, run.seed) for run in read_runs(table)} == {
        (run.method, run.seed) for run in runs
    }
    assert command.facts("export", tmp_path, "--to", table) == {
        "runs": 8,
        "replaced": {"cora": 8},
        "kept": {},
        "file": str(table),
    }


def test_a_missing_store_is_named_and_not_created(
    command: Command, tmp_path: Path
) -> None:
    command.refuses("there is no file or folder", "export", tmp_path / "none")
    assert not (tmp_path / "none").exists()
