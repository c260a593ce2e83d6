"""The table, the numbers and the picture of docs/diagnose.md."""

from functools import cache

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import binomtest, wilcoxon

from studies.pages import markdown_table, p_value
from studies.results import read_csv
from tempergat.base.figures import COLOURS, new_figure, style
from tempergat.comparison.paper import PAPER_METHODS
from tempergat.stats import ALPHA, holm

PAGE = "diagnose"
PICK = "the pick"
# The choices that the pick has to beat, named beforehand.
RIVALS = [f"always {method}" for method in ("gat", "gatv2", "temp_gated")]


def rows() -> pd.DataFrame:
    """A row for each graph and method."""
    return read_csv("diagnose/validation.csv")


@cache
def choices() -> pd.DataFrame:
    """How every way of choosing a method did over the graphs, the pick first.

    Columns are `within` (graphs where the method is within noise of the best one),
    `below` (points below the best one, mean over graphs), `more` (that minus the
    pick's) and `p` (Wilcoxon's signed-rank test of the difference).
    """
    table = rows()
    chosen = {
        PICK: table[table["is_pick"]],
        "first in the screening": table[table["is_first_in_screening"]],
    } | {f"always {m}": table[table["method"] == m] for m in PAPER_METHODS}
    of_pick = chosen[PICK]["below_best"].to_numpy()
    found = {}
    for name, of_choice in chosen.items():
        assert list(of_choice["graph"]) == list(chosen[PICK]["graph"])
        below = of_choice["below_best"].to_numpy()
        found[name] = {
            "within": of_choice["within_noise_of_best"].sum(),
            "below": below.mean(),
            "more": (below - of_pick).mean(),
            "p": np.nan if name == PICK else wilcoxon(below - of_pick).pvalue,
        }
    return pd.DataFrame.from_dict(found, orient="index").astype({"within": int})


@cache
def rival_ps() -> dict[str, float]:
    """The Holm-corrected p of the rivals."""
    return dict(zip(RIVALS, holm(choices()["p"][RIVALS].to_list()), strict=True))


def choice_table() -> str:
    """All ways of choosing a method."""
    count = int(graphs())
    cells = []
    for name, of in choices().iterrows():
        share = binomtest(of["within"].astype(int), count).proportion_ci(
            method="wilson"
        )
        cells.append(
            [
                str(name),
                f"{of['within']:.0f} of {count}",
                f"{100 * share.low:.0f} to {100 * share.high:.0f} %",
                f"{of['below']:.2f}",
                f"{of['more']:+.2f}",
                "-" if name == PICK else p_value(of["p"]),
            ]
        )
    head = ["choice", "within noise", "95 % interval", "points below best"]
    return markdown_table([*head, "minus the pick's", "p"], cells)


def graphs() -> str:
    """The number of graphs."""
    return str(rows()["graph"].nunique())


def no_difference() -> str:
    """The number of graphs where the screening shows no difference."""
    picks = rows()[rows()["is_pick"]]
    return str((picks["finding"] == "no difference").sum())


def generated() -> str:
    """The number of graphs that were drawn."""
    return str(rows().dropna(subset=["sigma"])["graph"].nunique())


def below(method: str = "") -> str:
    """Points of a method, or of the pick, below the best one, mean over graphs."""
    choice = f"always {method}" if method else PICK
    return f"{choices().loc[choice, 'below']:.2f}"


def points(method: str) -> str:
    """Points between the pick and a method, mean over graphs."""
    return f"{abs(choices().loc[f'always {method}', 'more']):.2f}"


def corrected_p(method: str) -> str:
    """The Holm-corrected p of the difference between the pick and a rival."""
    return p_value(rival_ps()[f"always {method}"])


def beaten() -> str:
    """How many rivals the pick beats."""
    more = choices()["more"]
    return str(sum(p < ALPHA and more[rival] > 0 for rival, p in rival_ps().items()))


def choices_figure() -> Figure:
    """Bars: points below the best method, mean over graphs."""
    below = choices()["below"].sort_values(kind="stable")
    with style():
        figure = new_figure(6.4, 1.0 + 0.24 * len(below))
        axes = figure.subplots()
        colours = [COLOURS[2] if name == PICK else COLOURS[1] for name in below.index]
        axes.barh(range(len(below)), below.to_list(), color=colours)
        axes.set_yticks(range(len(below)), labels=below.index)
        axes.invert_yaxis()
        axes.set_xlabel("points below the best method, mean over graphs")
        return figure


TABLES = {"choices": choice_table}
NUMBERS = {
    "graphs": graphs,
    "no_difference": no_difference,
    "generated": generated,
    "below": below,
    "points": points,
    "p": corrected_p,
    "beaten": beaten,
}
FIGURES = {"diagnose-choices": choices_figure}
