"""The runs of comparisons: trained where they are missing, compared and written."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tempergat.comparison.chosen import choose
from tempergat.comparison.display import Display
from tempergat.comparison.plan import Plan
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.comparisons import Comparisons
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.notes import (
    notes_below_table,
    opening_lines,
    split_ratio,
)
from tempergat.comparison.storage.store import STORE_NAME, Store
from tempergat.comparison.sweeps.state import OnProgress, Progress
from tempergat.comparison.sweeps.sweep import finished_runs, sweep
from tempergat.comparison.sweeps.workers import Workers
from tempergat.comparison.tune import (
    Choice,
    SearchIncompleteError,
    search_settings,
    seeds_by_split,
    tuned_recipes,
)
from tempergat.data import describe_reading
from tempergat.training import (
    OutOfMemory,
    Run,
    check_user_module,
    metric_of_run,
)

# A device of this machine, or workers on others.
Place = torch.device | Workers
# Returns runs by graphs, configurations, seeds and what shows progress.
_GetRuns = Callable[..., list[Run]]


def run_comparisons(
    plans: Sequence[Plan],
    place: Place,
    out: Path | None,
    *,
    several: bool,
    display: Display | None = None,
    command: str | None = None,
) -> Comparison | Comparisons:
    """Train what is missing on every graph, compare and write.

    `tempergat.compare` and the command `compare` are this function.

    Args:
        plans: What to compare, with their graphs.
        place: Where to train.
        out: The folder of the runs and the files; None keeps and writes nothing.
        several: Whether a summary of all graphs is asked for.
        display: What shows the progress and the tables; None for nothing.
        command: What was typed, for those who repeat it from a report.

    Raises:
        UserError: The store cannot be used.
        OutOfMemory: A single run does not fit in memory. All others are in the store.
    """
    display = display or Display()

    def keep(comparison: Comparison) -> Comparison:
        if out is None:
            return replace(comparison, store=None)
        return comparison.written_to(out, command)

    folder = (
        tempfile.TemporaryDirectory(prefix="tempergat-")
        if out is None
        else nullcontext(str(out))
    )
    with folder as kept_in, Store(Path(kept_in) / STORE_NAME) as store:
        finished: list[Comparison] = []
        for plan in plans:
            try:
                comparison = run_plan(plan, store, place, display)
            except KeyboardInterrupt:
                display.stopped(finished, partial(finished_part, plan, store, place))
                raise
            except OutOfMemory:
                # The other methods have finished.
                part = finished_part(plan, store, place)
                if part is not None:
                    display.result(keep(part), partial=True)
                raise
            finished.append(keep(comparison))
            display.result(finished[-1])
    if not several:
        return finished[0]
    comparisons = Comparisons(tuple(finished))
    return comparisons if out is None else comparisons.written_to(out, command)


def run_plan(
    plan: Plan, store: Store, place: Place, display: Display | None = None
) -> Comparison:
    """Train what the store does not hold yet, and compare.

    Where the plan says so, the settings of each method are searched first.

    Args:
        plan: What to compare, with its graphs.
        store: Keeps the runs.
        place: Where to train.
        display: What shows the progress; None for nothing.

    Raises:
        UserError: The graph or the store cannot be used.
        OutOfMemory: A single run does not fit in memory. All others are in the store.
    """
    display = display or Display()
    display.start(plan, opening_lines(plan, place))
    try:
        here = place if isinstance(place, torch.device) else torch.device("cpu")
        for config in plan.configs:
            if config.method in plan.builds:
                build = plan.builds[config.method]
                check_user_module(plan.first_graph, config, here, build)
        get_runs = partial(
            sweep,
            store=store,
            place=place,
            builds=plan.builds,
            preparation=plan.preparation,
        )
        runs, choices = _get_all_runs(plan, get_runs, display)
    finally:
        display.end()
    return _comparison(plan, store, place, runs, choices)


def finished_part(plan: Plan, store: Store, place: Place) -> Comparison | None:
    """The comparison of the runs that are in the store.

    None without a run, and where the search for settings is not finished.
    """

    def find(graphs: Any, configs: Any, seeds: Any, on_progress: Any = None) -> Any:
        return finished_runs(graphs, configs, seeds, store, place, plan.preparation)

    try:
        runs, choices = _get_all_runs(plan, find, Display())
    except SearchIncompleteError:
        return None
    return _comparison(plan, store, place, runs, choices) if runs else None


def _get_all_runs(
    plan: Plan, get_runs: _GetRuns, display: Display
) -> tuple[list[Run], list[Choice]]:
    """The runs that are compared, and the settings that were searched for them."""
    if plan.options.tune is None:
        graphs, on_progress = plan.graphs, display.progress
        return get_runs(graphs, plan.configs, plan.seeds, on_progress=on_progress), []
    choices = search_settings(
        plan,
        lambda split, configs, seeds: get_runs(
            {split: plan.graphs[split]}, configs, seeds
        ),
        display.search,
    )
    runs: list[Run] = []
    for split, seeds in seeds_by_split(plan):
        show = _among_all(display.progress, len(runs), plan.total_runs)
        configs = [choice.config for choice in choices if choice.split == split]
        graphs = {split: plan.graphs[split]}
        runs += get_runs(graphs, configs, seeds, on_progress=show)
    return runs, choices


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


def _comparison(
    plan: Plan, store: Store, place: Place, runs: list[Run], choices: Sequence[Choice]
) -> Comparison:
    first, condition = plan.first_graph, runs[0].condition
    used = sorted({run.split for run in runs})
    chosen = choose(runs)
    chosen.compared.sort(key=lambda run: (plan.methods.index(run.method), run.seed))
    result = dataset_result(
        chosen.compared,
        plan.methods,
        plan.against,
        metric_of_run(plan.configs[0], first),
        plan.selection,
        tuned=bool(choices or chosen.others),
        beside_backbones=chosen.beside_backbones,
        all_pairs=plan.options.baseline is None,
        test_to_train=split_ratio([plan.graphs[split] for split in used]),
    )
    # No other graph in the store has this name.
    file_name = store.table_name(
        first.name,
        first.graph_fingerprint or first.fingerprint,
        {graph.fingerprint for graph in plan.graphs.values()},
    )
    return Comparison(
        result=result,
        runs=chosen.compared,
        chosen=chosen.recipes if len(plan.configs) > len(plan.methods) else {},
        other_runs=chosen.others,
        baseline=plan.options.baseline,
        recipe=plan.recipe,
        settings=plan.overrides.values,
        class_names=first.predicted.names,
        reading=describe_reading(first),
        device=str(place if isinstance(place, torch.device) else place.device),
        complete=len(runs) == plan.total_runs,
        notes=notes_below_table(plan, store, result, runs, choices),
        store=store.path,
        file_name=file_name
        + ("_tuned" if choices else "")
        + (f"_{condition.file_name}" if condition else ""),
        tuned=tuple(choices),
        tuned_recipes=tuned_recipes(plan, choices),
    )
