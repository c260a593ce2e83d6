"""The test of the method that a screening would pick, on graphs of many kinds.

The pick is judged by full runs of every method on other seeds, scored on test nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from studies.results import read_plan, result_path
from studies.runner import Stage, Stages
from tempergat.base import csv_text, write_into
from tempergat.comparison.measure import measure
from tempergat.comparison.paper import PAPER_METHODS, PLAIN_METHODS
from tempergat.comparison.screening import validation_scores
from tempergat.data import Dataset, csbm, load
from tempergat.stats import compare_to_baseline
from tempergat.training import Run, RunConfig, load_recipe, recipe_for

PLAN = read_plan("diagnose")
TABLE = "diagnose/validation.csv"
RUNS = "diagnose/runs.csv"

Finding = Literal["shown", "no difference", "too few runs"]
# Scores in percent by method and seed; None for a failed run.
MethodScores = Mapping[str, Mapping[int, float | None]]


def _generated() -> dict[str, dict[str, Any]]:
    """The parameters of the generated graphs by name, with noise of many levels."""
    found = {}
    draw = np.random.default_rng(PLAN["graph_seed"])
    for number in range(PLAN["generated"]):
        inside, across = [(8, 2), (8, 4), (3, 9)][int(draw.integers(3))]
        found[f"csbm-{number:02d}"] = {
            "n": int(draw.integers(300, 501)),
            "a": inside,
            "b": across,
            "mu": float(draw.choice([1.0, 2.0, 4.0])),
            "d": 32,
            "classes": int(draw.choice([2, 4])),
            "sigma": float(draw.choice([0.25, 0.5, 1.0, 2.0])),
            "rho": float(draw.choice([0.0, 0.3, 0.6])),
            "tau": float(draw.choice([1.0, 3.0])),
        }
    return found


GENERATED = _generated()
GRAPHS = (*GENERATED, *PLAN["datasets"])


def load_graph(name: str) -> Dataset:
    """A dataset or a generated graph."""
    if name not in GENERATED:
        return load(name)
    seed = list(GENERATED).index(name)
    return replace(csbm(**GENERATED[name], seed=seed), name=name)


def full_configs(graph: str) -> list[RunConfig]:
    """The settings of the full runs of every method on a graph."""
    if graph in GENERATED:
        recipe, epochs = load_recipe("demo"), {"epochs": PLAN["reference"]["epochs"]}
    else:
        (name, recipe), epochs = recipe_for(graph), {}
        # The study's settings have no residual.
        recipe = load_recipe("plain") if name == "default" else recipe
    return [recipe.config_for(m).with_changes(**epochs) for m in PAPER_METHODS]


def stages(graph: str) -> Stages:
    """The screening and the full runs on a graph that has no rows; then its rows."""
    path = result_path(TABLE)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if graph in set(table["graph"]):
        return
    full = full_configs(graph)
    most, seeds = PLAN["screening"]["epochs"], range(PLAN["screening"]["seeds"])
    short = [c.with_changes(epochs=min(most, c.epochs)) for c in full]
    screened = yield Stage(RUNS, graph, short, seeds, load_graph)
    first, count = PLAN["reference"]["first_seed"], PLAN["reference"]["seeds"]
    seeds = range(first, first + count)
    trained = yield Stage(RUNS, graph, full, seeds, load_graph)
    rows = [*table.to_dict("records"), *rows_of(graph, short[0], screened, trained)]
    rows.sort(key=lambda row: str(row["graph"]))
    write_into(path.parent, path.name, csv_text(rows))


def rows_of(
    graph: str, config: RunConfig, screened: Sequence[Run], trained: Sequence[Run]
) -> list[dict[str, Any]]:
    """The rows of a graph, one for each method; `config` is one of the screening's."""
    screening = validation_scores(screened)
    pick, finding = picked_method(screening)
    screening_means = _means(screening)
    scores: dict[str, dict[int, float | None]] = {}
    for run in trained:
        is_done, rule = run.status == "done", str(run.config["selection"])
        score = 100.0 * run.scores[rule].test if is_done else None
        scores.setdefault(run.method, {})[run.seed] = score
    means = _means(scores)
    best = max(means, key=means.__getitem__)
    verdicts = {c.method: c.verdict for c in compare_to_baseline(scores, best)}
    measured = measure(load_graph(graph), config)
    first = max(screening_means, key=screening_means.__getitem__)
    return [
        {
            "graph": graph,
            **GENERATED.get(graph, dict.fromkeys(GENERATED["csbm-00"], "")),
            "signal_to_noise": measured.own.signal_to_noise,
            "signal_to_noise_of_neighbours": measured.neighbours.signal_to_noise,
            "reliable_share": measured.own.reliable_share,
            "adjusted_homophily": measured.adjusted_homophily,
            "finding": finding,
            "method": method,
            "screening_val": screening_means.get(method),
            "is_pick": method == pick,
            "is_first_in_screening": method == first,
            "reference_test": round(means[method], 4),
            "below_best": round(means[best] - means[method], 4),
            "within_noise_of_best": verdicts.get(method, "within noise") != "worse",
        }
        for method in PAPER_METHODS
    ]


def picked_method(scores: MethodScores) -> tuple[str, Finding]:
    """The best plain method, unless another was shown to beat it; and what was shown.

    A plain method with the highest mean is shown to be best where it beats all others.
    """
    means = _means(scores)
    best = max(means, key=means.__getitem__)
    best_plain = max((m for m in means if m in PLAIN_METHODS), key=means.__getitem__)
    compared = compare_to_baseline({method: scores[method] for method in means}, best)
    if not compared or any(c.t_p is None for c in compared):
        return best_plain, "too few runs"
    rivals = {c.method for c in compared if c.verdict != "worse"}
    if best != best_plain:
        rivals &= {best_plain}
    return (best_plain, "no difference") if rivals else (best, "shown")


def _means(scores: MethodScores) -> dict[str, float]:
    """The mean of each method's finished runs."""
    means = pd.DataFrame(scores, dtype=float).mean().dropna()
    return {str(method): float(mean) for method, mean in means.items()}
