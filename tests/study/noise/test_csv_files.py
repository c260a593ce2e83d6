"""CSV files of noise are reproduced, and continued without losing a row."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tempergat.base import UserError
from tempergat.data import Dataset, load
from tempergat.study.engine import Progress, Store
from tempergat.study.noise.export import read_noise_csv, study_of, write_noise_csv
from tempergat.study.noise.plan import load_plan
from tempergat.study.noise.runs import NOISE_STORE, run_noise
from tempergat.study.noise.variants import variant_of
from tempergat.training import Condition, LayerRecord, Run, load_recipe

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "small_graph"
CPU = torch.device("cpu")
STORED = FIXTURES / "noise.csv"
RECIPE = load_recipe(FIXTURES / "recipe.yaml")
PLAN = load_plan(FIXTURES / "noise_plan.yaml")


def graph() -> Dataset:
    return replace(load(str(FIXTURES / "graph")), name="graph", scaling={})


def trained(path: Path, events: list[Progress] | None = None) -> list[Run]:
    show = None if events is None else events.append
    return run_noise(graph(), RECIPE, PLAN, path, CPU, show)


def key(run: Run) -> tuple[str, Condition | None, int, str]:
    """What no two runs of a study share."""
    return (variant_of(run), run.condition, run.seed, study_of(run))


# Learned values: another CPU rounds their last digits differently.
ROUNDED = ("temperature_", "gate_", "spread_", "entropy_")


def cells(file: Path, number: Callable[[float], object] = float) -> list[object]:
    """The cells of a CSV but for the times and the version of torch."""
    return [
        {
            name: number(float(cell)) if cell and name.startswith(ROUNDED) else cell
            for name, cell in row.items()
            if name not in ("time_s", "torch")
        }
        for row in csv.DictReader(io.StringIO(file.read_text()))
    ]


def test_a_fresh_study_writes_the_stored_csv(tmp_path: Path) -> None:
    trained(tmp_path / "graph.csv")
    expected = cells(STORED, lambda x: pytest.approx(x, rel=1e-5, abs=1e-6))
    assert cells(tmp_path / "graph.csv") == expected


def test_a_finished_csv_is_left_alone(tmp_path: Path) -> None:
    path, events = tmp_path / "graph.csv", []
    path.write_bytes(STORED.read_bytes())
    assert len(trained(path, events)) == 45
    assert events == []
    assert path.read_bytes() == STORED.read_bytes()
    assert not (tmp_path / NOISE_STORE).exists()


@pytest.mark.parametrize(
    "file",
    [STORED, *sorted((ROOT / "results" / "noise").glob("*.csv"))],
    ids=lambda file: file.stem,
)
def test_a_csv_that_is_read_and_written_keeps_its_bytes(
    file: Path, tmp_path: Path
) -> None:
    write_noise_csv(tmp_path / "copy.csv", read_noise_csv(file))
    assert (tmp_path / "copy.csv").read_bytes() == file.read_bytes()


def test_a_csv_read_with_its_settings_has_the_same_hash(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_bytes(STORED.read_bytes())
    read, recognised = read_noise_csv(path), trained(path)
    assert [key(run) for run in recognised] == [key(run) for run in read]
    assert {run.fingerprint for run in read} == {""}
    assert {run.fingerprint for run in recognised} == {graph().fingerprint}
    assert all("learning_rate" in run.config for run in recognised)


def test_a_failed_run_keeps_its_reason_in_the_csv(tmp_path: Path) -> None:
    done, *_ = read_noise_csv(STORED)
    failed = replace(
        done,
        status="failed",
        scores={},
        selected=LayerRecord(),
        reason="loss is not a number",
    )
    write_noise_csv(tmp_path / "graph.csv", [failed])
    assert read_noise_csv(tmp_path / "graph.csv") == [failed]


def test_an_unfinished_csv_is_continued(tmp_path: Path) -> None:
    old = {key(run): run for run in read_noise_csv(STORED)}
    left = [
        run for run in old.values() if variant_of(run) != "temp_gated, theta undecayed"
    ]
    path = tmp_path / "graph.csv"
    write_noise_csv(path, left)
    lines = set(path.read_text().splitlines())
    events: list[Progress] = []
    runs = {key(run) for run in trained(path, events)}
    assert runs == old.keys()
    assert lines <= set(path.read_text().splitlines())
    assert {event.group_runs for event in events if event.epoch} == {15}
    with Store(tmp_path / NOISE_STORE) as store:
        assert len(store.runs()) == 45


def test_a_store_alone_gives_the_csv_again(tmp_path: Path) -> None:
    path, events = tmp_path / "graph.csv", []
    trained(path)
    text = path.read_text()
    path.unlink()
    trained(path, events)
    assert path.read_text() == text
    assert not any(event.epoch for event in events)


def test_runs_of_another_device_are_not_continued_here(tmp_path: Path) -> None:
    runs = [replace(r, device="cuda (A)") for r in read_noise_csv(STORED)]
    path = tmp_path / "graph.csv"
    write_noise_csv(path, runs[:30])
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"made on cuda \(A\), and 15 runs are missing"):
        trained(path)
    assert path.read_bytes() == before
    # Nothing is missing here, so nothing would be mixed.
    write_noise_csv(path, runs)
    assert len(trained(path)) == 45


def test_a_study_cut_short_is_trained_on_with_fewer_levels(tmp_path: Path) -> None:
    """A group that was cut and not trained is reduced to the levels asked for."""
    path = tmp_path / "graph.csv"

    def stop(progress: Progress) -> None:
        if progress.epoch:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_noise(graph(), RECIPE, PLAN, path, CPU, stop)
    fewer = PLAN.model_copy(update={"gaussian": (0.0, 1.0, 4.0)})
    assert len(run_noise(graph(), RECIPE, fewer, path, CPU)) == 45
    assert len(run_noise(graph(), RECIPE, PLAN, path, CPU)) == 54


def test_messages_name_the_plan_and_the_number_of_seeds_is_checked(
    tmp_path: Path,
) -> None:
    (tmp_path / "plan.yaml").write_text("seeds: 3\n")
    with pytest.raises(UserError, match=r"^the plan .*plan\.yaml: "):
        load_plan(tmp_path / "plan.yaml")
    with pytest.raises(UserError, match=r"^the plan of the package: seeds"):
        load_plan(seeds=1)
    assert load_plan(seeds=4).seeds == 4
