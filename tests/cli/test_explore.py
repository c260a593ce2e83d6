"""`tempergat explore`."""

import os
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.fixture(name="run")
def checkpoint_folder(command: Command, graph: Path, recipe: Path) -> Path:
    arguments = ("--method", "temp_gated", "--recipe", recipe, "--out", "run")
    ended = command("train", graph, *arguments, "--quiet")
    assert ended.status == 0, ended.err
    return Path("run")


def test_the_page_is_written_and_its_size_said(
    command: Command, run: Path, graph: Path
) -> None:
    ended = command("explore", run, graph)
    assert ended.status == 0, ended.err
    assert ended.out == "explorer explore.html   60 nodes, 0.1 MB\n"
    assert Path("explore.html").read_text().startswith("<!doctype html>")


def test_what_the_user_named_is_written_into_and_a_planted_link_is_not_followed(
    command: Command, run: Path, graph: Path
) -> None:
    shown = command("explore", run, graph, "--out", "-")
    assert shown.status == 0, shown.err
    assert shown.out.startswith("<!doctype html>")
    assert shown.out.endswith("</html>\n")
    assert "explorer -   60 nodes" in shown.err
    os.mkfifo("fifo")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("fifo").read_text()))
    reader.start()
    assert command("explore", run, graph, "--out", "fifo").status == 0
    reader.join(10.0)
    assert read == [shown.out]
    Path("link").symlink_to("target")
    assert command("explore", run, graph, "--out", "link").status == 0
    assert Path("link").is_symlink()
    assert Path("target").read_text() == shown.out
    # The user did not choose this name.
    Path("explore.html").symlink_to("victim")
    assert command("explore", run, graph).status == 0
    assert not Path("victim").exists()
    assert Path("explore.html").read_text() == shown.out


def test_a_graph_that_is_no_dataset_must_be_given(command: Command, run: Path) -> None:
    ended = command("explore", run)
    assert ended.status == 2
    assert ended.err.count("\n") == 1
    assert "a graph given in Python or as a file (named graph)" in ended.err
    assert "add the path of the graph to the command" in ended.err
    assert "there is no dataset" not in ended.err


def test_mistakes_are_said_before_anything_is_written(
    command: Command, run: Path, graph: Path, recipe: Path
) -> None:
    assert "cannot read checkpoint nowhere" in command("explore", "nowhere").err
    assert "did you mean cora" in command("explore", run, "corra").err
    command.refuses("graph.npz", "explore", run, graph, "--out", graph / "explore.html")
    command(
        *("train", graph, "--method", "gcn", "--recipe", recipe),
        *("--out", "plain", "--quiet"),
    )
    command.refuses("gcn has no attention to show", "explore", "plain", graph)
    assert not Path("explore.html").exists()
