"""The runs of the noise study, and a look at any other graph under the same noise."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from studies.noise.figure import draw_panels, learned_frame, panels_of
from studies.pages import markdown_table
from studies.results import read_plan
from studies.runner import UNCHANGED, Changes, Runner, Stage, Stages
from tempergat.comparison.report.learned import learned_rows
from tempergat.data import load
from tempergat.nn import AttentionLayer, NodeClassifier
from tempergat.ops import Graph
from tempergat.training import (
    CLEAN,
    Condition,
    Loop,
    Preparation,
    Run,
    RunConfig,
    State,
    noise_on_features,
    recipe_for,
    settings_on,
)

PLAN = read_plan("noise")
GRAPHS = [*PLAN["datasets"], *PLAN["further"]]
TAKES_ANY_GRAPH = True
# Enough to see a trend on another graph, too few for the tests of the plan.
SEEDS_OF_A_LOOK = 5


def stages(graph: str) -> Stages:
    """Every condition of both plans on one graph; of a further one, of the first."""
    for part in ("epochs", "confirm") if graph in PLAN["datasets"] else ("epochs",):
        plan = PLAN[part]
        first = plan["first_seed"]
        seeds = range(first, first + plan["seeds"])
        for prepared in preparations(plan):
            yield Stage(
                f"noise/{part}/{graph}.csv",
                graph,
                configs(graph, plan, UNCHANGED),
                seeds,
                preparation=prepared,
            )


def configs(graph: str, plan: dict[str, Any], changes: Changes) -> list[RunConfig]:
    """The settings of every method: those of the graph's recipe, or the user's."""
    _, recipe = recipe_for(graph)
    (decay,) = plan["decay_temperature"]
    return [
        config.with_changes(decay_temperature=decay)
        for config in changes.configs(recipe, plan["methods"], graph)
    ]


def preparations(plan: dict[str, Any]) -> Iterator[Preparation]:
    """The noise of every level; the first has none, on features that are dense too."""
    for condition in (
        CLEAN,
        *(Condition("gaussian", sigma) for sigma in plan["gaussian"][1:]),
        *(
            Condition("missing", rho, tau)
            for tau in plan["tau"]
            for rho in plan["missing"][1:]
        ),
    ):
        yield replace(
            noise_on_features(condition),
            measure=measure,
            matmul_precision=plan["matmul_precision"],
            epochs=tuple(plan.get("epochs", ())),
        )


def measure(loop: Loop, state: State) -> list[dict[str, tuple[float, ...]]]:
    """The entropy of attention in every layer of every run, in evaluation."""
    graph = loop.batches.batch.graph
    assert isinstance(graph, Graph)
    graph = graph.with_self_loops()
    found: list[Tensor] = []

    def weigh(layer: Any, inputs: tuple[Any, ...], _: Any) -> None:
        _, (_, weights) = layer.forward(*inputs, return_attention_weights=True)
        found.append(entropy(graph, weights))

    def look_at(_: NodeClassifier) -> Tensor:
        return torch.stack(found)

    layers = [m for m in loop.runs.model.convs if isinstance(m, AttentionLayer)]
    if not layers:
        return [{} for _ in loop.runs.seeds]
    hooks = [layer.register_forward_hook(weigh) for layer in layers]
    try:
        with loop.runs.at(state):
            values = loop.runs.observe(loop.batches.batch, look_at).tolist()
    finally:
        for hook in hooks:
            hook.remove()
    return [{"entropy": tuple(of_run)} for of_run in values]


def entropy(graph: Graph, weights: Tensor) -> Tensor:
    """Entropy over the logarithm of the degree, mean over targets and heads.

    1 is uniform attention, 0 is all on one edge. Targets with one edge do not count.

    Args:
        graph: The edges the weights belong to, in their order.
        weights: [edges, heads], adding up to one over each target's edges.
    """
    degree = graph.by_target.pointer.diff().to(weights.dtype)
    logarithm = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
    rows = weights.new_zeros(graph.num_dst, weights.size(-1))
    sums = rows.index_add(0, graph.dst.long(), weights * logarithm)
    relative = -sums / degree.clamp(min=2).log().unsqueeze(-1)
    counted = (degree > 1).to(weights.dtype).unsqueeze(-1)
    return (relative * counted).sum() / (counted.sum() * weights.size(-1))


def look(graph: str, runner: Runner, changes: Changes) -> str:
    """Accuracy, and temperature and gate by layer, on a graph outside of the plan.

    Args:
        graph: A name or the path of a graph.
        runner: Trains what its store lacks; no file of results is written.
        changes: What differs from the plan.
    """
    by_level = _runs_by_level(graph, runner, changes)
    every_run = [run for runs in by_level.values() for run in runs]
    seeds = len({run.seed for run in every_run})
    text = f"# {Path(graph).stem} under noise{changes.overrides.words}\n\nMeans of "
    text += f"{seeds} seeds: a look, not a planned test. sigma and tau are in units of "
    text += "the features' root mean square, rho is the share of values lost. "
    text += "Temperatures and gates are those of the last epoch.\n"
    rows = [
        [method, *(_mean_score(method, runs) for runs in by_level.values())]
        for method in dict.fromkeys(run.method for run in every_run)
    ]
    table = markdown_table(["method", *by_level], rows)
    text += f"\n## Test score in percent\n\n{table}\n"
    learned = {level: learned_rows(runs) for level, runs in by_level.items()}
    for title, name in (("Temperature", "temperature"), ("Mean gate", "gate")):
        cells = {
            (row["method"], str(row["layer"]), level): f"{row[f'last_{name}']:.3f}"
            for level, of_layers in learned.items()
            for row in of_layers
            if row[f"last_{name}"] is not None
        }
        rows = [
            [*layer, *(cells.get((*layer, level), "-") for level in by_level)]
            for layer in dict.fromkeys(key[:2] for key in cells)
        ]
        if rows:
            table = markdown_table(["method", "layer", *by_level], rows)
            text += f"\n## {title} by layer\n\n{table}\n"
    return text


def draw(graph: str, runner: Runner, changes: Changes) -> Figure | None:
    """The paper's figure 4 after a look; None where no method has what it shows."""
    # All runs are in the store, so there is no progress to show.
    stored = replace(runner, watch=lambda graph: None)
    runs = [r for of in _runs_by_level(graph, stored, changes).values() for r in of]
    panels = panels_of(learned_frame(Path(graph).stem, runs))
    return draw_panels(panels, 2) if panels else None


def _runs_by_level(
    graph: str, runner: Runner, changes: Changes
) -> dict[str, list[Run]]:
    plan, dataset = PLAN["epochs"], load(graph)
    settings = [settings_on(c, dataset) for c in configs(graph, plan, changes)]
    seeds = range(changes.runs or SEEDS_OF_A_LOOK)
    return {
        _level(prepared.condition): runner.train(
            Stage("", graph, settings, seeds, preparation=prepared), dataset
        )
        for prepared in preparations(plan)
    }


def _level(condition: Condition | None) -> str:
    if condition is None or condition.noise == "none":
        return "no noise"
    if condition.noise == "gaussian":
        return f"sigma {condition.level:g}"
    return f"rho {condition.level:g}, tau {condition.tau:g}"


def _mean_score(method: str, runs: Sequence[Run]) -> str:
    scores = [run.selected_scores for run in runs if run.method == method]
    found = [100.0 * score.test for score in scores if score is not None]
    return f"{fmean(found):.2f}" if found else "-"
