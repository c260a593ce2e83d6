"""docs/diagnose.md, made from results/diagnose/validation.csv."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats as scipy_stats

from tempergat.base import write_into
from tempergat.stats import ALPHA, holm
from tempergat.study.diagnose import figures
from tempergat.study.diagnose.validation import (
    GENERATED_GRAPHS,
    REFERENCE_EPOCHS,
    REFERENCE_SEEDS,
    SCREENING_EPOCHS,
    SCREENING_RUNS,
    VALIDATION_CSV,
    is_generated,
    read_validation,
)
from tempergat.study.paper import PAPER_METHODS
from tempergat.study.report import filled, markdown_rows, p_value

_PICK = "the pick"
_FIGURE = "diagnose-choices"
# The choices that the pick has to beat, named beforehand.
_CONSTANTS = ("gat", "gatv2", "temp_gated")


@dataclass(frozen=True)
class Choice:
    """How one way of choosing a method did over the graphs.

    Attributes:
        within: Graphs where the chosen method is within noise of the best one.
        low: Lower end of the 95 % interval of that share.
        high: Upper end of it.
        below_best: Points below the best method, averaged over graphs.
        more_than_pick: The same minus that of the pick.
        p: p of Wilcoxon's signed-rank test of that difference over graphs.
    """

    name: str
    within: int
    graphs: int
    low: float
    high: float
    below_best: float
    more_than_pick: float
    p: float


@dataclass(frozen=True)
class ValidationReport:
    """What `reproduce_diagnose` found and wrote."""

    choices: tuple[Choice, ...]
    verdict: str
    page: Path


def reproduce_diagnose(results: Path, docs: Path) -> ValidationReport:
    """Write docs/diagnose.md from results/diagnose/validation.csv.

    Args:
        results: The project's folder of results.
        docs: Where the page goes.

    Raises:
        UserError: The table is missing.
    """
    rows = read_validation(results / VALIDATION_CSV)
    choices = choices_of(rows)
    page = docs / "diagnose.md"
    below_best = {choice.name: choice.below_best for choice in choices}
    figures.choices_figure(below_best, docs / "figures" / _FIGURE)
    write_into(docs, page.name, page_text(rows))
    return ValidationReport(tuple(choices), _verdict(_named(choices)), page)


def choices_of(rows: Sequence[dict[str, str]]) -> list[Choice]:
    """Every way of choosing a method, the pick first."""
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    chosen = {
        _PICK: [row for row in rows if row["is_pick"] == "True"],
        "first in the screening": [
            row for row in rows if row["is_first_in_screening"] == "True"
        ],
    }
    for method in PAPER_METHODS:
        chosen[f"always {method}"] = [row for row in rows if row["method"] == method]
    of_pick = np.array([float(row["below_best"]) for row in chosen[_PICK]])
    found = []
    for name, of_choice in chosen.items():
        assert [row["graph"] for row in of_choice] == graphs
        within = sum(row["within_noise_of_best"] == "True" for row in of_choice)
        share = scipy_stats.binomtest(within, len(graphs)).proportion_ci(
            method="wilson"
        )
        more = np.array([float(row["below_best"]) for row in of_choice]) - of_pick
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


def page_text(rows: Sequence[dict[str, str]]) -> str:
    """The page as Markdown."""
    choices = choices_of(rows)
    pick, named = choices[0], _named(choices)
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    datasets = sorted(graph for graph in graphs if not is_generated(graph))
    picks = [row for row in rows if row["is_pick"] == "True"]
    return filled(
        _PAGE.format(
            generated=len(graphs) - len(datasets),
            planned=GENERATED_GRAPHS,
            datasets=", ".join(datasets) or "none",
            runs=SCREENING_RUNS,
            epochs=SCREENING_EPOCHS,
            reference=len(REFERENCE_SEEDS),
            reference_epochs=REFERENCE_EPOCHS,
            table=_table(choices),
            sentences="\n".join(_sentence(c, p, pick) for c, p in named),
            verdict=_verdict(named),
            no_difference=sum(row["finding"] == "no difference" for row in picks),
            graphs=pick.graphs,
            figure=_FIGURE,
        )
    )


def _named(choices: Sequence[Choice]) -> list[tuple[Choice, float | None]]:
    """The choices the pick has to beat, with their Holm-corrected p."""
    names = {f"always {method}" for method in _CONSTANTS}
    named = [choice for choice in choices if choice.name in names]
    return list(zip(named, holm([choice.p for choice in named]), strict=True))


def _sentence(choice: Choice, p: float | None, pick: Choice) -> str:
    better = "better" if choice.more_than_pick > 0 else "worse"
    shown = p is not None and p < ALPHA
    return (
        f"- {choice.name}: the pick is "
        + (f"{better} by" if shown else "not shown to differ,")
        + f" {abs(choice.more_than_pick):.2f} points on average (Holm-corrected "
        f"p {p_value(p)}), and within noise of the best on {pick.within} graphs "
        f"against {choice.within}."
    )


def _verdict(named: Sequence[tuple[Choice, float | None]]) -> str:
    beaten = sum(
        p is not None and p < ALPHA and choice.more_than_pick > 0 for choice, p in named
    )
    if beaten == len(named):
        return "The pick beats each of the three."
    return (
        f"The pick beats only {beaten} of the three. So the command recommends "
        "nothing: it prints the measurements and what the screening shows. To choose a "
        "method, run `tempergat compare`."
    )


def _table(choices: Sequence[Choice]) -> str:
    columns = ("choice", "within noise", "95 % interval", "points below best")
    rows = [
        [
            choice.name,
            f"{choice.within} of {choice.graphs}",
            f"{100 * choice.low:.0f} to {100 * choice.high:.0f} %",
            f"{choice.below_best:.2f}",
            f"{choice.more_than_pick:+.2f}",
            "-" if choice.name == _PICK else p_value(choice.p),
        ]
        for choice in choices
    ]
    return markdown_rows([*columns, "minus the pick's", "p"], rows).rstrip("\n")


_PAGE = """# Which method do I need?

`tempergat diagnose` recommends no method. A rule that recommends one was tested on
{graphs} graphs, and the test below does not support it. [Another
rule](when.md#a-rule-for-tempergat-diagnose), a residual where adjusted homophily is
low, is not shown to be better than a residual on every graph. To choose a method, run
`tempergat compare`.

![Points below the best method](figures/{figure}.svg)

    tempergat diagnose DATASET|PATH

measures a graph, compares the methods in a short screening and says what that shows. It
prints

- the features' signal-to-noise ratio: the variance between class means over the
  variance within classes, summed over all coordinates, less what chance contributes;
  and the same ratio for the means over neighbourhoods, which shows what aggregation
  gains;
- how many coordinates differ between classes (one-way F-test per coordinate, at most
  5 % false discoveries) and how much of the signal the best tenth carries;
- the share of non-zero entries, homophily with and without what chance contributes,
  and the mean degree;
- a table of the screening: 10 seeds and at most 100 epochs of each of the paper's
  eleven methods and of `mlp`, all seeds at once, compared over paired seeds;
- what the screening shows, in the words of `tempergat compare`: which methods cannot be
  told apart from the highest mean, the simplest of them, and whether any beats `mlp`.

The measurements use labels of training nodes only (homophily: training and validation
nodes), and methods are judged on validation nodes. Test nodes play no part. The tests
are over seeds on one split: a difference below the printed standard error may be due to
the choice of its validation nodes, which no number of seeds changes. All pairs of
methods are tested, Holm-corrected, as in `tempergat compare`.

## Would a pick be worth following?

The rule, fixed before it was tested: take the best of gcn, gat and gatv2, unless the
method with the highest mean in the screening is shown to be better than it (paired
t-tests of the paper's eleven methods with that one, Holm-corrected).

`tempergat reproduce diagnose` makes this page from
`results/diagnose/validation.csv`: {generated} of {planned} generated graphs of the
contextual block model with known noise (300 to 500 nodes; sigma 0.25 to 2, rho 0 to
0.6, tau 1 and 3, homophilic and heterophilic, 2 and 4 classes), and these datasets:
{datasets}. DBLP and IMDB are left out: they are heterogeneous, with several types of
nodes and edges, and `diagnose` takes homogeneous graphs only.

The screening had {runs} seeds and at most {epochs} epochs, fewer than the command uses;
longer screenings were not tested. The pick is judged by full runs of every method on
{reference} other seeds ({reference_epochs} epochs on generated graphs, the recipe's
number on datasets), scored on test nodes: is the picked method within noise of the best
one (Holm-corrected paired t-test), and how many points is it below it? The recipe of a
dataset is the paper's, or else `plain`, which has no residual.

{table}

p: Wilcoxon's signed-rank test over graphs, not corrected. The screening showed "no
difference" on {no_difference} of {graphs} graphs, where the pick is a plain method: so
few seeds have little power. "First in the screening" is another rule. It was looked at
afterwards, so that it does well here is weaker evidence. Against the three choices
named beforehand:

{sentences}

{verdict}
"""
