"""Would a pick made from `tempergat diagnose` beat always using the same method?

    python -m benchmarks.diagnose_validation --workers 2
    python -m benchmarks.diagnose_validation --device cuda --datasets cora citeseer

On generated graphs with known noise, and on datasets if asked, the method that a short
screening would pick (judged on validation nodes) is compared with full runs of every
method on other seeds, judged on test nodes. A choice is within noise of the best method
when the Holm-corrected paired t-test does not tell them apart. Writes one row per graph
and method to results/diagnose/validation.csv and docs/diagnose.md; all graphs, seeds,
settings and the rule of the pick are fixed below. Runs are kept in --store, so it goes
on where it was stopped.
"""

import argparse
import csv
import io
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats as scipy_stats

from tempergat.base import files as atomic
from tempergat.cli.graphs import load_settings
from tempergat.data import Dataset, csbm, load
from tempergat.stats import ALPHA, compare_to_baseline, holm
from tempergat.study.diagnose.screening import SCREENED, Screening, diagnose
from tempergat.study.engine.store import Store
from tempergat.study.engine.sweep import sweep
from tempergat.study.report.markdown import filled
from tempergat.study.report.tables import p_value
from tempergat.training import Recipe, load_recipe

RESULTS = Path("results/diagnose/validation.csv")
DOCS = Path("docs/diagnose.md")
PICK = "the pick"
# What the pick has to beat.
CONSTANTS = ("gat", "gatv2", "temp_gated")
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


def picked(screening: Screening) -> str:
    """The best plain method, unless the method with the highest mean is told apart.

    Temperature and gates are picked where they are shown to help, not where they
    happen to come first.
    """
    shown = screening.finding == "shown"
    return screening.best if shown else screening.best_plain


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
    measured, screening = found.measurements, found.screening
    screened = {entry.method: entry.summary.mean for entry in screening.screened}
    return [
        {
            **facts,
            "signal_to_noise": measured.own.signal_to_noise,
            "signal_to_noise_of_neighbours": measured.neighbours.signal_to_noise,
            "reliable_share": measured.own.reliable_share,
            "adjusted_homophily": measured.adjusted_homophily,
            "finding": screening.finding,
            "method": method,
            "screening_val": screened.get(method),
            "is_pick": method == picked(screening),
            "is_first_in_screening": method == screening.best,
            "reference_test": round(means[method], 4),
            "below_best": round(means[best] - means[method], 4),
            "within_noise_of_best": verdicts.get(method, "within noise") != "worse",
        }
        for method in SCREENED
    ]


@dataclass(frozen=True)
class Choice:
    """How one way of choosing a method did over the graphs.

    Attributes:
        within: Graphs where the choice is within noise of the best method.
        low: Lower end of the 95 % interval of that share.
        high: Upper end of it.
        below_best: Points below the best method, averaged over graphs.
        more_than_pick: The same less that of the pick.
        p: Of Wilcoxon's signed-rank test of that difference over graphs.
    """

    name: str
    within: int
    graphs: int
    low: float
    high: float
    below_best: float
    more_than_pick: float
    p: float


def summary(rows: list[dict[str, str]]) -> list[Choice]:
    """Every way of choosing, the pick first."""
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    chosen: dict[str, list[dict[str, str]]] = {
        PICK: [row for row in rows if row["is_pick"] == "True"],
        "first in the screening": [
            row for row in rows if row["is_first_in_screening"] == "True"
        ],
    }
    for method in SCREENED:
        chosen[f"always {method}"] = [row for row in rows if row["method"] == method]
    of_pick = np.array([float(row["below_best"]) for row in chosen[PICK]])
    found = []
    for name, picked in chosen.items():
        assert [row["graph"] for row in picked] == graphs
        within = sum(row["within_noise_of_best"] == "True" for row in picked)
        share = scipy_stats.binomtest(within, len(graphs)).proportion_ci(
            method="wilson"
        )
        more = np.array([float(row["below_best"]) for row in picked]) - of_pick
        differs = np.any(np.round(more, 9))
        found.append(
            Choice(
                name,
                within,
                len(graphs),
                share.low,
                share.high,
                float(more.mean() + of_pick.mean()),
                float(more.mean()),
                float(scipy_stats.wilcoxon(more).pvalue) if differs else 1.0,
            )
        )
    return found


def page(rows: list[dict[str, str]]) -> str:
    """docs/diagnose.md."""
    found = summary(rows)
    named = [c for c in found if c.name in {f"always {m}" for m in CONSTANTS}]
    corrected = holm([choice.p for choice in named])
    sentences = []
    for choice, p in zip(named, corrected, strict=True):
        shown = p is not None and p < ALPHA
        better = "better" if choice.more_than_pick > 0 else "worse"
        sentences.append(
            f"- {choice.name}: the pick is "
            + (f"{better} by" if shown else "not shown to differ,")
            + f" {abs(choice.more_than_pick):.2f} points on average (Holm-corrected "
            f"p {p_value(p)}), and within noise of the best on {found[0].within} "
            f"graphs against {choice.within}."
        )
    beaten = sum(
        p is not None and p < ALPHA and c.more_than_pick > 0
        for c, p in zip(named, corrected, strict=True)
    )
    verdict = (
        "The pick beats each of the three."
        if beaten == len(named)
        else f"The pick beats only {beaten} of the three. So the command recommends "
        "nothing: it prints the measurements and what the screening shows. To choose a "
        "method, run `tempergat compare`."
    )
    table = "\n".join(
        f"| {c.name} | {c.within} of {c.graphs} | {100 * c.low:.0f} to "
        f"{100 * c.high:.0f} % | {c.below_best:.2f} | {c.more_than_pick:+.2f} | "
        f"{'-' if c.name == PICK else p_value(c.p)} |"
        for c in found
    )
    generated_count = len({r["graph"] for r in rows if r["graph"].startswith("csbm-")})
    others = sorted({r["graph"] for r in rows if not r["graph"].startswith("csbm-")})
    datasets = ", ".join(others) or "none"
    picks = [row for row in rows if row["is_pick"] == "True"]
    alike = sum(row["finding"] == "no difference" for row in picks)
    text = PAGE.format(
        generated=generated_count,
        planned=GRAPHS,
        datasets=datasets,
        runs=SCREENING_RUNS,
        epochs=SCREENING_EPOCHS,
        reference=len(REFERENCE_SEEDS),
        reference_epochs=REFERENCE_EPOCHS,
        table=table,
        sentences="\n".join(sentences),
        verdict=verdict,
        alike=alike,
        graphs=found[0].graphs,
    )
    return filled(text)


PAGE = """# Which one do I need?

    tempergat diagnose DATASET|PATH

measures a graph, screens the methods on it and says what that shows. It prints

- the features' signal-to-noise ratio: variance between class means over variance
  within classes, all coordinates together, with what chance contributes taken off; the
  same of the means over neighbourhoods, which says what aggregation gains;
- how many coordinates tell classes apart (one-way F-test per coordinate, at most 5 %
  false discoveries) and how much of the signal the best tenth carries;
- the share of non-zero entries, homophily with and without what chance gives, and the
  mean degree;
- a table of the screening: 10 seeds and at most 100 epochs of each of the paper's
  eleven methods, all seeds at once, compared over paired seeds;
- what the screening shows, "no difference" included.

It recommends no method: a rule that does was tested, and the test, below, does not
support it.

Only labels of training nodes are measured with (homophily: training and validation
nodes), and methods are judged on validation nodes: test nodes play no part. The tests
are over seeds on one split; differences below the printed standard error may be the
luck of its validation nodes, which no number of seeds removes. All methods are compared
with the one whose mean came out highest, so p is somewhat smaller than on fresh runs.

## Would a pick be worth following?

The rule, fixed before it was tested: take the best of gcn, gat and gatv2, unless the
method with the highest mean in the screening is told apart from it (paired t-test,
Holm-corrected).

This page is made by `python -m benchmarks.diagnose_validation` from
`results/diagnose/validation.csv`: {generated} of {planned} generated graphs of the
contextual block model with known noise (300 to 500 nodes; sigma 0.25 to 2, rho 0 to
0.6, tau 1 and 3, homophilic and heterophilic, 2 and 4 classes), and these datasets:
{datasets}. DBLP and IMDB are left out: they are heterogeneous, with several types of
nodes and edges, and `diagnose` takes homogeneous graphs alone.

The screening had {runs} seeds and at most {epochs} epochs, less than the command's own;
what the rule would do after a longer one was not measured. It is judged by full runs of
every method on {reference} other seeds ({reference_epochs} epochs on generated graphs,
the recipe's on datasets) and on test nodes: is the choice within noise of the best
method (Holm-corrected paired t-test), and how many points is it below it?

| choice | within noise | 95 % interval | points below best | less the pick | p |
| --- | ---: | ---: | ---: | ---: | ---: |
{table}

p: Wilcoxon's signed-rank test over graphs, not corrected. The screening showed "no
difference" on {alike} of {graphs} graphs, and the pick then is a plain method; so few
seeds have little power. "First in the screening" is another rule, looked at
afterwards, and no better founded for doing well here. Against the three choices named
beforehand:

{sentences}

{verdict}
"""


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
                _, recipe = load_settings(name, None)
                keep(rows_of(load(name), recipe, facts, store, device, None))
    text = page([{k: str(v) for k, v in line.items()} for line in lines])
    atomic.write_text(DOCS, text)
    print(text[text.index("| choice") :])


if __name__ == "__main__":
    main()
