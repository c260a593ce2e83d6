"""The table, the numbers and the picture of docs/calibration.md."""

from functools import cache

import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import chi2

from studies.calibration.study import PLAN
from studies.pages import markdown_table, p_value, signed
from studies.results import read_runs
from tempergat.base.figures import COLOURS, MARKERS, new_figure, style
from tempergat.comparison.paper import read_paper
from tempergat.stats import deviation_distance, summarise, welch

PAGE = "calibration"
BASELINES = [(data, name) for data in PLAN["datasets"] for name in PLAN["baselines"]]
RULES = {
    "best_val_accuracy": "best validation accuracy",
    "best_val_loss": "best validation loss",
    "last_epoch": "last epoch",
}
# A mean and a standard deviation of each baseline are compared with the paper's.
DEGREES = 2 * len(BASELINES)
SHOWN = 12


@cache
def baselines() -> pd.DataFrame:
    """Test scores of the baselines in every cell, and their distances from the paper.

    A cell is a training and a rule that selects the epoch. Distances are in standard
    errors.
    """
    paper, rows = read_paper(), []
    for dataset, method in BASELINES:
        runs = read_runs(f"calibration/{dataset}.csv").query("method == @method")
        dropout = {
            rates[dataset]: f"dropout on {words}"
            for words, rates in PLAN["attention_dropout"].items()
        }
        theirs = paper[dataset][method]
        for (normalized, rate, decay), group in runs.groupby(
            ["normalize_features", "attention_dropout", "weight_decay"]
        ):
            features = "rows sum to one" if normalized else "raw features"
            training = f"{features}, {dropout[rate]}, decay {decay:g}"
            for rule, words in RULES.items():
                ours = summarise((100.0 * group[f"{rule}_test"]).tolist())
                test = welch(
                    (ours.mean, ours.std, ours.runs),
                    (theirs.mean, theirs.std, theirs.runs),
                )
                rows.append(
                    {
                        "training": training,
                        "rule": words,
                        "baseline": f"{dataset} {method}",
                        "score": f"{ours.mean:.2f} ± {ours.std:.2f}",
                        "mean": test.difference / test.standard_error,
                        "std": deviation_distance(
                            ours.std, ours.runs, theirs.std, theirs.runs
                        ),
                    }
                )
    return pd.DataFrame(rows).set_index(["training", "rule", "baseline"])


@cache
def cells() -> pd.DataFrame:
    """The cells, nearest first; those that were not run on all datasets come last.

    There misfit and distance are lower bounds.
    """
    squares = baselines()[["mean", "std"]].pow(2).sum(axis=1)
    found = squares.groupby(["training", "rule"]).agg(misfit="sum", run="count")
    found["partly"] = found["run"] < len(BASELINES)
    found["p"] = chi2.sf(found["misfit"], DEGREES)
    found["distance"] = (found["misfit"] / DEGREES) ** 0.5
    found["near"] = ~found["partly"] & (
        found["distance"] <= PLAN["near_standard_errors"]
    )
    return found.sort_values(["partly", "misfit"])


def nearest_cells() -> str:
    """The nearest cells beside the paper."""
    scores = baselines()["score"].unstack("baseline").fillna("-")
    heads = [f"{dataset} {method}" for dataset, method in BASELINES]
    paper = [read_paper()[dataset][method] for dataset, method in BASELINES]
    theirs = [f"{cell.mean:.2f} ± {cell.std:.2f}" for cell in paper]
    rows = [["the paper", "", *theirs, "", "", ""]]
    for (training, rule), cell in cells().head(SHOWN).iterrows():
        bound = "at least " if cell["partly"] else ""
        rows.append(
            [
                training,
                rule,
                *scores.loc[(training, rule), heads],
                f"{bound}{cell['misfit']:.1f}",
                p_value(cell["p"]),
                f"{bound}{cell['distance']:.1f}{', near' if cell['near'] else ''}",
            ]
        )
    return markdown_table(
        ["training", "epoch selected by", *heads, "misfit", "p", "distance"], rows
    )


def tried() -> str:
    """How many cells there are."""
    return str(len(cells()))


def nearest(what: str) -> str:
    """The settings, the distance or the p of the nearest cell."""
    cell = cells().iloc[0]
    training, rule = cell.name
    return {
        "settings": f"{training}, epoch by {rule}",
        "distance": f"{cell['distance']:.1f}",
        "p": p_value(cell["p"]),
    }[what]


def near(what: str) -> str:
    """How many cells, or trainings of cells, are near the paper."""
    found = cells()[cells()["near"]].index
    return str(len(found if what == "cells" else found.unique("training")))


def not_shown(what: str) -> str:
    """How many cells the table leaves out, or the least distance of these."""
    rest = cells().iloc[SHOWN:]
    return str(len(rest)) if what == "cells" else f"{rest['distance'].min():.1f}"


def away(dataset: str, method: str) -> str:
    """How far a baseline of the nearest cell is from the paper's."""
    found = baselines().loc[(*cells().index[0], f"{dataset} {method}")]
    return f"{signed(found['mean'])} (deviation {signed(found['std'])})"


def distances() -> Figure:
    """The cells that were run on all datasets by their distance from the paper."""
    whole = cells()[~cells()["partly"]]
    with style():
        figure = new_figure(7.2, 1.4 + 0.28 * len(whole))
        axes = figure.subplots()
        axes.axvline(
            PLAN["near_standard_errors"],
            color="#808080",
            linewidth=0.8,
            linestyle=":",
            zorder=0,
        )
        lines = {}
        for row, ((_, rule), distance) in enumerate(whole["distance"].items()):
            number = list(RULES.values()).index(rule)
            (lines[rule],) = axes.plot(
                distance,
                row,
                marker=MARKERS[number],
                color=COLOURS[number + 1],
                linestyle="none",
            )
        axes.set_yticks(
            range(len(whole)), labels=whole.index.get_level_values("training")
        )
        axes.set_ylim(len(whole) - 0.5, -0.5)
        axes.set_xlim(0.0, None)
        axes.set_xlabel("distance in standard errors (dotted: near)")
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=3)
    return figure


TABLES = {"nearest_cells": nearest_cells}
NUMBERS = {
    "tried": tried,
    "nearest": nearest,
    "near": near,
    "not_shown": not_shown,
    "away": away,
}
FIGURES = {"calibration": distances}
