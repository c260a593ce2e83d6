"""The tests of docs/tuned.md by scipy, and its searches, stopped and continued."""

from functools import partial
from pathlib import Path

import pytest
import torch
from scipy.stats import ttest_rel

from studies.results import read_csv, read_runs, read_whole_runs
from studies.runner import Runner, Stage
from studies.tuned import study
from studies.tuned.tables import GRAPHS, REPEATED, means, over_searches, result
from tempergat.base import UserError
from tempergat.comparison.storage.store import Store
from tempergat.data import csbm
from tempergat.training import Run, config_hash, load_recipe
from tests.support.tiny_graph import write_recipe

GRAPH = csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0)
VARIANTS = 8


def test_the_least_p_of_a_graph_is_that_of_scipy_for_all_its_variants() -> None:
    runs = read_runs("tuned/runs.csv").query("200000 <= seed <= 200049")
    for graph in GRAPHS:
        of_graph = runs[runs["dataset"] == graph]
        scores = of_graph.pivot(index="seed", columns="method", values="test")
        tests = [one.comparison for one in result(graph).results if one.comparison]
        least = min(tests, key=lambda one: one.t_p)
        p = ttest_rel(scores[least.method], scores[least.baseline]).pvalue
        assert len(scores) == 50
        assert least.t_p_holm == pytest.approx(VARIANTS * p)
    for graph in REPEATED:
        least = min(over_searches(graph).values(), key=lambda one: one.t_p)
        pair = means(graph).loc[[least.method, least.baseline]].to_numpy()
        assert least.t_p_holm == pytest.approx(VARIANTS * ttest_rel(*pair).pvalue)


def test_reported_runs_have_the_best_settings_of_their_search_and_none_collapses() -> (
    None
):
    """The page says so in words, and compares methods that were tuned."""
    runs = read_runs("tuned/runs.csv")
    tried, reported = runs[runs["seed"] < 200000], runs[runs["seed"] >= 200000]
    groups = ["dataset", "method"]
    val = tried.groupby([*groups, "config_hash"])["val"].mean()
    chosen = reported.set_index([*groups, "config_hash"]).index.unique()
    assert len(chosen) == 33
    best = val.groupby(groups).max().to_numpy()
    assert val.loc[chosen].sort_index().to_numpy() == pytest.approx(best)
    assert (reported["last_epoch_train"] >= 0.5).all()
    trials = read_csv("tuned/trials.csv")
    best = trials.groupby(["dataset", "repeat", "method"])["val_mean"].transform("max")
    assert (trials["val_mean"] == best)[trials["chosen"]].all()
    assert trials["chosen"].sum() == 66


class Place:
    """A folder of results and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, monkeypatch: pytest.MonkeyPatch, stages: int | None = None) -> None:
        """Trains what is missing, but stops before more than some stages."""
        monkeypatch.setattr("studies.results.STUDIES", self.folder)
        left = iter(range(1000 if stages is None else stages))

        def watch(graph: str) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        with Store(self.folder / "store.sqlite") as store:
            Runner(store, torch.device("cpu"), watch).run(study.stages(GRAPH.name))

    def runs(self, file: str) -> dict[tuple[str, int], Run]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("studies.results.STUDIES", self.folder)
            found = read_whole_runs(f"tuned/{file}")
        return {(run.config_hash, run.seed): run for run in found}

    @property
    def trials(self) -> str:
        return (self.folder / "tuned" / "results" / "trials.csv").read_text()


def test_searches_that_were_stopped_continue_and_nothing_is_trained_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml", epochs=1)
    searches = [
        {
            "graphs": [GRAPH.name],
            "sampler_seed": number,
            "first_seed": 10 * number + 10,
            "reported_seeds": reported,
        }
        for number, reported in enumerate(["50 to 51", "60 to 61", "60 to 61"])
    ]
    plan = {"graphs": {GRAPH.name: str(recipe)}, "methods": ["gcn", "mlp"]}
    plan |= {"trials": 2, "seeds": 1, "searches": searches}
    monkeypatch.setattr(study, "PLAN", plan)
    monkeypatch.setattr(study, "Stage", partial(Stage, load=lambda name: GRAPH))
    whole, stopped = Place(tmp_path / "whole"), Place(tmp_path / "stopped")
    whole.run(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(monkeypatch, stages=2)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(monkeypatch, stages=8)
    before = {file: stopped.runs(file) for file in ("runs.csv", "repeats.csv")}
    stopped.run(monkeypatch)
    for file, trained in before.items():
        after = stopped.runs(file)
        # With the time that it took.
        assert trained.items() <= after.items()
        assert {k: run.scores for k, run in after.items()} == {
            k: run.scores for k, run in whole.runs(file).items()
        }
    assert {seed for _, seed in whole.runs("runs.csv")} == {10, 50, 51}
    assert stopped.trials == whole.trials
    assert whole.trials.count("True") == 4
    own = load_recipe(recipe).config_for("gcn").model_dump(mode="json")
    assert f"{GRAPH.name},1,gcn,0,{config_hash(own)}," in whole.trials

    # What is whole is not searched again, so it needs no Optuna.
    def absent(*_: object, **__: object) -> None:
        raise UserError("the search needs optuna")

    monkeypatch.setattr(study, "Proposals", absent)
    assert list(study.stages(GRAPH.name)) == []
