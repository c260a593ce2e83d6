"""Groups that are trained at once have the runs that they have alone."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tempergat.base import UserError
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps import sweep as sweep_module
from tempergat.comparison.sweeps import workers
from tempergat.comparison.sweeps.state import Progress
from tempergat.comparison.sweeps.sweep import sweep
from tempergat.data import Dataset, load
from tempergat.training import OutOfMemory, Run, RunConfig, load_recipe, train_group

METHODS = ("gcn", "gat", "temp_gated", "gatv2")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return load("demo")


@pytest.fixture
def two_threads() -> None:
    """As on a machine with two cores, whatever this one has."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def _configs() -> list[RunConfig]:
    recipe = load_recipe("demo")
    return [recipe.config_for(name).with_changes(epochs=3) for name in METHODS]


def _comparable(run: Run) -> Run:
    return replace(run, time_s=0.0, group_id=None)


def test_several_groups_at_once_give_the_runs_of_one_at_a_time(
    demo: Dataset, two_threads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for count in (1, 2):
        monkeypatch.setattr(sweep_module, "groups_at_once", lambda *_, n=count: n)
        with Store(tmp_path / f"{count}.sqlite") as store:
            runs = sweep(demo, _configs(), range(3), store, CPU)
        found[count] = [_comparable(run) for run in runs]
    assert found[1] == found[2]
    assert torch.get_num_threads() == 2


def test_two_groups_train_at_the_same_time(
    demo: Dataset, two_threads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Passed only if two trainings wait here together.
    both = threading.Barrier(2, timeout=60)

    def train(*arguments: object) -> list[Run]:
        both.wait()
        return train_group(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "train_group", train)
    seen: list[Progress] = []
    with Store(tmp_path / "store.sqlite") as store:
        runs = sweep(demo, _configs(), range(2), store, CPU, seen.append)
    assert len(runs) == 8
    assert seen[-1].runs_done == 8
    assert sum(len(progress.new) for progress in seen) == 8


def test_groups_that_do_not_fit_memory_together_are_trained_alone(
    demo: Dataset, two_threads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = threading.Semaphore(1)

    def train(*arguments: object) -> list[Run]:
        if not running.acquire(blocking=False):
            raise OutOfMemory("too little")
        try:
            return train_group(*arguments)  # type: ignore[arg-type]
        finally:
            running.release()

    monkeypatch.setattr(workers, "train_group", train)
    with Store(tmp_path / "store.sqlite") as store:
        runs = sweep(demo, _configs(), range(2), store, CPU)
        groups = {run.group_id for run in runs}
    assert len(runs) == 8
    # None of them was cut.
    assert len(groups) == 4


def test_an_error_in_one_group_ends_the_others(
    demo: Dataset, two_threads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(dataset: Dataset, config: RunConfig, *rest: object) -> list[Run]:
        # One of the two that take longest, which are trained first.
        if config.method == "gatv2":
            raise UserError("no such thing")
        return train_group(
            dataset,
            config.with_changes(epochs=10_000),
            *rest,  # type: ignore[arg-type]
        )

    monkeypatch.setattr(workers, "train_group", train)
    with (
        Store(tmp_path / "store.sqlite") as store,
        pytest.raises(UserError, match="no such thing"),
    ):
        sweep(demo, _configs(), range(2), store, CPU)


def test_groups_that_take_long_are_trained_first(
    demo: Dataset, two_threads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def train(dataset: Dataset, config: RunConfig, *rest: object) -> list[Run]:
        order.append(config.method)
        return train_group(dataset, config, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "train_group", train)
    with Store(tmp_path / "store.sqlite") as store:
        runs = sweep(demo, _configs(), range(2), store, CPU)
    assert set(order[:2]) == {"temp_gated", "gatv2"}
    # The runs come in the order asked for.
    assert [run.method for run in runs[::2]] == list(METHODS)
