"""`tempergat.compare`: train every method over many seeds, then compare."""

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

from tempergat.base import UserError, printable
from tempergat.comparison.display import Lines
from tempergat.comparison.machines.ray_workers import RayWorkers
from tempergat.comparison.options import ARGUMENTS, CompareOptions, documented
from tempergat.comparison.plan import (
    MethodsArgument,
    SeveralGraphs,
    make_plan,
    read_graphs,
)
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.results.comparisons import Comparisons
from tempergat.comparison.run import run_comparisons
from tempergat.data import (
    Dataset,
    GraphInput,
    refuse_whole_graphs,
    warn_of_notes,
)
from tempergat.training import choose_device, make_overrides


@overload
def compare(
    graph: SeveralGraphs,
    methods: MethodsArgument = ...,
    runs: int | Literal["paper"] = ...,
    *arguments: Any,
    **keywords: Any,
) -> Comparisons: ...


@overload
def compare(
    graph: GraphInput = ...,
    methods: MethodsArgument = ...,
    runs: int | Literal["paper"] = ...,
    *arguments: Any,
    **keywords: Any,
) -> Comparison: ...


@documented
def compare(*arguments: Any, **keywords: Any) -> Comparison | Comparisons:
    """Which method wins on a graph, and is it real?

    Trains every method over many seeds and tests which differences are larger than
    noise. Where a graph has several splits, the seeds take turns over them.

    Args:
        OPTIONS
        **keywords: Settings by the names of the command's flags, like ``epochs=60``.

    Returns:
        The comparison; of several graphs, the comparison of each and a summary.

    Raises:
        UserError: An argument or the graph cannot be used.
        OutOfMemory: A single run does not fit in memory.
    """
    given = {name: keywords.pop(name) for name in ARGUMENTS if name in keywords}
    options = CompareOptions(*arguments, **given)
    keywords |= {"metric": options.metric, "class_weights": options.class_weights}
    overrides = make_overrides(options.settings, keywords=keywords, beside=compare)
    graph = options.graph
    refuse_whole_graphs(graph)
    several, names = isinstance(graph, list | tuple | Mapping), None
    inputs: list[Any] = list(graph) if isinstance(graph, list | tuple) else [graph]
    if isinstance(graph, Mapping):
        names, inputs = list(graph), list(graph.values())
    if not inputs:
        raise UserError("there are no graphs; name some, like cora and citeseer")
    plans = [make_plan(replace(options, graph=one), overrides) for one in inputs]
    with (
        nullcontext(choose_device(options.device))
        if options.ray is None
        else RayWorkers(options.ray, str(options.device)) as place
    ):
        plans = read_graphs(plans, several=several, names=names)
        for plan in plans:
            if not isinstance(plan.options.graph, Dataset):
                warn_of_notes(plan.first_graph)
        return run_comparisons(
            plans,
            place,
            None if options.out is None else Path(options.out),
            several=several,
            display=Lines(_print_line) if options.progress else None,
        )


def _print_line(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
