"""`reproduce noise --run`: missing runs of the noise study are trained."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tempergat.data import Dataset, load
from tempergat.study.engine import Progress
from tempergat.study.noise import NOISE_STORE, load_plan, read_noise_csv
from tempergat.study.reproduce import PAGES, Workspace, graph_runs, pages, run_page
from tempergat.training import Recipe, load_recipe

FIXTURES = Path(__file__).parents[2] / "fixtures" / "small_graph"
PAGE = PAGES["noise"]


def small_graph(name: str) -> Dataset:
    return replace(load(str(FIXTURES / "graph")), name=name, scaling={})


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Progress]:
    """The page needs short runs on one small graph; what training reports."""
    plan = load_plan(FIXTURES / "noise_plan.yaml").model_copy(
        update={"datasets": ("graph",)}
    )
    recipe = load_recipe(FIXTURES / "recipe.yaml")

    def small_recipe(name: str) -> tuple[str, Recipe]:
        return name, recipe

    monkeypatch.setattr(pages, "load_plan", lambda: plan)
    monkeypatch.setattr(graph_runs, "recipe_for", small_recipe)
    return []


def workspace(folder: Path, events: list[Progress]) -> Workspace:
    return Workspace(
        folder / "results",
        folder / "out",
        torch.device("cpu"),
        load=small_graph,
        watch=lambda name: events.append,
    )


def test_noise_runs_are_made_from_nothing(
    tmp_path: Path, events: list[Progress]
) -> None:
    place = workspace(tmp_path, events)
    (job,) = PAGE.jobs(place)
    assert (job.stock(place).present, job.stock(place).needed) == (0, 45)
    (line,) = run_page(PAGE, place).done
    assert "wrote 45 runs" in line
    assert job.stock(place).is_complete
    assert any(event.epoch for event in events)
    # The store is not published, so it is not among the results.
    files = [path.name for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert files == ["graph.csv"]
    assert (tmp_path / "out" / NOISE_STORE).is_file()
    PAGE.write(place.results, tmp_path / "docs")
    assert (tmp_path / "docs" / "noise.md").is_file()


def test_only_missing_noise_runs_are_trained(
    tmp_path: Path, events: list[Progress]
) -> None:
    place = workspace(tmp_path, events)
    path = tmp_path / "results" / "noise" / "graph.csv"
    path.parent.mkdir(parents=True)
    lines = (FIXTURES / "noise.csv").read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "temp_gated,no," not in line))
    (job,) = PAGE.jobs(place)
    (batch,) = job.stock(place).missing
    assert (batch.config.method, batch.config.decay_temperature) == (
        "temp_gated",
        False,
    )
    assert (batch.runs, job.stock(place).present) == (15, 30)
    run_page(PAGE, place)
    assert {event.group_runs for event in events if event.epoch} == {15}
    assert len(read_noise_csv(path)) == 45
    events.clear()
    assert run_page(PAGE, place).done == ()
    assert events == []


def test_runs_under_conditions_outside_the_plan_do_not_count(
    tmp_path: Path, events: list[Progress]
) -> None:
    place = workspace(tmp_path, events)
    path = tmp_path / "results" / "noise" / "graph.csv"
    path.parent.mkdir(parents=True)
    text = (FIXTURES / "noise.csv").read_text()
    path.write_text(text.replace(",gaussian,1,", ",gaussian,1.5,"))
    (job,) = PAGE.jobs(place)
    assert job.stock(place).present < 45
