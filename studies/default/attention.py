"""Does attention beat gcn, and do edges beat none? By the rule of docs/default.md."""

from functools import cache

import pandas as pd

from studies.default.rule import chosen_of, runs, with_recipe
from studies.pages import markdown_table, p_value, signed
from studies.results import read_plan, read_runs
from tempergat.stats import holm, summarise, wilcoxon_p

_FAMILY = {g["name"]: g["family"] for g in read_plan("when")["real"]["graphs"]}
_WITHOUT_EDGES = read_plan("default")["without_edges"]
# The plan's contrasts, those corrected together in one line.
ATTENTION = ("gat-gcn", "gatv2-gcn")
EDGES = tuple(f"{method}-{_WITHOUT_EDGES}" for method in ("gcn", "gat", "gatv2"))


@cache
def by_graph() -> pd.DataFrame:
    """The points of every contrast by graph, with the chosen recipes."""
    without = with_recipe(read_runs(f"default/{_WITHOUT_EDGES}.csv"))
    scores = pd.concat([chosen_of(runs()), chosen_of(without)])["chosen"].unstack()
    pairs = {name: name.split("-") for name in (*ATTENTION, *EDGES)}
    return pd.DataFrame({name: scores[a] - scores[b] for name, (a, b) in pairs.items()})


@cache
def by_family() -> pd.DataFrame:
    """The same by family, the mean over its graphs."""
    return by_graph().groupby(_FAMILY.get).mean().round(9)


def within_a_point(contrast: str) -> str:
    """On how many graphs the two are within one point, `14 of 18`."""
    points = by_graph()[contrast]
    return f"{(points.abs() <= 1.0).sum()} of {len(points)}"


def points(contrast: str) -> str:
    """`-0.50`: the mean over families."""
    return signed(by_family()[contrast].mean(), 2)


def contrasts_over_families() -> str:
    """Every contrast over families, and the graphs on which it is largest."""
    rows = []
    for names in (ATTENTION, EDGES):
        p_values = holm([wilcoxon_p(by_family()[name]) for name in names])
        for name, p in zip(names, p_values, strict=True):
            on_graphs, found = by_graph()[name], summarise(by_family()[name])
            low, high = on_graphs.idxmin(), on_graphs.idxmax()
            rows.append(
                [
                    name.replace("-", " - "),
                    f"{points(name)} [{signed(found.low, 2)}, {signed(found.high, 2)}]",
                    p_value(p),
                    signed(on_graphs.mean(), 2),
                    signed(on_graphs.median(), 2),
                    str((on_graphs > 1.0).sum()),
                    within_a_point(name),
                    str((on_graphs < -1.0).sum()),
                    f"{signed(on_graphs[low])} ({low})",
                    f"{signed(on_graphs[high])} ({high})",
                ]
            )
    head = ["contrast", "mean over families", "p", "mean over graphs"]
    head += ["median of graphs", "better", "within a point", "worse"]
    return markdown_table([*head, "lowest", "highest"], rows)
