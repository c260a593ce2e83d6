"""The joint calibration and the multiverse are trained in parts that add up."""

import math
from pathlib import Path

import pytest
import torch
import yaml

from tempergat.data import Dataset
from tempergat.study.engine import Progress, read_runs
from tempergat.study.reproduce import PAGES, Workspace, run_page
from tempergat.study.reproduce.method_runs import MethodRuns
from tests.support.run_settings import config, small_graph
from tests.support.small_study import RESULTS

SMALL = {
    "seeds": 2,
    "weight_decay": [1e-3],
    "normalize_features": [False],
    "variants": ["gated", "temp_only"],
    # Two runs on a small graph may have equal scores, far from any deviation.
    "near_standard_errors": math.inf,
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Results with a small plan, and graphs that train in a moment."""
    results = tmp_path / "results"
    plan = yaml.safe_load((RESULTS / "multiverse" / "plan.yaml").read_text())
    (results / "multiverse").mkdir(parents=True)
    (results / "multiverse" / "plan.yaml").write_text(yaml.safe_dump(plan | SMALL))

    class SmallRecipe:
        @staticmethod
        def config_for(method: str) -> object:
            return config(method, epochs=1)

    module = "tempergat.study.multiverse.plan.paper_recipe"
    monkeypatch.setattr(module, lambda name: SmallRecipe())
    for name in ("calibration_runs", "paper_runs"):
        monkeypatch.setattr(f"tempergat.study.reproduce.pages.{name}", finished_job)
    return Workspace(
        results, tmp_path / "out", torch.device("cpu"), load=lambda name: GRAPHS[name]
    )


GRAPHS = {
    name: Dataset(**(vars(small_graph(seed=seed)) | {"name": name}))
    for seed, name in enumerate(("cora", "citeseer", "pubmed"))
}


def finished_job(dataset: str, *rest: object) -> MethodRuns:
    """A job without runs, in the place of those of other studies."""
    return MethodRuns(dataset, "other.csv", (), range(0))


def runs_in(place: Workspace) -> int:
    folder = place.results / "multiverse"
    return sum(len(read_runs(path)) for path in folder.glob("*.csv"))


def test_variants_wait_for_the_baselines_and_are_added_to_them(
    place: Workspace,
) -> None:
    assert run_page(PAGES["homogeneous"], place).not_done == {}
    assert runs_in(place) == 0
    assert run_page(PAGES["calibration"], place).not_done == {}
    # 2 conventions of dropout, 2 baselines, 3 datasets, 2 seeds.
    assert runs_in(place) == 24
    assert run_page(PAGES["homogeneous"], place).not_done == {}
    # 2 trainings with 2 variants; 1 temperature, 2 times 1 gate varied in the nearest.
    assert runs_in(place) == 24 + (2 * 2 + 1 + 2) * 3 * 2
    fresh = Workspace(place.results, place.out / "new", place.device, place.load)
    assert run_page(PAGES["homogeneous"], fresh).done == ()


def test_a_stopped_training_leaves_its_finished_runs_in_the_file(
    place: Workspace,
) -> None:
    def stop_after_two(progress: Progress) -> None:
        if progress.runs_done >= 2:
            raise KeyboardInterrupt

    stopped = Workspace(
        place.results, place.out, place.device, place.load, lambda name: stop_after_two
    )
    with pytest.raises(KeyboardInterrupt):
        run_page(PAGES["calibration"], stopped)
    assert 2 <= runs_in(place) < 24
    fresh = Workspace(place.results, place.out / "new", place.device, place.load)
    run_page(PAGES["calibration"], fresh)
    assert runs_in(place) == 24
