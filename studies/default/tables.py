"""The tables, the numbers and the picture of docs/default.md."""

from matplotlib.figure import Figure

from studies.default import attention
from studies.default.rule import METHODS, RECIPES, runs, scores_of
from studies.default.study import REAL
from studies.pages import markdown_table, signed
from tempergat.base.figures import COLOURS, MARKERS, new_figure, style

PAGE = "default"


def scores(kind: str) -> str:
    """Every graph: means over methods, and the method that is furthest behind."""
    rows = []
    for graph, of_graph in scores_of(kind).groupby(level=0, sort=False):
        gain = of_graph["default"] - of_graph["plain"]
        last = of_graph["behind"].idxmax()[1]
        means = of_graph[[*RECIPES, "chosen"]].mean()
        behind = max(of_graph["behind"].max(), 0.0)
        rows.append(
            [
                str(graph),
                *(f"{mean:.2f}" for mean in means),
                signed(gain.mean(), 2),
                f"{of_graph['share'].mean():.0f} %",
                f"{behind:.2f}" + (f" ({last})" if behind >= 0.005 else ""),
            ]
        )
    rows.sort(key=lambda row: float(row[4]))
    head = ["graph", *RECIPES, "chosen", "gain", "chose default", "behind the better"]
    return markdown_table(head, rows)


def mean(recipe: str, kind: str = "real") -> str:
    """The mean test score over all graphs and methods."""
    return f"{scores_of(kind)[recipe].mean():.2f}"


def gain(which: str) -> str:
    """The highest gain of `default` over `plain` on a graph, or the largest loss."""
    gains = (scores_of()["default"] - scores_of()["plain"]).groupby(level=0).mean()
    return f"{gains.max():.1f}" if which == "highest" else f"{-gains.min():.1f}"


def behind(which: str, kind: str = "real") -> str:
    """How far the chosen recipe is behind the better of the two in hindsight.

    Args:
        which: `mean`, `most`, `where`, the method and graph with the most, or `near`,
            how many of them are at most half a point behind.
        kind: Real or generated graphs.
    """
    points = scores_of(kind)["behind"]
    if which == "near":
        return f"{(points <= 0.5).sum()} of {len(points)}"
    if which == "where":
        graph, method = points.idxmax()
        return f"{method} on {graph}"
    return f"{points.mean() if which == 'mean' else points.max():.2f}"


def count() -> str:
    """The number of graphs."""
    return str(len(REAL))


def cost() -> str:
    """The time of all runs beside that of those with `default` alone."""
    times = runs().groupby("recipe")["time_s"].sum()
    return f"{times.sum() / times['default']:.1f}"


def gains_by_graph() -> Figure:
    """What residual and norm bring: a row for every graph, by falling gain."""
    points = (scores_of()["default"] - scores_of()["plain"]).unstack()
    order = points.mean(axis=1).sort_values(ascending=False).index
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
        axes.set_xlabel("default minus plain, points")
        axes.legend(loc="lower right")
    return figure


TABLES = {"scores": scores, "attention": attention.contrasts_over_families}
NUMBERS = {
    "contrast": attention.points,
    "within": attention.within_a_point,
    "mean": mean,
    "gain": gain,
    "behind": behind,
    "cost": cost,
    "count": count,
}
FIGURES = {"residual-and-norm": gains_by_graph}
