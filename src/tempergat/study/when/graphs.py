"""The graphs of the study: generated ones on a designed grid, and real ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tempergat.base import UserError
from tempergat.data import Dataset, csbm, load_splits, mirror_folders
from tempergat.study.when.plan import GeneratedPlan, RealPlan


@dataclass(frozen=True)
class GeneratedGraph:
    """One point of the grid.

    Attributes:
        name: Its name in tables.
        varied: The factor in which it differs from its centre; "centre" for none.
        centre: The name of its centre; empty for graphs on the line of homophily.
        seed: Seed of the graph.
        homophily: Expected share of edges inside classes.
        degree: Expected number of neighbours.
        mu: Norm of the class signal.
        sigma: Standard deviation of the noise on every coordinate.
        rho: Share of lost coordinates.
        label_rate: Percentage of training nodes.
    """

    name: str
    varied: str
    centre: str
    seed: int
    homophily: float
    degree: float
    mu: float
    sigma: float
    rho: float
    label_rate: float


def grid(plan: GeneratedPlan) -> dict[str, GeneratedGraph]:
    """All generated graphs by name: centres first, then the line of homophily."""
    seeds = itertools.count(plan.graph_seed)
    return {
        name: GeneratedGraph(name, varied, centre, next(seeds), **values)
        for name, varied, centre, values in _points(plan)
    }


def _points(
    plan: GeneratedPlan,
) -> Iterator[tuple[str, str, str, dict[str, float]]]:
    """The name, the factor that is varied, the centre and all factors of each graph."""
    usual: dict[str, float] = {str(name): v for name, v in plan.centre.items()}
    for centre, homophily in plan.centres.items():
        yield centre, "centre", centre, {**usual, "homophily": homophily}
    for level in plan.levels["homophily"]:
        yield f"homophily {level:g}", "homophily", "", {**usual, "homophily": level}
    for factor, levels in plan.levels.items():
        if factor == "homophily":
            continue
        for level in levels:
            for centre, homophily in plan.centres.items():
                values = {**usual, "homophily": homophily, factor: level}
                yield f"{centre}, {factor} {level:g}", factor, centre, values


def generate(plan: GeneratedPlan, graph: GeneratedGraph) -> Dataset:
    """Samples a graph of the grid."""
    classes, degree = plan.classes, graph.degree
    across = classes * (1.0 - graph.homophily) * degree / (classes - 1)
    return csbm(
        n=plan.nodes,
        a=classes * graph.homophily * degree,
        b=across,
        mu=graph.mu,
        d=plan.features,
        classes=classes,
        sigma=graph.sigma,
        rho=graph.rho,
        tau=plan.tau,
        seed=graph.seed,
        split=f"{graph.label_rate:g}/{plan.validation_rate:g}/{plan.test_rate:g}",
    )


def is_heterophilic(plan: GeneratedPlan, graph: GeneratedGraph) -> bool:
    """Whether neighbours share a class no more often than by chance."""
    return graph.homophily <= 1.0 / plan.classes


def real_graph(plan: RealPlan, name: str) -> dict[int, Dataset]:
    """A real graph with each of the splits that are used, by number.

    Raises:
        UserError: It cannot be loaded.
    """
    (found,) = (graph for graph in plan.graphs if graph.name == name)
    source = name if found.file is None else str(_mirrored(found.file))
    if found.splits == "own":
        return _loaded(source, None, None)
    return _loaded(source, plan.made_split, plan.made_splits)


@lru_cache(maxsize=1)
def _loaded(source: str, split: str | None, count: int | None) -> dict[int, Dataset]:
    return load_splits(source, split=split, made_splits=count)


def _mirrored(file: str) -> Path:
    for folder in mirror_folders():
        if (folder / file).exists():
            return folder / file
    raise UserError(
        f"no mirror has {file}; name a folder that has it in TEMPERGAT_MIRROR"
    )
