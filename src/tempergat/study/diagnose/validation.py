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
from typing import Any

import numpy as np
import torch

from tempergat.base import UserError, csv_text, write_into
from tempergat.data import Dataset, csbm
from tempergat.stats import compare_to_baseline
from tempergat.study.diagnose.screening import SCREENED, Screening, diagnose
from tempergat.study.engine import OnProgress, Store, sweep
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


def picked_method(screening: Screening) -> str:
    """The best plain method, unless another one was shown to be better.

    A method with temperature or gates is picked only where the screening shows that
    it is better, not where its mean happens to be the highest.
    """
    shown = screening.finding == "shown"
    return screening.best if shown else screening.best_plain


def runs_needed(name: str) -> list[tuple[RunConfig, int]]:
    """The configurations that `validate` trains on a graph, and how many runs of each.

    Args:
        name: Name of a dataset or of a generated graph.
    """
    needed = []
    for method in SCREENED:
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
    found = diagnose(
        dataset,
        recipe,
        store,
        device,
        runs=SCREENING_RUNS,
        epochs=SCREENING_EPOCHS,
        on_progress=on_progress,
    )
    configs = [_full_config(name, recipe, method) for method in SCREENED]
    scores: dict[str, dict[int, float | None]] = {}
    for run in sweep(dataset, configs, REFERENCE_SEEDS, store, device, on_progress):
        score = None
        if run.status == "done":
            score = 100.0 * run.scores[str(run.config["selection"])].test
        scores.setdefault(run.method, {})[run.seed] = score
    means = {
        method: float(np.mean([s for s in by_seed.values() if s is not None]))
        for method, by_seed in scores.items()
    }
    best = max(means, key=means.__getitem__)
    verdicts = {c.method: c.verdict for c in compare_to_baseline(scores, best)}
    measured, screening = found.measurements, found.screening
    screened = {entry.method: entry.summary.mean for entry in screening.screened}
    parameters = dict.fromkeys(generated_graphs()[f"{_PREFIX}00"], "")
    return [
        {
            "graph": name,
            **(generated_graphs()[name] if is_generated(name) else parameters),
            "signal_to_noise": measured.own.signal_to_noise,
            "signal_to_noise_of_neighbours": measured.neighbours.signal_to_noise,
            "reliable_share": measured.own.reliable_share,
            "adjusted_homophily": measured.adjusted_homophily,
            "finding": screening.finding,
            "method": method,
            "screening_val": screened.get(method),
            "is_pick": method == picked_method(screening),
            "is_first_in_screening": method == screening.best,
            "reference_test": round(means[method], 4),
            "below_best": round(means[best] - means[method], 4),
            "within_noise_of_best": verdicts.get(method, "within noise") != "worse",
        }
        for method in SCREENED
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
