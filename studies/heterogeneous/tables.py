"""Tables and numbers of docs/heterogeneous.md, from the rows of the proxy."""

from functools import cache
from statistics import fmean

import pandas as pd
from matplotlib.figure import Figure

from studies.heterogeneous.study import INDICES, ON_PAGE, PROXY
from studies.homogeneous import beside
from studies.homogeneous.beside import FIRST_RULE, RULES
from studies.homogeneous.tables import mean_interval, with_interval
from studies.pages import markdown_table
from studies.results import read_csv, read_runs
from tempergat.base.figures import COLOURS, new_figure, style
from tempergat.comparison.paper import BACKBONE_OF, HETEROGENEOUS, PAPER_METHODS
from tempergat.comparison.report.formats import mean_and_std, p_value, signed
from tempergat.data import CATALOG
from tempergat.stats import Summary

PAGE = "heterogeneous"
METHODS = (*PROXY["more_methods"], *PAPER_METHODS)
GROUPS = {"gated variants": beside.GATED, "temperature alone": beside.ALONE}


def runs_on(graph: str) -> pd.DataFrame:
    """The runs on a graph of the proxy."""
    return read_runs("heterogeneous/runs.csv").query("dataset == @graph")


@cache
def scores(graph: str, rule: str = FIRST_RULE) -> pd.DataFrame:
    """Test scores in percent: a row for each seed, a column for each method."""
    runs = runs_on(graph)
    found = runs.pivot(index="seed", columns="method", values=f"{rule}_test")
    return 100.0 * found[list(METHODS)]


def methods() -> str:
    """The accuracy of each method and its gain over its backbone."""
    rows = []
    for method in METHODS:
        row = [method]
        for graph in ON_PAGE:
            found = scores(graph)[method]
            row.append(mean_and_std(found.mean(), found.std()))
            row.append(_gain(graph, method) if method in BACKBONE_OF else "")
        rows.append(row)
    head = [cell for graph in ON_PAGE for cell in (graph, "gain (95 % interval), p")]
    return markdown_table(["method", *head], rows)


def _gain(graph: str, method: str) -> str:
    gain = beside.gains(scores(graph))[method]
    shown = with_interval(gain.difference, gain.low, gain.high)
    return f"{shown}, {p_value(gain.t_p_holm)}"


def group_gain(graph: str, group: str, rule: str = FIRST_RULE) -> Summary:
    """The average gain of a group of variants on a graph."""
    return beside.average_gain(scores(graph, rule), GROUPS[group])


def groups() -> str:
    """The average gain of both groups on each graph, under each selection rule."""
    rows = [
        [group, graph, *(mean_interval(group_gain(graph, group, r)) for r in RULES)]
        for group in GROUPS
        for graph in ON_PAGE
    ]
    return markdown_table(["variants", "graph", *RULES.values()], rows, words=2)


def answer(group: str) -> str:
    """Whether the paper's gains of a group reappear by proxy, by the plan's rule."""
    found = [group_gain(graph, group.replace("_", " ")) for graph in ON_PAGE]
    gained = sum(one.low > 0.0 for one in found)
    if gained == len(found):
        return "reappear"
    lost = any(one.high < 0.0 for one in found)
    return "reappear in part" if gained and not lost else "do not reappear"


def graphs() -> str:
    """How heterophilic each graph is, and the paper's average gains on it."""
    ours = read_csv(INDICES).set_index("dataset")
    rows = []
    for graph in (*ON_PAGE, *HETEROGENEOUS):
        entry = CATALOG[graph]
        row = [graph, f"{entry.num_nodes:,}", _index(entry.h2_index)]
        row += [_index(ours[way].get(graph)) for way in ("left out", "random")]
        for variants in GROUPS.values():
            in_paper = graph in beside.PAPER
            gains = [beside.paper_gain(graph, m) for m in variants if in_paper]
            row.append(signed(fmean(gains)) if gains else "-")
        rows.append(row)
    head = ["graph", "nodes", "H2Index in the paper", "ours, unlabelled left out"]
    head += ["ours, random class", *(f"the paper's gain, {group}" for group in GROUPS)]
    return markdown_table(head, rows)


def _index(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def gains_figure() -> Figure:
    """The gain of each variant over its backbone with its interval."""
    with style():
        figure = new_figure(7.2, 2.6)
        panels = figure.subplots(1, len(ON_PAGE), sharex=True, sharey=True)
        for axes, graph in zip(panels, ON_PAGE, strict=True):
            for row, (method, gain) in enumerate(beside.gains(scores(graph)).items()):
                colour = COLOURS[3] if method in beside.GATED else COLOURS[2]
                is_shown = gain.verdict in ("better", "worse")
                axes.plot([gain.low, gain.high], [row, row], color=colour, linewidth=1)
                axes.plot(
                    gain.difference,
                    row,
                    color=colour,
                    marker="o" if method in beside.GATED else "s",
                    markerfacecolor=colour if is_shown else "white",
                )
            axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
            axes.set_yticks(range(len(BACKBONE_OF)), labels=list(BACKBONE_OF))
            axes.set_ylim(len(BACKBONE_OF) - 0.5, -0.5)
            axes.set_xlabel("gain over the backbone, points")
            axes.set_title(graph)
    return figure


def gain(part: str, group: str, graph: str) -> str:
    """The `mean`, `low` or `high` end of the average gain of a group on a graph."""
    return signed(getattr(group_gain(graph, group.replace("_", " ")), part))


def above(graph: str, method: str, other: str) -> str:
    """How far the mean of one method is above another's, in points."""
    found = scores(graph)
    return f"{found[method].mean() - found[other].mean():.1f}"


def verdicts(verdict: str) -> str:
    """How many variants have a verdict, over both graphs."""
    found = [g for graph in ON_PAGE for g in beside.gains(scores(graph)).values()]
    return str(sum(one.verdict == verdict for one in found))


def runs(what: str) -> str:
    """How many runs there are, how many failed, or the seconds that all took."""
    found = pd.concat([runs_on(graph) for graph in ON_PAGE])
    counts = {
        "all": len(found),
        "failed": (found["status"] != "done").sum(),
        "seconds": found["time_s"].sum(),
    }
    return f"{counts[what]:,.0f}" if counts[what] else "none"


TABLES = {"methods": methods, "groups": groups, "graphs": graphs}
NUMBERS = {
    "answer": answer,
    "gain": gain,
    "above": above,
    "verdicts": verdicts,
    "contrasts": lambda: str(len(ON_PAGE) * len(BACKBONE_OF)),
    "index": lambda graph: (
        f"{read_csv(INDICES).set_index('dataset')['left out'][graph]:.2f}"
    ),
    "runs": runs,
}
FIGURES = {"proxy-gains": gains_figure}
