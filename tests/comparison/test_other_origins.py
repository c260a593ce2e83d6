"""Runs on other devices, by other code or under noise are not compared."""

from dataclasses import replace
from pathlib import Path

import tempergat
from tempergat.comparison.results.from_store import stored_comparisons
from tempergat.comparison.storage.store import Store
from tempergat.training import Condition
from tests.support.made_up_runs import study
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
        runs = [replace(run, group_id=None) for run in here.runs]
        store.put_group([replace(run, device="cuda (some GPU)") for run in runs])
        store.put_group([replace(runs[0], numerics=7)])
    found = tempergat.compare(graph, "gat", **arguments, out=out)
    assert found.table[0]["mean"] == here.table[0]["mean"]
    assert [run.device for run in found.runs] == ["cpu", "cpu"]
    assert (
        "1 run made on cpu with numerics 7 and 2 runs made on cuda (some GPU) are in "
        "the store and are not compared with these."
    ) in found.notes


def test_stored_runs_under_noise_have_a_table_of_their_own(tmp_path: Path) -> None:
    clean = study("cora", {"gat": 80.0}, range(3))
    noise = Condition("gaussian", 1.0)
    other = study("cora", {"gated": 80.0}, range(2))
    noisy = [replace(run, condition=noise) for run in other]
    with Store(tmp_path / "store.sqlite") as store:
        store.put_group(clean)
        store.put_group(noisy)
    plain, under_noise = stored_comparisons(tmp_path)
    assert [found.table[0]["runs"] for found in (plain, under_noise)] == [3, 2]
    assert "noise on the features" not in repr(plain)
    assert "With Gaussian noise on the features, 1 times" in repr(under_noise)
