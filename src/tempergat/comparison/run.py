"""The runs of a comparison: trained where they are missing, then compared."""

import importlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from tempergat.comparison.comparison import Comparison
from tempergat.comparison.descriptions import (
    note_on_residual,
    notes_on_condition,
    notes_on_other_runs,
    notes_on_test_sets,
)
from tempergat.comparison.plan import Plan
from tempergat.comparison.results import dataset_result
from tempergat.comparison.shards import FinishedShard
from tempergat.comparison.splits import split_ratio
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.shards import Shard
from tempergat.comparison.sweeps.state import OnProgress, Progress
from tempergat.comparison.sweeps.sweep import finished_runs, sweep
from tempergat.comparison.sweeps.workers import Workers
from tempergat.comparison.tuned import (
    Choice,
    OnSearch,
    SearchIncompleteError,
    notes_on_tuning,
    search_settings,
    seeds_by_split,
    tuned_recipes,
)
from tempergat.data import Dataset, describe_reading
from tempergat.training import (
    Run,
    RunConfig,
    check_user_module,
    metric_of_run,
    notes_on_unused_edges,
)

STORE_NAME = "store.sqlite"
# A device of this machine, or workers on others.
Place = torch.device | Workers
# What tests and figures load. It takes seconds, and is not needed to train.
_MODULES_OF_REPORT = ("scipy.stats", "tempergat.comparison.report.figures")


def run_plan(
    plan: Plan,
    graphs: Mapping[int, Dataset],
    store: Store,
    place: Place,
    on_progress: OnProgress | None = None,
    on_search: OnSearch | None = None,
) -> Comparison:
    """Train what the store does not hold yet, and compare.

    Where the plan says so, the settings of each method are searched first.

    Args:
        plan: What to compare.
        graphs: The graph with each of its splits, by the splits' numbers.
        store: Keeps the runs.
        place: Where to train.
        on_progress: Called after every epoch and every group of the runs compared.
        on_search: Called whenever a further setting of each method was tried.

    Raises:
        UserError: The graph or the store cannot be used.
        OutOfMemory: A single run does not fit in memory. All others are in the store.
    """
    threading.Thread(target=_import_for_report, daemon=True).start()
    here = place if isinstance(place, torch.device) else torch.device("cpu")
    _check_user_modules(plan, graphs, here)

    def train(
        some: Mapping[int, Dataset],
        configs: Sequence[RunConfig],
        seeds: Sequence[int],
        on_progress: OnProgress | None = None,
    ) -> list[Run]:
        how = (on_progress, plan.builds, plan.preparation)
        return sweep(some, configs, seeds, store, place, *how)

    if plan.tune is None:
        runs = train(graphs, plan.configs, plan.seeds, on_progress)
        return _comparison(plan, graphs, store, place, runs)
    choices = search_settings(
        plan,
        graphs,
        lambda split, graph, configs, seeds: train({split: graph}, configs, seeds),
        on_search,
    )
    runs = []
    for split, seeds in seeds_by_split(plan.seeds, graphs):
        shown = on_progress and _among_all(on_progress, len(runs), plan.total_runs)
        configs = [choice.config for choice in choices if choice.split == split]
        runs += train({split: graphs[split]}, configs, seeds, shown)
    return _comparison(plan, graphs, store, place, _in_order(plan, runs), choices)


def _among_all(on_progress: OnProgress, before: int, total: int) -> OnProgress:
    """Shows the progress on one split as a part of all runs."""

    def show(progress: Progress) -> None:
        if progress.method is None and not progress.runs_done:
            return
        time_left = progress.time_left_s if progress.runs == total else None
        done = before + progress.runs_done
        on_progress(
            replace(progress, runs_done=done, runs=total, time_left_s=time_left)
        )

    return show


def _in_order(plan: Plan, runs: Sequence[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (plan.methods.index(run.method), run.seed))


def _import_for_report() -> None:
    for name in _MODULES_OF_REPORT:
        importlib.import_module(name)


def run_shard(
    plan: Plan,
    graphs: Mapping[int, Dataset],
    store: Store,
    place: Place,
    shard: Shard,
    on_progress: OnProgress | None = None,
) -> FinishedShard:
    """Train what one shard of a comparison has to train; see `run_plan`.

    Args:
        plan: What to compare.
        graphs: The graph with each of its splits, by the splits' numbers.
        store: Keeps the shard's runs.
        place: Where to train: a device of this machine.
        shard: The part of the runs.
        on_progress: Called after every epoch and every group of runs.
    """
    if not isinstance(place, torch.device):
        raise TypeError("a shard is trained on a device of this machine")
    _check_user_modules(plan, graphs, place)
    runs = sweep(
        graphs,
        plan.configs,
        plan.seeds,
        store,
        place,
        on_progress,
        plan.builds,
        plan.preparation,
        shard,
    )
    return FinishedShard(shard, runs, plan.total_runs, store.path)


def _check_user_modules(
    plan: Plan, graphs: Mapping[int, Dataset], device: torch.device
) -> None:
    graph = next(iter(graphs.values()))
    for config in plan.configs:
        if config.method in plan.builds:
            check_user_module(graph, config, device, plan.builds[config.method])


def finished_part(
    plan: Plan, graphs: Mapping[int, Dataset], store: Store, place: Place
) -> Comparison | None:
    """The comparison of the runs that are in the store.

    None without a run, and where the search for settings is not finished.
    """

    def find(
        some: Mapping[int, Dataset], configs: Sequence[RunConfig], seeds: Sequence[int]
    ) -> list[Run]:
        return finished_runs(some, configs, seeds, store, place, plan.preparation)

    choices: list[Choice] = []
    if plan.tune is None:
        runs = find(graphs, plan.configs, plan.seeds)
    else:
        try:
            choices = search_settings(
                plan,
                graphs,
                lambda split, graph, configs, seeds: find(
                    {split: graph}, configs, seeds
                ),
            )
        except SearchIncompleteError:
            return None
        runs = _in_order(
            plan,
            [
                run
                for split, seeds in seeds_by_split(plan.seeds, graphs)
                for run in find(
                    {split: graphs[split]},
                    [choice.config for choice in choices if choice.split == split],
                    seeds,
                )
            ],
        )
    return _comparison(plan, graphs, store, place, runs, choices) if runs else None


def _comparison(
    plan: Plan,
    graphs: Mapping[int, Dataset],
    store: Store,
    place: Place,
    runs: list[Run],
    choices: Sequence[Choice] = (),
) -> Comparison:
    first = next(iter(graphs.values()))
    metric = metric_of_run(plan.configs[0], first)
    used = {split: graphs[split] for split in sorted({run.split for run in runs})}
    result = dataset_result(
        runs,
        plan.methods,
        plan.against,
        metric,
        plan.selection,
        tuned=bool(choices),
        all_pairs=plan.baseline is None,
        test_to_train=split_ratio(used),
    )
    condition = runs[0].condition
    return Comparison(
        result=result,
        runs=runs,
        baseline=plan.baseline,
        recipe=plan.recipe,
        settings=plan.overrides.values,
        class_names=first.class_names,
        reading=describe_reading(first),
        device=str(place if isinstance(place, torch.device) else place.device),
        complete=len(runs) == plan.total_runs,
        notes=(
            *notes_on_condition(condition),
            *first.notes,
            *(_notes_on_choices(choices) or _notes_on_residual(plan)),
            *notes_on_test_sets(result, graphs),
            *notes_on_unused_edges(first, plan.configs, plan.builds),
            *notes_on_other_runs(plan, graphs, store, runs),
        ),
        store=store.path,
        file_name=_file_name(graphs, store)
        + ("_tuned" if choices else "")
        + (f"_{condition.file_name}" if condition else ""),
        tuned=tuple(choices),
        tuned_recipes=tuned_recipes(plan, first, choices),
    )


def _notes_on_residual(plan: Plan) -> tuple[str, ...]:
    configs = {config.method: config.model_dump() for config in plan.configs}
    return note_on_residual(configs, plan.recipe)


def _notes_on_choices(choices: Sequence[Choice]) -> tuple[str, ...]:
    if not choices:
        return ()
    chosen = {(one.method, one.split): one.chosen.settings for one in choices}
    return notes_on_tuning(chosen, len(choices[0].trials))


def _file_name(graphs: Mapping[int, Dataset], store: Store) -> str:
    """The name of the tables, which no other graph in the store has."""
    first = next(iter(graphs.values()))
    fingerprints = {graph.fingerprint for graph in graphs.values()}
    identity = first.graph_fingerprint or first.fingerprint
    return store.table_name(first.name, identity, fingerprints)
