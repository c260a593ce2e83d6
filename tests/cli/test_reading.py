"""The options that say how a user graph is read, and the lines about it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command

ADDED = "read as an undirected graph that lists each edge once"
QUICK = {
    "compare": ["--runs", "1", "--methods", "gcn"],
    "train": ["--method", "gcn"],
    "diagnose": ["--runs", "2", "--methods", "gcn,gat", "--epochs", "2"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables of a ring that list each edge once."""
    path = tmp_path / "ring"
    path.mkdir()
    rows = "".join(f"{node},{node % 2}\n" for node in range(20))
    (path / "nodes.csv").write_text(f"f,label\n{rows}")
    lines = "".join(f"{node},{(node + 1) % 20}\n" for node in range(20))
    (path / "edges.csv").write_text(f"source,target\n{lines}")
    return path


@pytest.mark.parametrize("name", QUICK)
def test_commands_say_which_way_edges_are_followed(
    name: str, command: Command, folder: Path, recipe: Path
) -> None:
    common = (name, folder, "--recipe", recipe, *QUICK[name])
    ended = command(*common, "--out", "both")
    assert ended.status == 0, ended.err
    assert "edges are followed both ways\n" in ended.err
    assert ADDED in ended.err
    guessed = command(*common, "--out", "both", "--quiet")
    assert ADDED in guessed.err
    chosen = command(*common, "--out", "one", "--quiet", "--directed")
    assert chosen.status == 0
    assert chosen.err == ""
    shown = command(*common, "--out", "one", "--directed")
    assert "edges are followed one way, from source to target\n" in shown.err
