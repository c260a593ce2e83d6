"""Tables, numbers and the figure of docs/complementarity.md."""

from functools import cache

import pandas as pd
from matplotlib.figure import Figure

from studies.complementarity.study import GRAPHS, PLAN, condition_of
from studies.pages import markdown_table, p_value, signed
from studies.results import read_runs
from tempergat.base.figures import COLOURS, MARKERS, new_figure, style
from tempergat.nn import METHODS
from tempergat.stats import (
    ALPHA,
    PairedComparison,
    compare_pairs,
    equivalence_p,
    summarise,
)

PAGE = "complementarity"
LEVELS = tuple(PLAN["levels"])
BACKBONES = ("gat", "gatv2")
# What a method has, by its temperature and its gate.
PARTS = {
    (None, None): "none",
    (None, "post"): "gate",
    ("layer", None): "temperature",
    ("layer", "post"): "both",
}
# The planned contrasts, those corrected together in one line.
PREMISE = ("gate-none", "temperature-none")
PRIMARY = ("interaction",)
BETTER = ("both-gate", "both-temperature")
NOT_PLANNED = ("both-none",)
SELECTED, BEST_LOSS = "best_val_accuracy", "best_val_loss"


@cache
def runs() -> pd.DataFrame:
    """The runs of the datasets that lack none, with the names of level and parts."""
    found = read_runs("complementarity/runs.csv")
    asked = len(PLAN["methods"]) * (
        len(LEVELS) * PLAN["seeds"] + PLAN["seeds_without_noise"]
    )
    done = found.groupby("dataset")["test"].transform("count")
    found = found[done == asked].copy()
    conditions = {condition_of(name): name for name in LEVELS}
    names = {(c.level, c.tau, c.sigma): name for c, name in conditions.items()}
    keys = found[["level", "tau", "sigma"]].itertuples(index=False, name=None)
    found["noise_level"] = [names.get(key, "none") for key in keys]
    methods = [METHODS[name] for name in found["method"]]
    found["backbone"] = [method.backbone for method in methods]
    found["part"] = [PARTS[method.temperature, method.gate] for method in methods]
    return found


@cache
def scores(rule: str = SELECTED) -> pd.DataFrame:
    """Test accuracy in points by where it was measured, with a column for each part."""
    where = ["dataset", "noise_level", "backbone", "seed"]
    return 100.0 * runs().pivot(index=where, columns="part", values=f"{rule}_test")


@cache
def contrasts(rule: str = SELECTED) -> pd.DataFrame:
    """Every contrast, by where it was measured."""
    by = scores(rule)
    interaction = by["both"] - by["gate"] - by["temperature"] + by["none"]
    pairs = (name.split("-") for name in (*PREMISE, *BETTER, *NOT_PLANNED))
    differences = {f"{a}-{b}": by[a] - by[b] for a, b in pairs}
    return pd.DataFrame({"interaction": interaction, **differences})


def by_seed(
    contrast: str,
    rule: str = SELECTED,
    level: str | None = None,
    **where: str,
) -> pd.Series:
    """A contrast by seed: the mean over the levels with noise and all else.

    Args:
        contrast: Its name.
        rule: The rule by which epochs are selected.
        level: This level alone.
        where: This dataset or backbone alone.
    """
    values = contrasts(rule)[contrast]
    for name, value in where.items():
        values = values.xs(value, level=name, drop_level=False)
    of_level = values.index.get_level_values("noise_level")
    chosen = of_level.isin([level] if level else LEVELS)
    return values[chosen].groupby("seed").mean()


def compared(names: tuple[str, ...], rule: str = SELECTED) -> list[PairedComparison]:
    """Contrasts tested against none; Holm's correction covers all that are named."""
    values = {name: by_seed(name, rule).to_dict() for name in names}
    none = dict.fromkeys(values[names[0]], 0.0)
    return compare_pairs({**values, "none": none}, dict.fromkeys(names, "none"))


def verdict(test: PairedComparison) -> str:
    """What the plan calls a contrast: above or below zero, no difference, or open."""
    # Both of the last two must hold, so neither is corrected.
    p = test.t_p if test.method in BETTER else test.t_p_holm
    if p < ALPHA:
        return "above zero" if test.difference > 0 else "below zero"
    values = (test.difference, test.standard_error, test.pairs - 1)
    return "no difference" if equivalence_p(*values, PLAN["margin"]) < ALPHA else "open"


def interval(values: pd.Series) -> str:
    """`+0.08 [-0.28, +0.43]`: the mean and its 95 % interval."""
    found = summarise(values)
    ends = f"[{signed(found.low, 2)}, {signed(found.high, 2)}]"
    return f"{signed(found.mean, 2)} {ends}"


def planned() -> str:
    """The planned tests in the plan's order, one more, and what each dataset has."""
    rows = []
    for names in (PREMISE, PRIMARY, BETTER, NOT_PLANNED):
        by_loss = compared(names, BEST_LOSS)
        for test, other in zip(compared(names), by_loss, strict=True):
            name = test.method
            p = test.t_p if names == BETTER else test.t_p_holm
            on_each = [interval(by_seed(name, dataset=dataset)) for dataset in GRAPHS]
            words = name.replace("-", " - ")
            loss = f"{signed(other.difference, 2)}, {verdict(other)}"
            pooled = interval(by_seed(name))
            rows.append([words, pooled, p_value(p), verdict(test), *on_each, loss])
    head = ["contrast", "points", "p", "verdict", *GRAPHS, "by validation loss"]
    return markdown_table(head, rows)


def interactions() -> str:
    """The interaction by dataset, backbone and level."""
    rows = []
    for dataset in GRAPHS:
        for backbone in BACKBONES:
            where = {"dataset": dataset, "backbone": backbone}
            cells = [
                interval(by_seed("interaction", level=level, **where))
                for level in ("none", *LEVELS)
            ]
            rows.append([dataset, backbone, *cells])
    return markdown_table(["dataset", "backbone", "no noise", *LEVELS], rows, 2)


def accuracy() -> str:
    """Mean test accuracy of every part by dataset, level and backbone."""
    means = scores().groupby(["dataset", "noise_level", "backbone"]).mean()
    rows = []
    for dataset in GRAPHS:
        for level in ("none", *LEVELS):
            cells = [
                f"{means.loc[(dataset, level, backbone), part]:.2f}"
                for backbone in BACKBONES
                for part in PARTS.values()
            ]
            rows.append([dataset, "no noise" if level == "none" else level, *cells])
    head = [f"{name}: {part}" for name in BACKBONES for part in PARTS.values()]
    return markdown_table(["dataset", "level", *head], rows, 2)


def points(contrast: str, dataset: str | None = None) -> str:
    """`+0.08`: a contrast's mean over all datasets, or on one."""
    where = {"dataset": dataset} if dataset else {}
    return signed(by_seed(contrast, **where).mean(), 2)


def count(what: str) -> str:
    """How many runs there are, or seeds with noise."""
    return f"{len(runs()):,}" if what == "runs" else str(len(by_seed("interaction")))


def sums_of_parts() -> Figure:
    """What gate, temperature and both gain by level, and the sum of the first two."""
    # Two colours far apart for the parts, two that stand out for what is compared.
    series = {"gate": 0, "temperature": 3, "sum of the two": 2, "both": 4}
    where = ["dataset", "noise_level", "seed"]
    gains = scores().sub(scores()["none"], axis=0).groupby(where).mean()
    gains["sum of the two"] = gains["gate"] + gains["temperature"]
    with style():
        figure = new_figure(7.2, 3.1)
        panels = figure.subplots(1, len(GRAPHS), sharey=True)
        for dataset, axes in zip(GRAPHS, panels, strict=True):
            axes.axhline(0.0, color="#808080", linewidth=0.8, zorder=0)
            for number, name in enumerate(series):
                for place, level in enumerate(("none", *LEVELS)):
                    found = summarise(gains.loc[dataset, level][name])
                    axes.errorbar(
                        place + 0.16 * (number - 1.5),
                        found.mean,
                        [[found.mean - found.low], [found.high - found.mean]],
                        marker=MARKERS[number],
                        markersize=4,
                        linewidth=1.0,
                        color=COLOURS[series[name]],
                        label=name if place == 0 else None,
                    )
            axes.set_title(dataset)
            axes.set_xticks(range(len(LEVELS) + 1), labels=["no noise", *LEVELS])
        panels[0].set_ylabel("points over the backbone")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(series))
    return figure


TABLES = {"planned": planned, "interactions": interactions, "accuracy": accuracy}
NUMBERS = {"points": points, "count": count}
FIGURES = {"complementarity": sums_of_parts}
