"""The options that say how a user graph is read, and the lines about it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command

ADDED = "read as an undirected graph that lists each edge once"
QUICK = {
    "compare": ["--runs", "1", "--methods", "gcn"],
    "train": ["--method", "gcn"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables of a ring that list each edge once."""
    path = tmp_path / "ring"
    path.mkdir()
    rows = "".join(f"{node / 2},{node % 2}\n" for node in range(20))
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
    assert "read: label from label; nodes named by row number, from 0; f" in ended.err
    assert "; edges are followed both ways; scaled f\n" in ended.err
    assert ADDED in ended.err
    guessed = command(*common, "--out", "both", "--quiet")
    assert ADDED in guessed.err
    chosen = command(*common, "--out", "one", "--quiet", "--directed")
    assert chosen.status == 0
    assert chosen.err == ""
    shown = command(*common, "--out", "one", "--directed")
    assert "; edges are followed one way, from source to target; sc" in shown.err


def write_nodes(folder: Path, table: str) -> Path:
    (folder / "nodes.csv").write_text(table)
    return folder


REFUSED = {
    "no validation nodes": "f,label,split\n" + "1,0,train\n2,1,test\n" * 10,
    "one class": "f,label\n" + "1,0\n" * 20,
    "too few labels": "f,label\n" + "1,0\n2,1\n" + "1,\n" * 18,
    "no features": "label\n" + "0\n1\n" * 10,
    "a missing feature": "f,label\n" + "1,0\n,1\n" * 10,
}


@pytest.mark.parametrize("graph", REFUSED)
def test_check_refuses_what_compare_refuses_in_the_same_words(
    graph: str, command: Command, folder: Path, recipe: Path
) -> None:
    write_nodes(folder, REFUSED[graph])
    compared = command(
        "compare", folder, "--recipe", recipe, "--runs", "1", "--methods", "gcn,gat"
    )
    checked = command("data", "check", folder)
    assert (compared.status, checked.status) == (2, 2)
    assert checked.err == compared.err.splitlines(keepends=True)[-1]
    assert "nodes " in checked.out


def test_a_graph_without_features_is_trained_on_made_ones(
    command: Command, folder: Path, recipe: Path
) -> None:
    write_nodes(folder, REFUSED["no features"])
    arguments = ("train", folder, "--method", "gat", "--recipe", recipe)
    assert "--make-features degree" in command(*arguments).err
    assert command(*arguments, "--make-features", "degree").status == 0


def test_check_looks_at_a_graph_without_labels(command: Command, folder: Path) -> None:
    write_nodes(folder, "f\n" + "1\n2\n" * 10)
    ended = command("data", "check", folder)
    assert ended.status == 0, ended.err
    assert "predict can classify its nodes; compare and train need labels" in ended.out


def test_check_explains_a_dataset_by_name_and_info_a_path(
    command: Command, folder: Path
) -> None:
    command.refuses("`tempergat data info cora`", "data", "check", "cora")
    assert f"`tempergat data check {folder}`" in command("data", "info", folder).err


def test_check_names_what_lies_in_place_of_a_table(
    command: Command, folder: Path
) -> None:
    table = folder / "nodes.csv"
    kinds: list[tuple[str, Callable[[], object]]] = [
        ("is a folder, but a table is a file", table.mkdir),
        ("is a pipe, but a table is a file", lambda: os.mkfifo(table)),
        ("is a broken link, but", lambda: table.symlink_to("nowhere")),
        ("is a link that cannot be followed", lambda: table.symlink_to("nodes.csv")),
    ]
    for words, make in kinds:
        if table.is_dir():
            table.rmdir()
        else:
            table.unlink()
        make()
        command.refuses(words, "data", "check", folder)
    assert "is a device" in command("data", "check", "/dev/null").err


def test_a_pipe_in_place_of_a_recipe_or_a_checkpoint_is_refused(
    command: Command, graph: Path
) -> None:
    os.mkfifo("pipe.yaml")
    words = "pipe.yaml: it is a pipe or a device, not a file; give the path of a"
    command.refuses(words, "compare", graph, "--recipe", "pipe.yaml")
    command.refuses(words, "predict", "pipe.yaml", graph)


def test_control_characters_of_a_table_do_not_reach_the_terminal(
    command: Command, folder: Path, recipe: Path
) -> None:
    evil = "\x1b[2Jpwned\x07"
    rows = "".join(f"{at % 7},{evil}{'ab'[at % 2]}\n" for at in range(20))
    write_nodes(folder, f"{evil}f,label\n{rows}")
    (folder / "edges.csv").write_text(f"source,target,{evil}\n0,1,2\n3,4,5\n")
    quick = ("--recipe", recipe, "--runs", "1", "--methods", "gcn,gat")
    for arguments in (("data", "check", folder), ("compare", folder, *quick)):
        ended = command(*arguments)
        assert ended.status == 0, ended.err
        assert "pwned" in ended.out + ended.err
        assert "\x1b" not in ended.out + ended.err


def test_json_carries_the_notes(command: Command, folder: Path, recipe: Path) -> None:
    checked = command.facts("data", "check", folder)
    assert ADDED in next(f["value"] for f in checked if f["subject"] == "note")
    arguments = ("train", folder, "--method", "gcn", "--recipe", recipe, "--json")
    assert ADDED in json.loads(command(*arguments).out)["notes"][0]
