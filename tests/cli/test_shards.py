"""`tempergat compare --shard` and `tempergat merge`, as a user runs them."""

from pathlib import Path

from tests.cli.conftest import Command
from tests.crash.test_compare_survives_kills import _runs, _tables


def test_three_shards_and_a_merge_give_the_table_of_one(
    command: Command, compare: Command
) -> None:
    study = Command(compare, "--runs", 3, "--methods", "gcn,gat,gated,temp_gated")
    shards = [f"shard-{number}" for number in (1, 2, 3)]
    for number, folder in enumerate(shards, start=1):
        found = study.facts("--shard", f"{number}/3", "--out", folder)
        assert (found["shard"], found["total_runs"]) == (number, 12)
        assert "verdict" not in found
        assert not Path(folder, "graph.md").exists()
    merged = command("merge", *shards, "--out", "merged")
    assert "12 runs, 12 of them new" in merged.out + merged.err
    assert "12 of 12 runs are there already" in study("--out", "merged").err
    assert study("--out", "whole").status == 0
    assert _runs(Path("merged")) == _runs(Path("whole"))
    assert _tables(Path("merged")) == _tables(Path("whole"))


def test_a_merge_that_is_refused_says_so_in_one_line(command: Command) -> None:
    ended = command("merge", "nowhere.sqlite", "--out", "all")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "there is no store nowhere.sqlite" in ended.err
