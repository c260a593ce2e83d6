"""Tables, numbers and the figure of docs/ranks.md."""

from collections.abc import Mapping
from functools import cache

from matplotlib.figure import Figure

from studies.homogeneous import beside
from studies.pages import markdown_table
from studies.results import read_runs
from tempergat.base.figures import COLOURS, new_figure, style
from tempergat.comparison.paper import (
    BACKBONE_OF,
    HETEROGENEOUS,
    HOMOGENEOUS,
    PAPER_METHODS,
    read_paper,
)
from tempergat.comparison.report.formats import p_value, signed
from tempergat.nn import METHODS
from tempergat.stats import (
    ALPHA,
    RankTable,
    Welch,
    average_ranks,
    welch,
)

PAGE = "ranks"
PAPER = read_paper()
# What is ranked by the paper's means, and its name in tables and above a panel.
IN_PAPER = {
    "all": ("the paper", (*HOMOGENEOUS, *HETEROGENEOUS)),
    "homogeneous": ("the paper's Figure 2", HOMOGENEOUS),
    "heterogeneous": ("the paper's Figure 3", HETEROGENEOUS),
    "trained": ("the paper", beside.DATASETS),
}
OURS = {rule: f"ours by {words}" for rule, words in beside.RULES.items()}
PROXY = "proxy"
RANKINGS = (*IN_PAPER, *OURS, PROXY)
KINDS = {
    (None, "layer"): "temperature alone",
    ("post", None): "gate after attention",
    ("post", "layer"): "temperature, gate after attention",
    ("first", "layer"): "gate before attention, temperature",
}


@cache
def ranked(which: str) -> RankTable:
    """The methods ranked by means: the paper's, ours under a rule, or the proxy's."""
    return average_ranks(_means(which))


def _means(which: str) -> Mapping[str, Mapping[str, float]]:
    if which in OURS:
        return {d: beside.scores(d, which).mean().to_dict() for d in beside.DATASETS}
    if which == PROXY:
        runs = read_runs("heterogeneous/runs.csv")
        runs = runs[runs["method"].isin(PAPER_METHODS)]
        return runs.pivot_table("test", "dataset", "method").T.to_dict()
    datasets = IN_PAPER[which][1]
    return {d: {m: cell.mean for m, cell in PAPER[d].items()} for d in datasets}


def title(which: str) -> str:
    """What is ranked, and over how many datasets."""
    words = {name: words for name, (words, _) in IN_PAPER.items()}
    words |= {**OURS, PROXY: "the proxy of Figure 3"}
    return f"{words[which]}, {len(ranked(which).datasets)} datasets"


def ranks() -> str:
    """The average rank of each method in every ranking, best in the paper first."""
    tables = [ranked(which) for which in RANKINGS]
    rows = [
        [method, *(f"{table.average[method]:.2f}" for table in tables)]
        for method in ranked("all").average
    ]
    return markdown_table(["method", *map(title, RANKINGS)], rows)


def rankings() -> str:
    """The critical difference of every ranking, and what it shows."""
    rows = []
    for which in RANKINGS:
        found = ranked(which)
        critical = f"{found.critical_difference:.2f}"
        p = p_value(found.friedman_p)
        rows.append([title(which), critical, p, shown_better(found)])
    head = ["ranking", "critical difference", "Friedman's p", "shown to be better"]
    return markdown_table(head, rows)


def shown_better(found: RankTable) -> str:
    """The methods that are more than a critical difference ahead of others."""
    better: dict[tuple[str, ...], list[str]] = {}
    for method, rank in found.average.items():
        ahead = {
            m
            for m, other in found.average.items()
            if rank - other > found.critical_difference
        }
        if ahead:
            in_order = tuple(m for m in found.average if m in ahead)
            better.setdefault(in_order, []).append(method)
    parts = [f"{', '.join(a)} over {', '.join(b)}" for a, b in better.items()]
    return "; ".join(parts) or "none"


@cache
def tests() -> dict[tuple[str, str], Welch]:
    """Welch's test of each variant against its backbone in the paper's tables."""
    found = {}
    for dataset in IN_PAPER["all"][1]:
        for method, backbone in BACKBONE_OF.items():
            pair = [PAPER[dataset][name] for name in (method, backbone)]
            test = welch(*((cell.mean, cell.std, cell.runs) for cell in pair))
            found[dataset, method] = test
    return found


def below(kind: str = "") -> dict[tuple[str, str], Welch]:
    """The tests of variants, or those of one kind, whose mean is the lower one."""
    return {
        (dataset, method): test
        for (dataset, method), test in tests().items()
        if test.difference < 0.0 and kind in ("", kind_of(method))
    }


def kind_of(method: str) -> str:
    """Which parts a variant has."""
    return KINDS[METHODS[method].gate, METHODS[method].temperature]


def differences() -> str:
    """Every variant's mean minus its backbone's; clear ones below are marked."""
    datasets = IN_PAPER["all"][1]
    rows = []
    for method in BACKBONE_OF:
        of_method = [tests()[dataset, method] for dataset in datasets]
        marks = [
            "†" if one.difference < 0 and one.p < ALPHA else "" for one in of_method
        ]
        cells = [
            f"{signed(one.difference)}{mark}"
            for one, mark in zip(of_method, marks, strict=True)
        ]
        rows.append([method, *cells])
    return markdown_table(["variant", *datasets], rows)


def kinds() -> str:
    """For each kind of variant, how often it is below and above its backbone."""
    rows = []
    for kind in KINDS.values():
        every = [test for (_, m), test in tests().items() if kind_of(m) == kind]
        clear = [test.difference for test in every if test.p < ALPHA]
        counts = [len(every), len(below(kind)), sum(one < 0.0 for one in clear)]
        rows.append([kind, *map(str, [*counts, sum(one > 0.0 for one in clear)])])
    head = ["variants", "cells", "below", "clearly below", "clearly above"]
    return markdown_table(head, rows)


def figure() -> Figure:
    """Average ranks in the paper and here, with the critical difference of each."""
    panels = ["homogeneous", "heterogeneous", "trained", beside.FIRST_RULE]
    methods = list(ranked("all").average)
    with style():
        drawn = new_figure(9.0, 3.9)
        for axes, which in zip(drawn.subplots(1, 4, sharey=True), panels, strict=True):
            found = ranked(which)
            best = min(found.average.values())
            reach = best + found.critical_difference
            axes.axvspan(best, reach, color="#E4E4E4", zorder=0)
            values = [found.average[method] for method in methods]
            colour = COLOURS[2] if which in OURS else COLOURS[3]
            axes.plot(values, range(len(methods)), "o", color=colour, markersize=5)
            axes.set_xlim(0.5, len(methods) + 0.5)
            axes.set_xticks(range(1, len(methods) + 1, 2))
            axes.set_yticks(range(len(methods)), labels=methods)
            axes.set_ylim(len(methods) - 0.5, -0.5)
            axes.set_xlabel("average rank")
            words = "ours" if which in OURS else IN_PAPER[which][0]
            axes.set_title(f"{words},\n{len(found.datasets)} datasets")
    return drawn


TABLES = {
    "ranks": ranks,
    "rankings": rankings,
    "kinds": kinds,
    "differences": differences,
}
NUMBERS = {
    "datasets": lambda which: str(len(ranked(which).datasets)),
    "critical": lambda which: f"{ranked(which).critical_difference:.2f}",
    "compared": lambda: str(len(tests())),
    "count_below": lambda: str(len(below())),
}
FIGURES = {"ranks": figure}
