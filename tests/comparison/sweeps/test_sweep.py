"""A sweep trains missing runs once, after any stop and from any process."""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch

from tempergat.base.errors import UserError
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps import workers
from tempergat.comparison.sweeps.state import Progress
from tempergat.comparison.sweeps.sweep import finished_runs, sweep
from tempergat.data import Dataset, csbm, gaussian
from tempergat.training import (
    Condition,
    OutOfMemory,
    Run,
    RunConfig,
    config_hash,
    load_recipe,
    noise_on_features,
    numerics_of,
    train_group,
)
from tests.support.tiny_graph import write_recipe

CPU = torch.device("cpu")
METHODS = ("gcn", "gat", "temp_gated")


def graph() -> Dataset:
    return csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


def configs(**changes: object) -> list[RunConfig]:
    with tempfile.TemporaryDirectory() as folder:
        recipe = load_recipe(write_recipe(Path(folder) / "recipe.yaml", **changes))
    return [recipe.config_for(method) for method in METHODS]


def timeless(runs: list[Run]) -> list[Run]:
    """A run without its time and group, which may differ; the rest must not."""
    return [replace(run, time_s=0.0, group_id=None) for run in runs]


def collect(
    events: list[Progress], stop: Callable[[Progress], bool] = lambda progress: False
) -> Callable[[Progress], None]:
    def on_progress(progress: Progress) -> None:
        events.append(progress)
        if stop(progress):
            raise KeyboardInterrupt

    return on_progress


def test_every_method_and_seed_is_trained_and_stored(store: Store) -> None:
    runs = sweep(graph(), configs(), range(3), store, CPU)
    assert [(run.method, run.seed) for run in runs] == [
        (method, seed) for method in METHODS for seed in range(3)
    ]
    assert sorted(store.runs(), key=str) == sorted(runs, key=str)
    gat, gated = runs[3], runs[6]
    assert gat.config["method"] == "gat"
    assert gat.config["epochs"] == 8
    assert set(gat.scores) == {"best_val_accuracy", "last_epoch", "best_val_loss"}
    assert gat.scores["last_epoch"].epoch == 8
    assert gat.selected.temperatures == gat.selected.gate_means == ()
    assert len(gated.selected.temperatures) == len(gated.last.gate_means) == 2
    assert gated.versions["torch"] == torch.__version__


def test_sweeping_again_trains_nothing(store: Store) -> None:
    events: list[Progress] = []
    first = sweep(graph(), configs(), range(2), store, CPU)
    again = sweep(graph(), configs(), range(2), store, CPU, collect(events))
    assert again == first
    assert not any(progress.epoch for progress in events)
    assert [run for progress in events for run in progress.new] == sorted(
        first, key=lambda run: (run.method, run.config_hash, run.seed)
    )


def test_more_seeds_leave_the_earlier_ones_as_they_were(store: Store) -> None:
    events: list[Progress] = []
    few = sweep(graph(), configs(), range(2), store, CPU)
    more = sweep(graph(), configs(), range(5), store, CPU, collect(events))
    assert [run for run in more if run.seed < 2] == few
    assert {progress.group_runs for progress in events if progress.epoch} == {3}


@pytest.mark.parametrize("stop_at", [0, 17])
def test_a_stopped_sweep_continues_to_the_same_result(
    tmp_path: Path, stop_at: int
) -> None:
    events: list[Progress] = []
    with Store(tmp_path / "whole") as store:
        whole = sweep(graph(), configs(), range(3), store, CPU)
    with Store(tmp_path / "stopped") as store:
        with pytest.raises(KeyboardInterrupt):
            sweep(
                graph(),
                configs(),
                range(3),
                store,
                CPU,
                collect(events, lambda progress: len(events) > stop_at),
            )
        kept = len(store.runs())
        assert kept % 3 == 0
        assert kept < 9
    with Store(tmp_path / "stopped") as store:
        assert timeless(sweep(graph(), configs(), range(3), store, CPU)) == timeless(
            whole
        )
        assert len(store.runs()) == 9


def test_progress_counts_runs_and_estimates_after_the_first_group(store: Store) -> None:
    events: list[Progress] = []
    sweep(graph(), configs(), range(2), store, CPU, collect(events))
    done = [progress.runs_done for progress in events]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == events[-1].runs == 6
    for progress in events:
        assert (progress.time_left_s is None) == (progress.runs_done == 0)
    assert events[-1].time_left_s == 0.0
    left = [p.time_left_s for p in events if p.method == "gat" and p.epoch]
    assert left == sorted(left, reverse=True)
    assert [p.epoch for p in events if p.method == "gcn" and p.epoch] == [*range(1, 9)]


def test_a_run_that_diverges_is_stored_as_failed(store: Store) -> None:
    runs = sweep(graph(), configs(learning_rate=1e30), range(2), store, CPU)
    assert sorted(store.runs(), key=str) == sorted(runs, key=str)
    assert {run.status for run in runs if run.method == "gat"} == {"failed"}
    assert all(run.failed_epoch and run.reason for run in runs if run.scores == {})


def test_runs_of_another_origin_than_asked_for_are_an_error_and_trained_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []

    def train(*arguments: object) -> list[Run]:
        trained.append(arguments)
        runs = train_group(*arguments)  # type: ignore[arg-type]
        return [replace(run, numerics=7) for run in runs]

    monkeypatch.setattr(workers, "train_group", train)
    with pytest.raises(UserError, match="6 runs cannot be read back"):
        sweep(graph(), configs(), range(2), store, CPU)
    assert len(trained) == len(METHODS)


def test_other_settings_are_other_runs(store: Store) -> None:
    sweep(graph(), configs(), [0], store, CPU)
    others = sweep(graph(), configs(epochs=3), [0], store, CPU)
    assert {run.scores["last_epoch"].epoch for run in others} == {3}
    assert len(store.runs()) == 6


def test_runs_under_noise_are_those_of_a_graph_with_that_noise(store: Store) -> None:
    clean, (_, gat, _) = graph(), configs()
    x = clean.data.x
    unit = float(x.square().mean().sqrt())
    levels = [Condition("gaussian", 2.0), Condition("gaussian", 4.0)]
    without = sweep(clean, [gat], [0, 1], store, CPU)
    runs = [
        run
        for level in levels
        for run in sweep(
            clean, [gat], [0, 1], store, CPU, preparation=noise_on_features(level)
        )
    ]
    assert sweep(clean, [gat], [0, 1], store, CPU) == without
    assert len(store.runs()) == len(runs) + len(without) == 6
    assert [run.condition for run in runs] == [levels[0]] * 2 + [levels[1]] * 2
    for run in runs:
        data = clean.data.clone()
        data.x = gaussian(x, run.condition.level * unit, run.seed)
        (alone,) = train_group(replace(clean, data=data), gat, [run.seed], CPU)
        assert run.curves["loss"] == pytest.approx(alone.curves["loss"], rel=1e-4)


def test_one_graph_under_two_names_is_trained_once(store: Store) -> None:
    sweep(graph(), configs(), [0], store, CPU)
    renamed = replace(graph(), name="the same")
    runs = sweep(renamed, configs(), [0], store, CPU)
    assert {run.dataset for run in runs} == {"the same"}
    assert len(store.runs()) == 3


def test_a_graph_without_features_is_refused_in_words(store: Store) -> None:
    bare = graph()
    del bare.data.x
    with pytest.raises(UserError, match="no node features"):
        sweep(bare, configs(), [0], store, CPU)


def test_locks_that_cannot_be_acquired_are_an_error_with_a_remedy(
    tmp_path: Path, store: Store
) -> None:
    (tmp_path / "store.lock").mkdir()
    with pytest.raises(UserError, match=r"store\.lock .*another folder with --out"):
        sweep(graph(), configs(), [0], store, CPU)


def three_splits() -> dict[int, Dataset]:
    """The graph under three splits, as `load` would give them."""
    return {
        number: csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0, split_seed=number)
        for number in range(3)
    }


def test_splits_take_turns_over_the_seeds(store: Store) -> None:
    graphs = three_splits()
    runs = sweep(graphs, configs(), range(7), store, CPU)
    again = sweep(graphs, configs(), range(7), store, CPU)
    alone = sweep(graphs[2], configs(), [2, 5], store, CPU)
    assert len(store.runs()) == len(runs) == 3 * 7
    assert again == runs
    assert [(run.method, run.seed) for run in runs] == [
        (method, seed) for method in METHODS for seed in range(7)
    ]
    for run in runs:
        assert run.split == run.seed % 3
        assert run.fingerprint == graphs[run.split].fingerprint
    assert [replace(run, split=2) for run in alone] == [
        run for run in runs if run.split == 2
    ]


def test_a_seed_on_another_split_is_another_run(store: Store) -> None:
    graphs = three_splits()
    first = sweep(graphs[0], configs(), range(3), store, CPU)
    runs = sweep(graphs, configs(), range(3), store, CPU)
    assert len(store.runs()) == 9 + 6
    kept = [run for run in runs if run.split == 0]
    assert kept == [run for run in first if run.seed == 0]
    assert {run.split for run in runs} == {0, 1, 2}


def test_a_split_given_twice_is_used_once(store: Store) -> None:
    graphs = {0: graph(), 1: graph()}
    runs = sweep(graphs, configs(), range(4), store, CPU)
    assert {run.split for run in runs} == {0}
    assert len(runs) == 3 * 4


def memory_for(most: int, events: list[Progress]) -> Callable[[Progress], None]:
    """Lets torch run out of memory in groups of more than so many runs."""

    def on_progress(progress: Progress) -> None:
        events.append(progress)
        if progress.epoch and progress.group_runs > most:
            torch.empty(2**60)

    return on_progress


def seeds_of_groups(store: Store, dataset: Dataset, config: RunConfig) -> list[object]:
    key = config_hash(config.model_dump(mode="json"))
    groups = store.groups(dataset.fingerprint, config.method, key, range(5), 5)
    return [group.seeds for group in groups]


def test_a_group_that_does_not_fit_memory_is_split_permanently(
    tmp_path: Path, store: Store
) -> None:
    events: list[Progress] = []
    settings = configs(epochs=3)
    with Store(tmp_path / "plain") as other:
        plain = sweep(graph(), settings, range(5), other, CPU)
    runs = sweep(graph(), settings, range(5), store, CPU, memory_for(2, events))
    for config in settings:
        cut = seeds_of_groups(store, graph(), config)
        assert cut == [(0, 1), (2, 3), (4,)]
    assert sweep(graph(), settings, range(5), store, CPU) == runs
    assert events[-1].runs_done == events[-1].runs == 15
    for run, other in zip(runs, plain, strict=True):
        assert (run.method, run.seed) == (other.method, other.seed)
        assert run.scores["last_epoch"].test == pytest.approx(
            other.scores["last_epoch"].test, abs=0.1
        )


def test_a_sweep_stopped_after_a_split_continues_to_the_same_result(
    tmp_path: Path,
) -> None:
    little = memory_for(2, [])
    _, gat, _ = configs(epochs=3)
    with Store(tmp_path / "whole") as store:
        whole = sweep(graph(), [gat], range(5), store, CPU, little)

    def stop(progress: Progress) -> None:
        if progress.runs_done == 2 and progress.epoch == 2:
            raise KeyboardInterrupt
        little(progress)

    with Store(tmp_path / "stopped") as store:
        with pytest.raises(KeyboardInterrupt):
            sweep(graph(), [gat], range(5), store, CPU, stop)
        assert len(store.runs()) == 2
        runs = sweep(graph(), [gat], range(5), store, CPU)
    assert timeless(runs) == timeless(whole)


def test_a_run_that_does_not_fit_memory_is_not_stored_and_the_others_are_trained(
    store: Store,
) -> None:
    def on_progress(progress: Progress) -> None:
        if progress.epoch and progress.method == "gat":
            torch.empty(2**60)

    settings = configs(epochs=3)
    with pytest.raises(OutOfMemory, match="one run of gat with hidden_channels 8"):
        sweep(graph(), settings, range(5), store, CPU, on_progress)
    assert {run.method for run in store.runs()} == {"gcn", "temp_gated"}
    assert seeds_of_groups(store, graph(), settings[1]) == [tuple(range(5))]
    runs = sweep(graph(), settings, range(5), store, CPU)
    assert len(runs) == 15


def test_a_group_another_process_has_cut_is_taken_as_it_is_now(tmp_path: Path) -> None:
    gcn, gat, _ = configs(epochs=3)
    little = memory_for(3, [])

    def cut_gat_and_die(progress: Progress) -> None:
        if progress.runs_done == 3:
            raise KeyboardInterrupt
        little(progress)

    events: list[Progress] = []

    def meanwhile(progress: Progress) -> None:
        events.append(progress)
        if progress.method == "gcn" and progress.epoch == 1:
            with Store(tmp_path / "store") as other, pytest.raises(KeyboardInterrupt):
                sweep(graph(), [gat], range(5), other, CPU, cut_gat_and_die)

    with Store(tmp_path / "store") as store:
        runs = sweep(graph(), [gcn, gat], range(5), store, CPU, meanwhile)
        assert seeds_of_groups(store, graph(), gat) == [(0, 1, 2), (3, 4)]
    assert {p.group_runs for p in events if p.method == "gat" and p.epoch} == {2}
    assert [run.seed for run in runs] == [*range(5), *range(5)]


def _sweep_and_tell(folder: Path, trained: Connection) -> None:
    torch.set_num_threads(1)
    events: list[Progress] = []
    with Store(folder / "store") as store:
        runs = sweep(graph(), configs(), range(3), store, CPU, collect(events))
    groups = [progress.method for progress in events if progress.epoch == 1]
    trained.send((groups, timeless(runs)))


class _HeldLocks:
    """Locks that another sweep holds for the first `held` attempts."""

    held = 1

    def __init__(self, store: Path) -> None:
        self._left: dict[int, int] = {}

    def __enter__(self) -> "_HeldLocks":
        return self

    def __exit__(self, *error: object) -> None: ...

    def acquire(self, group: int, *, wait: bool) -> bool:
        left = self._left.setdefault(group, self.held)
        self._left[group] = left - 1
        return wait or left <= 0

    def release(self, group: int) -> None: ...


@pytest.mark.parametrize("held", [1, 2])
def test_only_groups_that_are_still_held_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(_HeldLocks, "held", held)
    monkeypatch.setattr("tempergat.comparison.sweeps.sweep.GroupLocks", _HeldLocks)
    events: list[Progress] = []
    with Store(tmp_path / "store.sqlite") as store:
        runs = sweep(graph(), configs(), range(2), store, CPU, events.append)
    assert len(runs) == 2 * len(METHODS)
    waited = [progress.method for progress in events if progress.waiting]
    assert waited == (list(METHODS) if held == 2 else [])


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.comparison.sweeps.test_sweep"])
    pipes = [context.Pipe(duplex=False) for _ in range(2)]
    processes = [
        context.Process(target=_sweep_and_tell, args=(tmp_path, sender))
        for _, sender in pipes
    ]
    for process in processes:
        process.start()
    (groups, runs), (other_groups, other_runs) = (
        receiver.recv() for receiver, _ in pipes
    )
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert sorted(groups + other_groups) == sorted(METHODS)
    assert runs == other_runs
    assert [(run.method, run.seed) for run in runs] == [
        (method, seed) for method in METHODS for seed in range(3)
    ]


def test_runs_of_cpus_and_of_gpus_have_numerics_of_their_own() -> None:
    assert numerics_of("cpu", {}) == 4
    assert numerics_of("cuda (NVIDIA H200)", {}) == 7


def test_runs_that_were_ranked_by_float32_probabilities_are_not_those_of_now() -> None:
    assert numerics_of("cpu", {"metric": "macro_f1"}) == 4
    assert numerics_of("cpu", {"metric": "roc_auc"}) == 5


def test_runs_made_elsewhere_are_not_returned(store: Store) -> None:
    events: list[Progress] = []
    here = sweep(graph(), configs(), range(2), store, CPU)
    foreign = [replace(run, device="cuda (NVIDIA H200)") for run in here[:4]]
    later = [replace(run, numerics=7) for run in here[:1]]
    store.put_group([*foreign, *later])
    again = sweep(graph(), configs(), range(2), store, CPU, collect(events))
    assert len(store.runs()) == 6 + 5
    assert again == here
    assert not any(progress.epoch for progress in events)


def test_runs_of_another_device_alone_are_trained_here(
    tmp_path: Path, store: Store
) -> None:
    events: list[Progress] = []
    with Store(tmp_path / "there") as there:
        runs = sweep(graph(), configs(), range(2), there, CPU)
    store.put_group([replace(r, device="cuda (A)", group_id=None) for r in runs])
    found = sweep(graph(), configs(), range(2), store, CPU, collect(events))
    assert timeless(found) == timeless(runs)
    assert {progress.method for progress in events if progress.epoch} == {*METHODS}


def test_finished_runs_are_those_done_before_a_stop(store: Store) -> None:
    settings = configs()
    assert finished_runs(graph(), settings, range(2), store, CPU) == []
    stop = collect([], lambda progress: progress.method == "gat")
    with pytest.raises(KeyboardInterrupt):
        sweep(graph(), settings, range(2), store, CPU, stop)
    done = finished_runs(graph(), settings, range(2), store, CPU)
    assert [(run.method, run.seed) for run in done] == [("gcn", 0), ("gcn", 1)]


def test_two_threads_share_the_work(tmp_path: Path) -> None:
    events: list[Progress] = []
    chosen = configs()

    def work(_: int) -> list[Run]:
        with Store(tmp_path / "store") as store:
            return sweep(graph(), chosen, range(3), store, CPU, collect(events))

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(work, range(2))
    assert one == two
    # Each group was trained by one of the two alone.
    trained = [progress.method for progress in events if progress.epoch == 1]
    assert sorted(trained) == sorted(METHODS)


def test_where_locks_belong_to_processes_a_second_sweep_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempergat.base.locks._locks_belong_to_files", lambda: False)

    def once_more(progress: Progress) -> None:
        if progress.epoch == 1:
            with Store(tmp_path / "store") as other:
                sweep(graph(), configs(), [0], other, CPU)

    with Store(tmp_path / "store") as store:
        with pytest.raises(UserError, match="another sweep of this process uses"):
            sweep(graph(), configs(), [0], store, CPU, once_more)
        assert len(sweep(graph(), configs(), [0], store, CPU)) == 3
