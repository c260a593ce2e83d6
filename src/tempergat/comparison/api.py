"""`tempergat.compare`: train every method over many seeds, then compare."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, overload

import torch

from tempergat.base import UserError, printable
from tempergat.comparison.display import Lines
from tempergat.comparison.machines.ray_workers import RayWorkers
from tempergat.comparison.plan import MethodsArgument, make_plan, read_graphs
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.comparisons import Comparisons
from tempergat.comparison.run import run_comparisons
from tempergat.data import (
    Dataset,
    GraphInput,
    ReadOptions,
    refuse_whole_graphs,
    warn_of_notes,
)
from tempergat.training import Preparation, Recipe, choose_device, make_overrides

# Not any sequence: a text is a sequence of texts, and stands for one graph.
SeveralGraphs: TypeAlias = list[Any] | tuple[GraphInput, ...] | Mapping[str, Any]


class _Options(TypedDict, total=False):
    """Arguments of `compare` that do not decide what it returns, given by name."""

    recipe: str | Path | Recipe | None
    baseline: str | None
    device: str | torch.device
    out: str | Path | None
    progress: bool
    split: int | str | None
    split_seed: int | None
    splits: int | None
    read_options: ReadOptions | None
    scale: bool
    metric: str | None
    class_weights: str | None
    settings: Mapping[str, Any] | None
    ray: str | None
    tune: int | None
    noise: str | Sequence[str] | None
    prepare: Preparation | None
    # Settings, as the command's flags.
    epochs: int | None
    layers: int | None
    hidden: int | None
    heads: int | None
    dropout: float | None
    lr: float | None
    training: Literal["full", "sampled"] | None
    fanout: Sequence[int] | str | None
    batch_size: int | None
    eval_batch_size: int | None


@overload
def compare(
    graph: SeveralGraphs,
    methods: MethodsArgument = ...,
    runs: int | Literal["paper"] = ...,
    **options: Unpack[_Options],
) -> Comparisons: ...


@overload
def compare(
    graph: GraphInput = ...,
    methods: MethodsArgument = ...,
    runs: int | Literal["paper"] = ...,
    **options: Unpack[_Options],
) -> Comparison: ...


def compare(
    graph: GraphInput | SeveralGraphs = "demo",
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
    scale: bool = True,
    metric: str | None = None,
    class_weights: str | None = None,
    settings: Mapping[str, Any] | None = None,
    ray: str | None = None,
    tune: int | None = None,
    noise: str | Sequence[str] | None = None,
    prepare: Preparation | None = None,
    **keywords: Any,
) -> Comparison | Comparisons:
    """Which method wins on a graph, and is it real?

    Trains every method over many seeds and tests which differences are larger than
    noise. Where a graph has several splits, the seeds take turns over them.

    Args:
        graph: A name (`tempergat data list`), the path of a graph, a PyG `Data` or a
            `Dataset`; a generated graph with noisy features when left out. A list of
            them is compared on one after another, each with its own recipe and metric;
            a mapping gives them names. All of them are read before the first is trained
            on.
        methods: Names of methods (`tempergat methods`), callables
            `(in_channels, out_channels) -> Module` whose module is called as
            `module(x, edge_index)`, or a mapping from names to such callables; `mlp`
            and the paper's eleven methods when left out.
        runs: Seeds per method. `paper` for as many as the recipe says, and for the
            paper's eleven methods alone unless `methods` names others.
        recipe: The settings: a recipe, its name or its YAML file; the recipe of the
            dataset when left out. Methods on graphs without one are trained with
            `plain` and with `default`, which has a residual in every layer and batch
            norm between layers, and validation scores choose.
        baseline: The method all others are compared with. When left out, each variant
            is compared with its backbone, besides the tests of all pairs of methods.
        device: `auto`, `cpu` or `cuda`.
        out: A folder that keeps the runs, the tables and the figure: the same call
            continues from there. Nothing is kept when left out.
        progress: Whether to print the progress to standard error.
        split: The number of an official split, or percentages like `60/20/20`.
        split_seed: Seed of a split made here.
        splits: How many splits to make for a graph that comes with none. The seeds
            take turns over them, and tests are paired over splits. In a list of graphs,
            those that come with splits keep them.
        read_options: How a user graph is read; the defaults when left out.
        scale: Whether the columns of numbers of tables are scaled: centred and divided
            by their deviation over all nodes. Other graphs are used as given.
        metric: The score to report: `accuracy`, `macro_f1`, `roc_auc` or
            `average_precision`; the dataset's metric when left out. A recipe with
            `best_val_accuracy` also selects the epoch by it. The last two are those of
            class 1 where there are two classes, and otherwise the mean over
            classes of each against the rest; a class without nodes in a part is left
            out of the mean.
        class_weights: `balanced` gives every class the same weight in the loss,
            however few training nodes it has.
        settings: Settings in place of the recipe's, for all methods that have them,
            like `{"epochs": 50, "gate_penalty": 1e-6}`; `tempergat methods --settings`
            lists them. `training="sampled"` with `fanout`, `batch_size` and
            `eval_batch_size` is for large graphs.
        ray: Train on the machines of a Ray cluster: `auto` for the one that runs on
            this machine, or `HOST:PORT` of its head. Needs `pip install
            'tempergat[ray]'` on every machine. Only this process writes to `out`.
        tune: How many settings to try for each method before the comparison, by mean
            validation score over two seeds; the first are the recipe's own. Every split
            has its own search, on its own validation nodes, and the runs compared have
            seeds that no search uses. Learning rate, weight decay, dropout, residual
            and norm are searched, unless `settings` gives them. The settings found are
            recipes, by split, in `tuned_recipes` of the result and as files in `out`.
            Needs `pip install 'tempergat[tune]'`.
        noise: Noise on the features of every run: `gaussian:0.5` adds Gaussian noise
            of half their root mean square, `missing:0.3` sets 30 % of the values to 0,
            `missing:0.3,tau=1` to Gaussian noise of one root mean square. A list of one
            of each kind gives both, Gaussian noise first. Every seed has its own noise,
            the same for all methods.
        prepare: What else is done to features or model before every run.
        **keywords: Settings by the names of the command's flags, like ``epochs=60``.

    Returns:
        The comparison; of several graphs, the comparison of each and a summary.

    Raises:
        UserError: An argument or the graph cannot be used.
        OutOfMemory: A single run does not fit in memory.
    """
    overrides = make_overrides(
        settings, metric, class_weights, keywords=keywords, beside=compare
    )
    refuse_whole_graphs(graph)
    several, names = isinstance(graph, list | tuple | Mapping), None
    inputs: list[Any] = list(graph) if isinstance(graph, list | tuple) else [graph]
    if isinstance(graph, Mapping):
        names, inputs = list(graph), list(graph.values())
    if not inputs:
        raise UserError("there are no graphs; name some, like cora and citeseer")
    plans = [
        make_plan(one, methods, runs, recipe, baseline, overrides, tune, noise, prepare)
        for one in inputs
    ]
    with (
        nullcontext(choose_device(device))
        if ray is None
        else RayWorkers(ray, str(device)) as place
    ):
        plans = read_graphs(
            plans,
            several=several,
            names=names,
            split=split,
            split_seed=split_seed,
            splits=splits,
            options=read_options,
            scale=scale,
        )
        for plan in plans:
            if not isinstance(plan.graph, Dataset):
                warn_of_notes(plan.first_graph)
        return run_comparisons(
            plans,
            place,
            None if out is None else Path(out),
            several=several,
            display=Lines(_print_line) if progress else None,
        )


def _print_line(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
