"""The comparison: train every method over many seeds, then compare."""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import torch

from tempergat.base import UserError, printable
from tempergat.data import (
    Dataset,
    GraphInput,
    ReadOptions,
    load_splits,
    warn_of_notes,
)
from tempergat.study.comparison.comparison import Comparison
from tempergat.study.comparison.descriptions import (
    notes_on_test_sets,
    opening_lines,
)
from tempergat.study.comparison.plan import MethodsArgument, Plan, make_plan
from tempergat.study.comparison.progress_lines import ProgressLines, Tally
from tempergat.study.comparison.shards import FinishedShard
from tempergat.study.engine import (
    OnProgress,
    Origin,
    Run,
    Shard,
    Store,
    elsewhere_note,
    finished_runs,
    sweep,
)
from tempergat.study.results import dataset_result
from tempergat.training import (
    Recipe,
    check_user_module,
    choose_device,
    make_overrides,
    notes_on_unused_edges,
)

STORE_NAME = "store.sqlite"


@overload
def compare(
    graph: GraphInput = ...,
    methods: MethodsArgument = ...,
    runs: int | Literal["paper"] = ...,
    recipe: str | Path | Recipe | None = ...,
    baseline: str | None = ...,
    device: str | torch.device = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    split: int | str | None = ...,
    split_seed: int | None = ...,
    splits: int | None = ...,
    read_options: ReadOptions | None = ...,
    metric: str | None = ...,
    class_weights: str | None = ...,
    settings: Mapping[str, Any] | None = ...,
    shard: None = ...,
) -> Comparison: ...


@overload
def compare(
    graph: GraphInput = ...,
    methods: MethodsArgument = ...,
    runs: int | Literal["paper"] = ...,
    recipe: str | Path | Recipe | None = ...,
    baseline: str | None = ...,
    device: str | torch.device = ...,
    out: str | Path | None = ...,
    progress: bool = ...,
    split: int | str | None = ...,
    split_seed: int | None = ...,
    splits: int | None = ...,
    read_options: ReadOptions | None = ...,
    metric: str | None = ...,
    class_weights: str | None = ...,
    settings: Mapping[str, Any] | None = ...,
    *,
    shard: tuple[int, int],
) -> FinishedShard: ...


def compare(
    graph: GraphInput = "demo",
    methods: MethodsArgument = None,
    runs: int | Literal["paper"] = 10,
    recipe: str | Path | Recipe | None = None,
    baseline: str | None = None,
    device: str | torch.device = "auto",
    out: str | Path | None = None,
    progress: bool = True,
    split: int | str | None = None,
    split_seed: int | None = None,
    splits: int | None = None,
    read_options: ReadOptions | None = None,
    metric: str | None = None,
    class_weights: str | None = None,
    settings: Mapping[str, Any] | None = None,
    shard: tuple[int, int] | None = None,
) -> Comparison | FinishedShard:
    """Which method wins on a graph, and is it real?

    Trains every method over many seeds and tests which differences are larger than
    noise. Where a graph has several splits, the seeds take turns over them.

    Args:
        graph: A name (`tempergat data list`), the path of a graph, a PyG `Data` or a
            `Dataset`; a generated graph with noisy features when left out.
        methods: Names of methods (`tempergat methods`), callables
            `(in_channels, out_channels) -> Module` whose module is called as
            `module(x, edge_index)`, or a mapping from names to such callables; the
            paper's eleven methods when left out.
        runs: Seeds per method; `paper` for as many as the recipe says.
        recipe: The settings: a recipe, its name or its YAML file; the recipe of the
            dataset when left out.
        baseline: The method all others are compared with. When left out, each variant
            is compared with its backbone, and your own methods with `gat` or else the
            first method.
        device: `auto`, `cpu` or `cuda`.
        out: A folder that keeps the runs, the tables and the figure: the same call
            continues from there. Nothing is kept when left out.
        progress: Whether to print the progress to standard error.
        split: The number of an official split, or percentages like `60/20/20`.
        split_seed: Seed of a split made here.
        splits: How many splits to make for a graph that comes with none. The seeds
            take turns over them, and tests are paired over splits.
        read_options: How a user graph is read; the defaults when left out.
        metric: `accuracy`, `macro_f1`, `roc_auc` or `average_precision`: what is
            reported, and what selects the epoch where the recipe selects by
            `best_val_accuracy`; the dataset's metric when left out. The last two are
            those of class 1 where there are two classes, and otherwise the mean over
            classes of each against the rest; a class without nodes in a part is left
            out of the mean.
        class_weights: `balanced` gives every class the same weight in the loss,
            however few training nodes it has.
        settings: Settings in place of the recipe's, for all methods: `epochs`, `lr`,
            `hidden` (the width of a layer, all heads together), `heads`, `layers`,
            `dropout`.
        shard: `(1, 3)` trains the first of three parts of the runs, for three machines
            that need nothing from one another; `tempergat.merge` then merges what they
            kept in `out`. There is no table before.

    Returns:
        The comparison; of a shard, which runs it has trained.

    Raises:
        UserError: An argument or the graph cannot be used.
        OutOfMemory: A single run does not fit in memory.
    """
    overrides = make_overrides(settings, metric, class_weights)
    plan = make_plan(graph, methods, runs, recipe, baseline, overrides)
    part = None if shard is None else Shard(*shard)
    if part is not None and out is None:
        raise UserError(
            f"shard {part} would keep nothing; give a folder for its runs as out"
        )
    where = choose_device(device)
    say = _print_line if progress else _ignore
    graphs = load_splits(
        graph,
        split=split,
        split_seed=split_seed,
        max_splits=len(plan.seeds),
        made_splits=splits,
        options=read_options,
    )
    if not isinstance(graph, Dataset):
        warn_of_notes(next(iter(graphs.values())))
    for line in opening_lines(plan, graphs, where):
        say(line)
    lines = ProgressLines(say, Tally(plan.methods, len(plan.seeds), plan.selection))
    with _opened_store(out) as store:
        if part is not None:
            return run_shard(plan, graphs, store, where, part, lines)
        comparison = run_plan(plan, graphs, store, where, lines)
    if out is None:
        return replace(comparison, store=None)
    return comparison.written_to(Path(out))


def run_plan(
    plan: Plan,
    graphs: Mapping[int, Dataset],
    store: Store,
    device: torch.device,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Train what the store does not hold yet, and compare.

    Args:
        plan: What to compare.
        graphs: The graph with each of its splits, by the splits' numbers.
        store: Keeps the runs.
        device: Where to train.
        on_progress: Called after every epoch and every group of runs.

    Raises:
        UserError: The graph or the store cannot be used.
        OutOfMemory: A single run does not fit in memory. All others are in the store.
    """
    _check_user_modules(plan, graphs, device)
    runs = sweep(
        graphs, plan.configs, plan.seeds, store, device, on_progress, plan.builds
    )
    return _comparison(plan, graphs, store, device, runs)


def run_shard(
    plan: Plan,
    graphs: Mapping[int, Dataset],
    store: Store,
    device: torch.device,
    shard: Shard,
    on_progress: OnProgress | None = None,
) -> FinishedShard:
    """Train what one shard of a comparison has to train; see `run_plan`.

    Args:
        plan: What to compare.
        graphs: The graph with each of its splits, by the splits' numbers.
        store: Keeps the shard's runs.
        device: Where to train.
        shard: The part of the runs.
        on_progress: Called after every epoch and every group of runs.
    """
    _check_user_modules(plan, graphs, device)
    runs = sweep(
        graphs,
        plan.configs,
        plan.seeds,
        store,
        device,
        on_progress,
        plan.builds,
        shard=shard,
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
    plan: Plan, graphs: Mapping[int, Dataset], store: Store, device: torch.device
) -> Comparison | None:
    """The comparison of the runs that are in the store; None without a run."""
    runs = finished_runs(graphs, plan.configs, plan.seeds, store, device)
    return _comparison(plan, graphs, store, device, runs) if runs else None


def _comparison(
    plan: Plan,
    graphs: Mapping[int, Dataset],
    store: Store,
    device: torch.device,
    runs: list[Run],
) -> Comparison:
    first = next(iter(graphs.values()))
    metric = plan.configs[0].metric or first.metric
    result = dataset_result(runs, plan.methods, plan.against, metric, plan.selection)
    return Comparison(
        result=result,
        runs=runs,
        baseline=plan.baseline,
        recipe=plan.recipe,
        settings=plan.overrides.values,
        class_names=first.class_names,
        device=str(device),
        complete=len(runs) == plan.total_runs,
        notes=(
            *next(iter(graphs.values())).notes,
            *notes_on_test_sets(result, graphs),
            *notes_on_unused_edges(first, plan.configs, plan.builds),
            *_note_on_other_origins(plan, graphs, store, runs),
        ),
        store=store.path,
        file_name=_file_name(graphs, store),
    )


def _file_name(graphs: Mapping[int, Dataset], store: Store) -> str:
    """The name of the tables, which no other graph in the store has."""
    first = next(iter(graphs.values()))
    fingerprints = {graph.fingerprint for graph in graphs.values()}
    identity = first.graph_fingerprint or first.fingerprint
    return store.table_name(first.name, identity, fingerprints)


def _note_on_other_origins(
    plan: Plan, graphs: Mapping[int, Dataset], store: Store, runs: list[Run]
) -> tuple[str, ...]:
    """Runs in the store that were made on another device or by other code."""
    counts = store.count_by_origin(
        [graph.fingerprint for graph in graphs.values()],
        sorted({run.config_hash for run in runs}),
        plan.seeds,
    )
    used = {Origin(run.device, run.numerics) for run in runs}
    note = elsewhere_note({o: n for o, n in counts.items() if o not in used})
    return () if note is None else (note,)


@contextmanager
def _opened_store(out: str | Path | None) -> Iterator[Store]:
    """A store in a folder, or in a temporary one that is removed afterwards."""
    with ExitStack() as stack:
        if out is None:
            out = stack.enter_context(tempfile.TemporaryDirectory(prefix="tempergat-"))
        yield stack.enter_context(Store(Path(out) / STORE_NAME))


def _print_line(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


def _ignore(line: str) -> None: ...
