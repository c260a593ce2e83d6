"""Does the advice of `tempergat diagnose` beat always using the same method?

    python -m benchmarks.diagnose_validation --workers 2
    python -m benchmarks.diagnose_validation --device cuda --datasets cora citeseer

On generated graphs with known noise, and on datasets if asked, the advice (a short
screening judged on validation nodes) is compared with full runs of every method on
other seeds, judged on test nodes. A choice is within noise of the best method when the
Holm-corrected paired t-test does not tell them apart. Writes one row per graph and
method to results/diagnose/validation.csv and prints the summary; all graphs, seeds and
settings are fixed below. Runs are kept in --store, so it goes on where it was stopped.
"""

import argparse
import csv
import io
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats as scipy_stats

from tempergat.data import Dataset, csbm, load
from tempergat.study import atomic
from tempergat.study.diagnose import SCREENED, diagnose
from tempergat.study.stats import compare_to_baseline
from tempergat.study.store import Store
from tempergat.study.sweep import sweep
from tempergat.train import Recipe, load_recipe

RESULTS = Path("results/diagnose/validation.csv")
GRAPHS = 44
GRAPH_SEED = 20260529
SCREENING_RUNS = 5
SCREENING_EPOCHS = 40
REFERENCE_SEEDS = range(1000, 1010)
# Full runs of the generated graphs; those of the datasets are their recipe's.
REFERENCE_EPOCHS = 100


def generated() -> list[dict[str, Any]]:
    """Graphs of the block model with noise drawn over a wide range, by parameters."""
    found = []
    draw = np.random.default_rng(GRAPH_SEED)
    for number in range(GRAPHS):
        inside, across = [(8, 2), (8, 4), (3, 9)][int(draw.integers(3))]
        facts: dict[str, Any] = {
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
        found.append({"graph": f"csbm-{number:02d}", **facts})
    return found


def rows_of_generated(facts: dict[str, Any], store_path: Path) -> list[dict[str, Any]]:
    """All of one generated graph, on the CPU; a job for a process of its own."""
    torch.set_num_threads(1)
    name, parameters = facts["graph"], {k: v for k, v in facts.items() if k != "graph"}
    dataset = csbm(**parameters, seed=int(name.removeprefix("csbm-")))
    with Store(store_path) as store:
        return rows_of(
            dataset,
            load_recipe("csbm"),
            facts,
            store,
            torch.device("cpu"),
            REFERENCE_EPOCHS,
        )


def rows_of(
    dataset: Dataset,
    recipe: Recipe,
    facts: dict[str, Any],
    store: Store,
    device: torch.device,
    reference_epochs: int | None,
) -> list[dict[str, Any]]:
    """One row per method: the screening's verdict beside that of the full runs."""
    found = diagnose(
        dataset,
        recipe,
        store,
        device,
        runs=SCREENING_RUNS,
        epochs=SCREENING_EPOCHS,
    )
    configs = [recipe.config_for(method) for method in SCREENED]
    if reference_epochs is not None:
        configs = [config.with_changes(epochs=reference_epochs) for config in configs]
    scores: dict[str, dict[int, float | None]] = {}
    for run in sweep(dataset, configs, REFERENCE_SEEDS, store, device):
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
    measured, advice = found.measurements, found.advice
    screened = {entry.method: entry.summary.mean for entry in advice.screened}
    return [
        {
            **facts,
            "signal_to_noise": measured.own.signal_to_noise,
            "signal_to_noise_of_neighbours": measured.neighbours.signal_to_noise,
            "reliable_share": measured.own.reliable_share,
            "adjusted_homophily": measured.adjusted_homophily,
            "certainty": advice.certainty,
            "method": method,
            "screening_val": screened.get(method),
            "is_pick": method == advice.pick,
            "is_first_in_screening": method == advice.best,
            "reference_test": round(means[method], 4),
            "below_best": round(means[best] - means[method], 4),
            "within_noise_of_best": verdicts.get(method, "within noise") != "worse",
        }
        for method in SCREENED
    ]


def summary(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """How each way of choosing did over the graphs."""
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    chosen: dict[str, list[dict[str, str]]] = {
        "diagnose": [row for row in rows if row["is_pick"] == "True"],
        "first in screening": [
            row for row in rows if row["is_first_in_screening"] == "True"
        ],
    }
    for method in SCREENED:
        chosen[f"always {method}"] = [row for row in rows if row["method"] == method]
    advised = np.array([float(row["below_best"]) for row in chosen["diagnose"]])
    lines = []
    for name, picked in chosen.items():
        assert [row["graph"] for row in picked] == graphs
        within = sum(row["within_noise_of_best"] == "True" for row in picked)
        share = scipy_stats.binomtest(within, len(graphs)).proportion_ci(
            method="wilson"
        )
        below = np.array([float(row["below_best"]) for row in picked])
        differs = np.any(np.round(below - advised, 9))
        p = scipy_stats.wilcoxon(below - advised).pvalue if differs else 1.0
        lines.append(
            {
                "choice": name,
                "within noise of the best": f"{within} of {len(graphs)}",
                "95 % interval": f"{100 * share.low:.0f} to {100 * share.high:.0f} %",
                "points below the best": f"{below.mean():.2f}",
                "against diagnose": f"{below.mean() - advised.mean():+.2f}",
                "p": "-" if name == "diagnose" else f"{p:.3f}",
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=1, help="processes at once")
    parser.add_argument("--datasets", nargs="*", default=[])
    parser.add_argument("--device", default="cpu", help="where datasets are trained")
    parser.add_argument(
        "--store", type=Path, default=Path("tempergat-out/diagnose-validation.sqlite")
    )
    parser.add_argument(
        "--no-generated", action="store_true", help="only the datasets named"
    )
    options = parser.parse_args()
    lines: list[dict[str, Any]] = []
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            lines = list(csv.DictReader(file))

    def keep(rows: list[dict[str, Any]]) -> None:
        lines.extend(rows)
        lines.sort(key=lambda line: str(line["graph"]))
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        atomic.write_text(RESULTS, buffer.getvalue())
        print(rows[0]["graph"], flush=True)

    done = {line["graph"] for line in lines}
    graphs = [] if options.no_generated else generated()
    left = [facts for facts in graphs if facts["graph"] not in done]
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        jobs = [pool.submit(rows_of_generated, f, options.store) for f in left]
        for job in as_completed(jobs):
            keep(job.result())
    for name in options.datasets:
        if name not in done:
            facts = {"graph": name, **dict.fromkeys(list(generated()[0])[1:], "")}
            with Store(options.store) as store:
                device = torch.device(options.device)
                recipe = load_recipe(name)
                keep(rows_of(load(name), recipe, facts, store, device, None))
    found = summary([{k: str(v) for k, v in line.items()} for line in lines])
    for cells in (found[0], ["---"] * len(found[0]), *(f.values() for f in found)):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
