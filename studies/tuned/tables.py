"""Tables and numbers of docs/tuned.md."""

from functools import cache

import pandas as pd
from matplotlib.figure import Figure

from studies.pages import markdown_table, p_value, signed
from studies.results import read_csv, read_plan, read_runs, read_whole_runs
from studies.tuned.study import reported_seeds
from tempergat.base import joined
from tempergat.base.figures import COLOURS, MARKERS, new_figure, style
from tempergat.comparison.paper import BACKBONE_OF
from tempergat.comparison.report.formats import as_markdown
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tempergat.comparison.search import SPACE, setting_word
from tempergat.stats import PairedComparison, Summary, compare_pairs, summarise
from tempergat.training import Run

PAGE = "tuned"
PLAN = read_plan("tuned")
GRAPHS = list(PLAN["graphs"])
FIRST, *REPEATS = PLAN["searches"]
REPEATED = REPEATS[0]["graphs"]
FILE = "tuned/runs.csv"
# So many of the best trials show what a search might as well have chosen.
NEAR_BEST = 5

# The first search


@cache
def first_runs() -> list[Run]:
    """The reported runs of the first search, on all graphs."""
    runs = read_whole_runs(FILE)
    return [run for run in runs if run.seed in reported_seeds(FIRST)]


@cache
def result(graph: str) -> DatasetResult:
    """Scores and comparisons; Holm's correction covers the variants of the graph."""
    runs = [run for run in first_runs() if run.dataset == graph]
    return dataset_result(runs, PLAN["methods"], BACKBONE_OF)


@cache
def near_best(graph: str) -> pd.DataFrame:
    """The lowest and highest test mean of the best trials of each method.

    Trials that tie with the last of them count too.
    """
    seeds = range(FIRST["first_seed"], FIRST["first_seed"] + PLAN["seeds"])
    runs = read_runs(FILE)
    runs = runs[(runs["dataset"] == graph) & runs["seed"].isin(seeds)]
    trials = runs.groupby(["method", "config_hash"])[["val", "test"]].mean()
    found = {}
    for method, of_method in trials.groupby("method"):
        last = of_method["val"].nlargest(NEAR_BEST).iloc[-1]
        found[method] = of_method["test"][of_method["val"] >= last - 1e-9]
    return pd.DataFrame(found).agg(["min", "max"])


def scores(graph: str) -> str:
    """Every method against its backbone."""
    lines = as_markdown(result_table(result(graph))).splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def settings(graph: str) -> str:
    """The settings that each method's search chose."""
    names = list(SPACE)
    chosen = {run.method: run.config for run in first_runs() if run.dataset == graph}
    rows = [
        [
            method,
            *(setting_word(chosen[method][name]) for name in names),
            "{:.2f} to {:.2f}".format(*near_best(graph)[method]),
        ]
        for method in PLAN["methods"]
    ]
    return markdown_table(["method", *names, f"best {NEAR_BEST} trials, test"], rows)


def judged(*verdicts: str) -> list[tuple[str, PairedComparison]]:
    """The variants of the first search with one of the verdicts, and their graphs."""
    found = [
        (graph, one.comparison) for graph in GRAPHS for one in result(graph).results
    ]
    return [(graph, one) for graph, one in found if one and one.verdict in verdicts]


def apart() -> list[tuple[str, PairedComparison]]:
    """The differences in which the best trials lie fully apart in test accuracy."""
    found = []
    for graph, one in judged("better", "worse"):
        low, high = near_best(graph)[one.method]
        other_low, other_high = near_best(graph)[one.baseline]
        if low > other_high or high < other_low:
            found.append((graph, one))
    return found


def named(found: list[tuple[str, PairedComparison]]) -> list[str]:
    """`gated on cora +0.50` for each of the differences."""
    return [f"{c.method} on {graph} {signed(c.difference, 2)}" for graph, c in found]


# All searches


@cache
def repeats(graph: str) -> pd.DataFrame:
    """Test scores of the repeats: a row per method and repeat, a column per seed."""
    trials = read_csv("tuned/trials.csv")
    runs = read_runs("tuned/repeats.csv")
    runs = runs[runs["seed"].isin(reported_seeds(REPEATS[0]))]
    chosen = trials[trials["chosen"] & (trials["dataset"] == graph)]
    reported = chosen.merge(runs, on=["dataset", "method", "config_hash"])
    return reported.pivot(index=["method", "repeat"], columns="seed", values="test")


@cache
def means(graph: str) -> pd.DataFrame:
    """The mean test score of each method, a row, in each search, a column."""
    found = repeats(graph).mean(axis=1).unstack()
    found.insert(0, 0, {one.method: one.summary.mean for one in result(graph).results})
    return found.loc[PLAN["methods"]]


@cache
def over_searches(graph: str) -> dict[str, PairedComparison]:
    """Every variant against its backbone, with the searches as pairs."""
    pairs = means(graph).to_dict("index")
    against = {name: BACKBONE_OF[name] for name in pairs if name in BACKBONE_OF}
    return {one.method: one for one in compare_pairs(pairs, against)}


def in_each_search(graph: str, variant: str) -> list[float]:
    """The differences of a variant from its backbone."""
    first = result(graph)[variant].comparison
    further = repeats(graph).loc[variant] - repeats(graph).loc[BACKBONE_OF[variant]]
    return [first.difference, *further.to_numpy().mean(axis=1)]


def excludes_zero(over: PairedComparison) -> bool:
    """Whether the interval over the searches excludes 0."""
    return over.low > 0 or over.high < 0


def searches(graph: str) -> str:
    """The difference of each variant in every search, and over all of them."""
    rows = []
    for variant, over in over_searches(graph).items():
        found = in_each_search(graph, variant)
        same = sum((one > 0) == (over.difference > 0) for one in found)
        rows.append(
            [
                variant,
                *(signed(difference, 2) for difference in found),
                signed(over.difference, 2),
                interval(over),
                f"{same} of {len(found)}",
                p_value(over.t_p_holm),
                "yes" if excludes_zero(over) else "no",
            ]
        )
    further = [f"repeat {number}" for number in means(graph).columns[1:]]
    head = ["difference from backbone", "first search", *further, "mean"]
    head += ["95 % interval", "sign of the mean", "p, Holm", "excludes 0"]
    return markdown_table(head, rows)


def interval(found: PairedComparison | Summary) -> str:
    """The ends of a 95 % interval."""
    return f"{signed(found.low, 2)} to {signed(found.high, 2)}"


def surviving(*verdicts: str) -> list[tuple[str, PairedComparison]]:
    """The differences of the first search that survive, as means over the searches."""
    found = []
    for graph, one in judged(*verdicts):
        over = over_searches(graph)[one.method] if graph in REPEATED else None
        if over and excludes_zero(over) and over.difference * one.difference > 0:
            found.append((graph, over))
    return found


def survive(verdict: str) -> str:
    """How many of the gains or losses survive."""
    tested = [graph for graph, _ in judged(verdict) if graph in REPEATED]
    return f"{len(surviving(verdict))} of the {len(tested)}"


def alone(graph: str, variant: str) -> str:
    """The mean difference over the repeats alone, with its interval."""
    found = summarise(in_each_search(graph, variant)[1:])
    return f"{signed(found.mean, 2)} ({interval(found)})"


def between_searches(graph: str) -> str:
    """The standard deviation of a method's mean between searches."""
    return f"{means(graph).std(axis=1).median():.2f}"


def over_seeds(graph: str) -> str:
    """The standard error of a method's mean over the seeds of the first search."""
    found = [one.summary for one in result(graph).results]
    return f"{pd.Series([one.std / one.runs**0.5 for one in found]).median():.2f}"


def best(graph: str) -> str:
    """The method with the highest mean in any search."""
    highest = means(graph).max(axis=1)
    return f"{highest.idxmax()}, {highest.max():.2f}"


def gains() -> Figure:
    """Differences from the tuned backbone with 95 % intervals, a panel per graph."""
    first = {
        g: [r.comparison for r in result(g).results if r.comparison] for g in GRAPHS
    }
    series = {
        "first search": first,
        "mean over several searches": {
            graph: list(over_searches(graph).values()) for graph in REPEATED
        },
    }
    variants = [one.method for one in first[GRAPHS[0]]]
    with style():
        figure = new_figure(0.8 + 2.7 * len(GRAPHS), 1.2 + 0.32 * len(variants))
        panels = figure.subplots(1, len(GRAPHS), sharey=True)
        for axes, graph in zip(panels, GRAPHS, strict=True):
            axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
            for number, (name, found) in enumerate(series.items()):
                colour = COLOURS[2 * number + 1]
                for one in found.get(graph, ()):
                    height = variants.index(one.method) + 0.3 * number - 0.15
                    axes.plot([one.low, one.high], 2 * [height], color=colour)
                    axes.plot(
                        one.difference,
                        height,
                        marker=MARKERS[number],
                        markersize=4,
                        color=colour,
                        linestyle="none",
                        label=name,
                    )
            axes.set_yticks(range(len(variants)), labels=variants)
            axes.set_ylim(len(variants) - 0.5, -0.5)
            axes.set_xlabel("points over the backbone")
            axes.set_title(graph)
        lines, labels = panels[0].get_legend_handles_labels()
        handles = dict(zip(labels, lines, strict=True))
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=2
        )
    return figure


TABLES = {"scores": scores, "settings": settings, "searches": searches}
NUMBERS = {
    "survive": survive,
    "surviving": lambda: joined(named(surviving("better", "worse"))),
    "between_searches": between_searches,
    "over_seeds": over_seeds,
    "count": lambda *words: str(len(judged(" ".join(words)))),
    "judged": lambda verdict: ", ".join(named(judged(verdict))),
    "apart": lambda: f"{len(apart())} of these {len(judged('better', 'worse'))}",
    "named_apart": lambda: ", ".join(named(apart())),
    "best": best,
    "alone": alone,
}
FIGURES = {"tuned-gains": gains}
