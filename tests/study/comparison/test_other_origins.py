"""Runs made on another device or by other code are counted, not compared."""

from dataclasses import replace
from pathlib import Path

import tempergat
from tempergat.study.engine import Store
from tests.support.tiny_graph import write_graph, write_recipe


def test_stored_runs_from_another_device_are_counted_below_the_table(
    tmp_path: Path,
) -> None:
    graph = write_graph(tmp_path / "graph.npz")
    recipe = write_recipe(tmp_path / "recipe.yaml")
    arguments = {"runs": 2, "recipe": recipe, "device": "cpu", "progress": False}
    here = tempergat.compare(graph, "gat", **arguments)
    assert "in the store" not in repr(here)
    out = tmp_path / "out"
    with Store(out / "store.sqlite") as store:
        store.put_group(
            [replace(run, device="cuda (some GPU)", group_id=None) for run in here.runs]
        )
    found = tempergat.compare(graph, "gat", **arguments, out=out)
    assert found.table[0]["mean"] == here.table[0]["mean"]
    assert [run.device for run in found.runs] == ["cpu", "cpu"]
    assert "2 runs made on cuda (some GPU) are in the store" in repr(found)
