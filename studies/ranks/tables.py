"""Tables, numbers and figures of docs/ranks.md."""

from functools import cache, partial

from matplotlib.figure import Figure

from studies.pages import markdown_table
from tempergat.comparison.paper import (
    BACKBONE_OF,
    HETEROGENEOUS,
    HOMOGENEOUS,
    read_paper,
)
from tempergat.comparison.report.figures import ranks_figure
from tempergat.comparison.report.formats import p_value, percent, signed
from tempergat.stats import ALPHA, RankTable, Welch, average_ranks, welch

PAGE = "ranks"
PAPER = read_paper()
DATASETS = {
    "all": (*HOMOGENEOUS, *HETEROGENEOUS),
    "homogeneous": HOMOGENEOUS,
    "heterogeneous": HETEROGENEOUS,
}
TITLES = {
    "all": "The paper, both tables",
    "homogeneous": "The paper, homogeneous",
    "heterogeneous": "The paper, heterogeneous",
}


@cache
def ranked(which: str) -> RankTable:
    """The methods ranked by the paper's means."""
    return average_ranks(
        {
            dataset: {method: cell.mean for method, cell in PAPER[dataset].items()}
            for dataset in DATASETS[which]
        }
    )


def ranks(which: str) -> str:
    """The rank of each method on each dataset, best average first."""
    found = ranked(which)
    rows = [
        [method, f"{average:.2f}", *(f"{of[method]:g}" for of in found.ranks.values())]
        for method, average in found.average.items()
    ]
    return markdown_table(["method", "average", *found.datasets], rows)


def shown_better(which: str) -> str:
    """The methods that are more than a critical difference ahead of others."""
    found = ranked(which)
    parts = []
    for better, rank in found.average.items():
        ahead = {m: other - rank for m, other in found.average.items()}
        worse = [m for m, gap in ahead.items() if gap > found.critical_difference]
        if worse:
            parts.append(f"{better} ({rank:.2f}) than {', '.join(worse)}")
    return "; ".join(parts)


@cache
def tests_below() -> dict[tuple[str, str], Welch]:
    """Welch's test of each variant whose mean is below its backbone's in the paper."""
    found = {}
    for dataset in DATASETS["all"]:
        for method, backbone in BACKBONE_OF.items():
            pair = [PAPER[dataset][name] for name in (method, backbone)]
            test = welch(*((cell.mean, cell.std, cell.runs) for cell in pair))
            if test.difference < 0.0:
                found[dataset, method] = test
    return found


def below() -> str:
    """The variants below their backbones."""
    rows = [
        [
            dataset,
            method,
            BACKBONE_OF[method],
            signed(test.difference),
            signed(test.in_standard_errors, 1),
            p_value(test.p),
        ]
        for (dataset, method), test in tests_below().items()
    ]
    head = ["dataset", "variant", "backbone", "difference", "standard errors", "p"]
    return markdown_table(head, rows)


def figure(which: str) -> Figure:
    """The average ranks on a line."""
    title = f"{TITLES[which]}: average rank on {len(DATASETS[which])} datasets"
    return ranks_figure(title, ranked(which))


def compared() -> int:
    """How many cells compare a variant with its backbone."""
    return len(DATASETS["all"]) * len(BACKBONE_OF)


TABLES = {"ranks": ranks, "below": below}
NUMBERS = {
    "critical": lambda which: f"{ranked(which).critical_difference:.2f}",
    "friedman_p": lambda which: p_value(ranked(which).friedman_p),
    "shown_better": shown_better,
    "compared": lambda: str(compared()),
    "count_below": lambda: str(len(tests_below())),
    "share_below": lambda: percent(100 * len(tests_below()) / compared(), 0),
    "clearly_below": lambda: str(sum(t.p < ALPHA for t in tests_below().values())),
}
FIGURES = {f"ranks-paper-{which}": partial(figure, which) for which in DATASETS}
