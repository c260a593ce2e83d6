"""A test of the method that a screening would pick, on graphs of many kinds.

On each graph a short screening picks a method by a rule fixed here. The pick is judged
by full runs of every method on other seeds, scored on test nodes. A method is within
noise of the best one when the Holm-corrected paired t-test shows no difference between
them. All graphs, seeds and settings are fixed here. The rows go to
results/diagnose/validation.csv, from which docs/diagnose.md is made.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from tempergat.base import UserError, csv_text, write_into
from tempergat.data import Dataset, csbm
from tempergat.stats import compare_to_baseline
from tempergat.study.diagnose.measure import measure
from tempergat.study.diagnose.screening import validation_scores
from tempergat.study.engine import OnProgress, Store, sweep
from tempergat.study.paper import PAPER_METHODS, PLAIN_METHODS
from tempergat.training import Recipe, RunConfig, load_recipe, recipe_for

VALIDATION_CSV = "diagnose/validation.csv"
GENERATED_GRAPHS = 44
VALIDATION_DATASETS = (
    "actor",
    "amazon_photo",
    "citeseer",
    "cora",
    "pubmed",
    "tolokers",
)
SCREENING_RUNS = 5
SCREENING_EPOCHS = 40
REFERENCE_SEEDS = range(1000, 1010)
# Full runs of the generated graphs; those of the datasets are their recipe's.
REFERENCE_EPOCHS = 100
_GRAPH_SEED = 20260529
_PREFIX = "csbm-"

Row = Mapping[str, Any]
Finding = Literal["shown", "no difference", "too few runs"]


def generated_graphs() -> dict[str, dict[str, Any]]:
    """The parameters of the generated graphs by name, with noise of many levels."""
    found = {}
    draw = np.random.default_rng(_GRAPH_SEED)
    for number in range(GENERATED_GRAPHS):
        inside, across = [(8, 2), (8, 4), (3, 9)][int(draw.integers(3))]
        found[f"{_PREFIX}{number:02d}"] = {
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


def generate(name: str) -> Dataset:
    """One of the generated graphs."""
    return csbm(**generated_graphs()[name], seed=int(name.removeprefix(_PREFIX)))


def is_generated(graph: str) -> bool:
    """Whether a name is that of a generated graph."""
    return graph.startswith(_PREFIX)


def picked_method(
    scores: Mapping[str, Mapping[int, float | None]],
) -> tuple[str, Finding]:
    """The best plain method, unless another one was shown to be better.

    A method with temperature or gates is picked only where the screening shows that
    it is better, not where its mean happens to be the highest: better than the best
    plain method or, if it is plain itself, better than all others.

    Args:
        scores: Validation scores in percent by method and seed.

    Returns:
        The method, and what the screening shows.
    """
    means = _means(scores)
    best = max(means, key=means.__getitem__)
    best_plain = max(
        (method for method in means if method in PLAIN_METHODS), key=means.__getitem__
    )
    compared = compare_to_baseline({method: scores[method] for method in means}, best)
    if not compared or any(c.t_p is None for c in compared):
        return best_plain, "too few runs"
    rivals = {c.method for c in compared if c.verdict != "worse"}
    if best != best_plain:
        rivals &= {best_plain}
    return (best_plain, "no difference") if rivals else (best, "shown")


def _means(scores: Mapping[str, Mapping[int, float | None]]) -> dict[str, float]:
    """The mean of each method's finished runs."""
    finished = {
        method: [score for score in found.values() if score is not None]
        for method, found in scores.items()
    }
    return {
        method: float(np.mean(found)) for method, found in finished.items() if found
    }


def runs_needed(name: str) -> list[tuple[RunConfig, int]]:
    """The configurations that `validate` trains on a graph, and how many runs of each.

    Args:
        name: Name of a dataset or of a generated graph.
    """
    needed = []
    for method in PAPER_METHODS:
        config = _full_config(name, _recipe(name), method)
        short = config.with_changes(epochs=min(SCREENING_EPOCHS, config.epochs))
        needed += [(short, SCREENING_RUNS), (config, len(REFERENCE_SEEDS))]
    return needed


def validate(
    name: str,
    dataset: Dataset,
    store: Store,
    device: torch.device,
    on_progress: OnProgress | None = None,
) -> list[Row]:
    """Screen the methods on a graph, train them in full, and compare the two.

    Args:
        name: The graph's name in the table.
        dataset: The graph.
        store: Where the runs are stored.
        device: Where to train.
        on_progress: As for `sweep`.

    Returns:
        One row per method.
    """
    recipe = _recipe(name)
    configs = [_full_config(name, recipe, method) for method in PAPER_METHODS]
    short = [c.with_changes(epochs=min(SCREENING_EPOCHS, c.epochs)) for c in configs]
    seeds = range(SCREENING_RUNS)
    screening = validation_scores(
        sweep(dataset, short, seeds, store, device, on_progress)
    )
    pick, finding = picked_method(screening)
    screened = _means(screening)
    scores: dict[str, dict[int, float | None]] = {}
    for run in sweep(dataset, configs, REFERENCE_SEEDS, store, device, on_progress):
        score = None
        if run.status == "done":
            score = 100.0 * run.scores[str(run.config["selection"])].test
        scores.setdefault(run.method, {})[run.seed] = score
    means = _means(scores)
    best = max(means, key=means.__getitem__)
    verdicts = {c.method: c.verdict for c in compare_to_baseline(scores, best)}
    measured = measure(dataset, short[0])
    parameters = dict.fromkeys(generated_graphs()[f"{_PREFIX}00"], "")
    return [
        {
            "graph": name,
            **(generated_graphs()[name] if is_generated(name) else parameters),
            "signal_to_noise": measured.own.signal_to_noise,
            "signal_to_noise_of_neighbours": measured.neighbours.signal_to_noise,
            "reliable_share": measured.own.reliable_share,
            "adjusted_homophily": measured.adjusted_homophily,
            "finding": finding,
            "method": method,
            "screening_val": screened.get(method),
            "is_pick": method == pick,
            "is_first_in_screening": method == max(screened, key=screened.__getitem__),
            "reference_test": round(means[method], 4),
            "below_best": round(means[best] - means[method], 4),
            "within_noise_of_best": verdicts.get(method, "within noise") != "worse",
        }
        for method in PAPER_METHODS
    ]


def read_validation(path: Path) -> list[dict[str, str]]:
    """The rows of a table of validation.

    Raises:
        UserError: It cannot be read.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}; run this in the project's folder, "
            "or make it with `tempergat reproduce diagnose --run`"
        ) from error


def write_validation(path: Path, rows: Sequence[Row]) -> None:
    """Put the rows of some graphs into a table; other graphs keep theirs."""
    new = {row["graph"] for row in rows}
    old = read_validation(path) if path.exists() else []
    kept: list[Row] = [row for row in old if row["graph"] not in new]
    lines = sorted([*kept, *rows], key=lambda row: str(row["graph"]))
    write_into(path.parent, path.name, csv_text([dict(line) for line in lines]))


def _recipe(name: str) -> Recipe:
    if is_generated(name):
        return load_recipe("demo")
    recipe_name, recipe = recipe_for(name)
    # The published rows were made when `plain` was the default.
    return load_recipe("plain") if recipe_name == "default" else recipe


def _full_config(name: str, recipe: Recipe, method: str) -> RunConfig:
    config = recipe.config_for(method)
    if is_generated(name):
        return config.with_changes(epochs=REFERENCE_EPOCHS)
    return config
