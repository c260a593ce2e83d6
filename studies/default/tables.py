"""The tables, the numbers and the picture of docs/default.md."""

import json
from functools import cache

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from studies.pages import markdown_table, p_value, signed
from studies.results import read_plan, read_runs
from tempergat.base.figures import COLOURS, MARKERS, new_figure, style
from tempergat.stats import wilcoxon_p

PAGE = "default"
PLAN, WHEN = read_plan("default"), read_plan("when")
FAMILIES = {graph["name"]: graph["family"] for graph in WHEN["real"]["graphs"]}
METHODS = PLAN["methods"]
# The earlier default, and the others by their norm.
CELLS = {"earlier": PLAN["present"]} | {
    cell["norm"] or "no_norm": cell
    for cell in PLAN["candidates"] + PLAN["only_measured"]
}
CANDIDATES = [cell["norm"] or "no_norm" for cell in PLAN["candidates"]]


@cache
def runs() -> pd.DataFrame:
    """All runs with their cell, and whether they went wrong."""
    files = [f"default/{graph}.csv" for graph in FAMILIES]
    found = pd.concat([read_runs(file) for file in files])
    norm = found["norm"].fillna("no_norm")
    found["cell"] = norm.where(found["residual"].astype(bool), "earlier")
    medians = found.groupby(["dataset", "method", "cell"])["val"].transform("median")
    found["wrong"] = (
        (found["status"] != "done")
        | found["confusion"].fillna("[]").map(predicts_one_class)
        | (found["val"] < medians - PLAN["far_below"])
    )
    return found


def predicts_one_class(confusion: str) -> bool:
    """Whether one class is predicted for test nodes of several.

    Args:
        confusion: Counts by true and predicted class, or those that are not 0.
    """
    counts = json.loads(confusion)
    cells = counts["cells"] if isinstance(counts, dict) else np.argwhere(counts)
    return len({cell[1] for cell in cells}) == 1 < len({cell[0] for cell in cells})


@cache
def means(part: str) -> pd.DataFrame:
    """Mean scores: a row for every graph and method, a column for every cell."""
    found = runs().groupby(["dataset", "method", "cell"])[part].mean().unstack("cell")
    return found.reindex(pd.MultiIndex.from_product([FAMILIES, METHODS]))


@cache
def wrong_runs() -> pd.DataFrame:
    """How many runs go wrong: a row for every graph, a column for every cell."""
    return runs().groupby(["dataset", "cell"])["wrong"].sum().unstack("cell")


def graphs(where: str) -> list[str]:
    """All graphs, or those that use the default recipe: `all` or `used`."""
    without = PLAN["with_own_recipe"] if where == "used" else []
    return [graph for graph in FAMILIES if graph not in without]


def gains(cell: str) -> pd.Series:
    """Points over the earlier default by graph and method."""
    return means("test")[cell] - means("test")["earlier"]


def graph_gains(cell: str, where: str = "all") -> pd.Series:
    """The mean gain over methods, by graph."""
    return gains(cell).groupby(level=0).mean().loc[graphs(where)]


def family_gains(cell: str, where: str) -> pd.Series:
    """The mean gain of each family's graphs, the lowest first."""
    return graph_gains(cell, where).groupby(FAMILIES).mean().sort_values()


def ranks(where: str) -> pd.Series:
    """The average rank of each candidate in validation score; 1 is best.

    Averaged over methods, over the graphs of a family, and over families.
    """
    found = means("val")[CANDIDATES].rank(axis=1, ascending=False)
    found = found.groupby(level=0).mean().loc[graphs(where)]
    return found.groupby(FAMILIES).mean().mean()


def chosen() -> str:
    """The candidate with the best average rank over all graphs."""
    return ranks("all").idxmin()


def candidates() -> str:
    """Every cell, with its gains on the graphs that use the default."""
    notes = {"earlier": "the earlier default", chosen(): "chosen"}
    rows = []
    for name, cell in CELLS.items():
        measured = ["", "", ""]
        if name != "earlier":
            lowest = family_gains(name, "used").head(1)
            loss = f"{signed(lowest.iloc[0], 2)} ({lowest.index[0]})"
            measured = [gain(name, "used"), p(name, "used"), loss]
        average = rank(name, "all") if name in CANDIDATES else ""
        words = [setting_word(value) for value in cell.values()]
        rows.append([*words, average, *measured, wrong(name), notes.get(name, "")])
    head = ["average rank", "gain", "Wilcoxon p", "lowest gain", "runs that go wrong"]
    return markdown_table([*PLAN["present"], *head, ""], rows)


def setting_word(value: object) -> str:
    """`yes`, `none` or `0.005`."""
    return {True: "yes", False: "no", None: "none"}.get(value, str(value))


def scores() -> str:
    """Every graph with the earlier default and with the chosen candidate."""
    pair = ["earlier", chosen()]
    test, gained, wrong = means("test")[pair], graph_gains(chosen()), wrong_runs()[pair]
    rows = [
        [
            graph,
            *(f"{old:.2f} to {new:.2f}" for old, new in test.loc[graph].to_numpy()),
            signed(gained[graph], 2),
            "{} to {}".format(*wrong.loc[graph]),
        ]
        for graph in FAMILIES
    ]
    return markdown_table(["graph", *METHODS, "gain", "go wrong"], rows)


def gain(cell: str, where: str) -> str:
    """The mean gain over families."""
    return signed(family_gains(cell, where).mean(), 2)


def p(cell: str, where: str) -> str:
    """Wilcoxon's test of the gains of families."""
    return p_value(wilcoxon_p(family_gains(cell, where)))


def lowest_family(cell: str) -> str:
    """The family with the lowest gain, of the graphs that use the default."""
    lowest = family_gains(cell, "used").head(1)
    return f"{lowest.index[0]} ({signed(lowest.iloc[0], 2)})"


def lowest_method(cell: str) -> str:
    """The lowest gain of a single baseline."""
    graph, method = gains(cell).idxmin()
    return f"{method} on {graph}: {signed(gains(cell).min(), 2)}"


def losses(kind: str, cell: str) -> str:
    """The graphs that lose, or the families of those that use the default."""
    found = family_gains(cell, "used") if kind == "families" else graph_gains(cell)
    lost = found[found < 0].sort_values()
    return ", ".join(f"{name} {signed(value, 2)}" for name, value in lost.items())


def rank(cell: str, where: str) -> str:
    """The average rank of a candidate."""
    return f"{ranks(where)[cell]:.2f}"


def wrong(cell: str) -> str:
    """How many runs go wrong on the graphs that use the default."""
    return str(wrong_runs()[cell][graphs("used")].sum())


def gains_by_graph() -> Figure:
    """The gain of the chosen candidate: a row for every graph, by falling gain."""
    order = graph_gains(chosen()).sort_values(ascending=False).index
    points = gains(chosen()).unstack()
    with style():
        figure = new_figure(6.4, 1.2 + 0.26 * len(order))
        axes = figure.subplots()
        axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
        for number, method in enumerate(METHODS):
            axes.plot(
                points.loc[order, method],
                range(len(order)),
                marker=MARKERS[number],
                markersize=5,
                color=COLOURS[number + 1],
                linestyle="none",
                label=method,
            )
        axes.set_yticks(range(len(order)), labels=order)
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_xlabel("gain over the earlier default, points")
        axes.legend(loc="lower right")
    return figure


TABLES = {"candidates": candidates, "scores": scores}
NUMBERS = {
    "gain": gain,
    "p": p,
    "lowest_family": lowest_family,
    "lowest_method": lowest_method,
    "losses": losses,
    "rank": rank,
    "wrong": wrong,
}
FIGURES = {"default-second": gains_by_graph}
