"""`tempergat compare --shard` and `tempergat merge`, as a user runs them."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.crash.test_compare_survives_kills import _runs, _tables
from tests.support.processes import ProcessStarter
from tests.support.tiny_graph import write_graph, write_recipe


def test_three_processes_and_a_merge_give_the_table_of_one(tmp_path: Path) -> None:
    write_graph(tmp_path / "graph.npz")
    write_recipe(tmp_path / "recipe.yaml")

    def arguments(out: str, *more: str) -> list[str]:
        study = ["compare", str(tmp_path / "graph.npz"), "--runs", "3", "--device"]
        recipe = ["cpu", "--recipe", str(tmp_path / "recipe.yaml")]
        return [*study, *recipe, "--out", str(tmp_path / out), *more]

    shards = [f"shard-{number}" for number in (1, 2, 3)]
    out = tmp_path / "output.txt"
    with ProcessStarter() as starter:
        for number, folder in enumerate(shards, start=1):
            starter.start(arguments(folder, "--shard", f"{number}/3", "--json"), out)
            assert starter.wait() == 0, out.read_text()
            found = json.loads(out.read_text()[out.read_text().index("{") :])
            assert (found["shard"], found["total_runs"]) == (number, 36)
            assert "verdict" not in found
            assert not (tmp_path / folder / "graph.md").exists()
        stores = [str(tmp_path / folder) for folder in shards]
        starter.start(["merge", *stores, "--out", str(tmp_path / "merged")], out)
        assert starter.wait() == 0, out.read_text()
        assert "36 runs, 36 of them new" in out.read_text()
        for folder in ("merged", "whole"):
            starter.start(arguments(folder), out)
            assert starter.wait() == 0, out.read_text()
            if folder == "merged":
                assert "36 of 36 runs are there already" in out.read_text()
    assert _runs(tmp_path / "merged") == _runs(tmp_path / "whole")
    assert _tables(tmp_path / "merged") == _tables(tmp_path / "whole")


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "one/two"])
def test_a_shard_that_does_not_exist_is_refused_in_one_line(
    compare: Command, shard: str
) -> None:
    ended = compare("--shard", shard)
    assert ended.status == 2
    assert shard in ended.err
    assert ended.err.count("\n") == 1


def test_a_merge_that_is_refused_says_so_in_one_line(command: Command) -> None:
    ended = command("merge", "nowhere.sqlite", "--out", "all")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "there is no store nowhere.sqlite" in ended.err
