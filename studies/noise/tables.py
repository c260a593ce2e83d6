"""Tables, numbers and the figure of docs/noise.md."""

from functools import cache

import pandas as pd
from matplotlib.figure import Figure

from studies.noise.figure import draw_panels, panels_of
from studies.noise.learned import (
    BEST_LOSS,
    DATASETS,
    FIRST,
    FIXED,
    FRESH,
    FURTHER,
    LAST,
    PLAN,
    QUANTITIES,
    SECOND,
    SELECTED,
    learned_values,
    read_study,
    shown_datasets,
    trends,
)
from studies.pages import markdown_table, p_value, signed
from tempergat.nn import METHODS
from tempergat.stats import (
    ALPHA,
    PairedComparison,
    compare_pairs,
    equivalence_p,
    summarise,
)

PAGE = "noise"
NOISES = {"missing": "missing coordinates", "gaussian": "Gaussian noise"}
GROUPS = {
    "gate-first": ["gated_first", "gated_temp", "gated_first_v2", "gated_temp_v2"],
    "post-gate": ["gated", "gated_v2"],
    "temperature": ["temp_only", "temp_only_v2"],
}
# The tests that were planned, by study: a group of methods and a kind of noise.
PLANNED = {
    SECOND: (
        "gate-first missing",
        "post-gate missing",
        "temperature missing",
        "temperature gaussian",
    ),
    FRESH: ("gate-first gaussian",),
}
# Points of accuracy that count as no gain.
MARGIN = 0.5

SIGNS = {"rises": "↑", "falls": "↓", "no trend": "·"}


# Accuracy


@cache
def gains_by_level(study: str, who: str, noise: str, rule: str = SELECTED) -> pd.Series:
    """Points of a method or group over the backbone, by dataset, seed and level."""
    runs = read_study(study)
    runs = runs[runs["noise"] == noise]
    scores = runs.pivot(
        index="method",
        columns=["dataset", "seed", "level", "tau"],
        values=f"{rule}_test",
    )
    methods = GROUPS.get(who, [who])
    backbones = [METHODS[method].backbone for method in methods]
    return 100.0 * (scores.loc[methods].mean() - scores.loc[backbones].mean())


def gains(study: str, who: str, noise: str, rule: str = SELECTED) -> pd.DataFrame:
    """Points of a method or group over the backbone, mean over levels, by seed."""
    gain = gains_by_level(study, who, noise, rule)
    return gain.groupby(["seed", "dataset"]).mean().unstack("dataset")[list(DATASETS)]


def pooled(study: str, name: str, rule: str = SELECTED) -> pd.Series:
    """The mean gain over all datasets, by seed."""
    return gains(study, *name.split(), rule).dropna().mean(axis=1)


def gain_tests(
    study: str, names: tuple[str, ...], rule: str = SELECTED
) -> dict[str, PairedComparison]:
    """Pooled gains against none; Holm's correction covers all that are named."""
    values = {name: pooled(study, name, rule).to_dict() for name in names}
    none = dict.fromkeys(values[names[0]], 0.0)
    found = compare_pairs({**values, "none": none}, dict.fromkeys(names, "none"))
    return dict(zip(names, found, strict=True))


def verdict(test: PairedComparison, values: pd.Series) -> str:
    """Whether there is a gain, in the words of the plan."""
    if test.t_p_holm < ALPHA:
        return "gains" if test.difference > 0 else "loses"
    p = equivalence_p(values.mean(), values.sem(), len(values) - 1, MARGIN)
    return "no gain" if p < ALPHA else "not shown"


def interval(values: pd.Series, digits: int = 2) -> str:
    """`+0.08 [-0.28, +0.43]`: the mean and its 95 % interval."""
    found = summarise(values)
    low, high = signed(found.low, digits), signed(found.high, digits)
    return f"{signed(found.mean, digits)} [{low}, {high}]"


def by_dataset(study: str, name: str) -> list[str]:
    """The gain on each dataset with its interval."""
    values = gains(study, *name.split())
    return [interval(values[dataset]) for dataset in DATASETS]


def accuracy() -> str:
    """The planned tests of accuracy, with both selection rules and the first study."""
    names = PLANNED[SECOND]
    tests = gain_tests(SECOND, names)
    tests_by_loss = gain_tests(SECOND, names, BEST_LOSS)
    rows = []
    for name in names:
        who, noise = name.split()
        group = "temperature alone" if who == "temperature" else who
        values, by_loss = pooled(SECOND, name), pooled(SECOND, name, BEST_LOSS)
        rows.append(
            [
                f"{group}, {NOISES[noise]}",
                interval(values),
                p_value(tests[name].t_p_holm),
                verdict(tests[name], values),
                *by_dataset(SECOND, name),
                f"{signed(by_loss.mean(), 2)}, {verdict(tests_by_loss[name], by_loss)}",
                mean_gain(FIRST, who, noise),
            ]
        )
    head = ["methods and noise", "gain", "p", "verdict", *DATASETS]
    return markdown_table([*head, "by validation loss", "first study"], rows)


def methods() -> str:
    """The gain of single methods under both kinds of noise."""
    rows = {
        method: [f"`{method}`", "yes" if METHODS[method].in_paper else "no"]
        for method in PLAN["methods"]
        if METHODS[method].backbone != method
    }
    for noise in NOISES:
        found = gain_tests(SECOND, tuple(f"{method} {noise}" for method in rows))
        for row, (name, test) in zip(rows.values(), found.items(), strict=True):
            row += [interval(pooled(SECOND, name)), p_value(test.t_p_holm)]
    columns = [text for words in NOISES.values() for text in (words, "p")]
    return markdown_table(["method", "in the paper", *columns], [*rows.values()])


def fresh_seeds() -> str:
    """The one test on fresh seeds, and the gain of its single methods."""
    (planned,) = PLANNED[FRESH]
    labels = {planned: "**all four**"}
    labels |= {f"{method} gaussian": f"`{method}`" for method in GROUPS["gate-first"]}
    rows = []
    for name, test in gain_tests(FRESH, tuple(labels)).items():
        gain = [interval(pooled(FRESH, name)), p_value(test.t_p)]
        rows.append([labels[name], *gain, *by_dataset(FRESH, name)])
    return markdown_table(["methods", "gain", "p", *DATASETS], rows)


def mean_gain(study: str, who: str, noise: str) -> str:
    """The mean gain in a study."""
    return signed(pooled(study, f"{who} {noise}").mean(), 2)


def gains_by_sigma() -> pd.DataFrame:
    """The gain of gate-first on fresh seeds: a row per seed, a column per sigma."""
    gain = gains_by_level(FRESH, "gate-first", "gaussian")
    return gain.groupby(["seed", "level"]).mean().unstack("level")


def losses() -> pd.DataFrame:
    """What noise costs the backbones on fresh seeds, in points below zero."""
    runs = read_study(FRESH)
    runs = runs[runs["method"].isin(["gat", "gatv2"])]
    scores = runs.groupby(["level", "dataset"])[f"{SELECTED}_test"].mean().unstack()
    return 100.0 * (scores - scores.loc[0.0]).loc[1.0:, list(DATASETS)]


def by_sigma() -> str:
    """What gate-first gains at each sigma, and what the noise has cost before."""
    gain, lost = gains_by_sigma(), losses()
    rows = [
        [f"{sigma:g}", interval(gain[sigma]), *(signed(x) for x in lost.loc[sigma])]
        for sigma in lost.index
    ]
    backbones = [f"backbones, {dataset}" for dataset in DATASETS]
    return markdown_table(["sigma", "gain of gate-first", *backbones], rows)


def gain_at(sigma: str) -> str:
    """The mean gain of gate-first on fresh seeds at one sigma."""
    return signed(gains_by_sigma()[float(sigma)].mean(), 2)


def lost_at(least_or_most: str, *sigmas: str) -> str:
    """The least or most that noise of some sigmas costs the backbones on a dataset."""
    lost = -losses().loc[[float(sigma) for sigma in sigmas]].to_numpy()
    return f"{lost.min() if least_or_most == 'least' else lost.max():.0f}"


# Trends


def trend(quantity: str) -> str:
    """A quantity over the levels at the last epoch, and its trends at all moments."""
    rows = []
    for cell, (values, p, _) in trends(quantity).items():
        last, selected, loss, *fixed = (
            SIGNS[trends(quantity, moment)[cell].direction]
            for moment in (LAST, SELECTED, BEST_LOSS, *FIXED)
        )
        rows.append(
            [
                "{}, layer {}".format(*cell),
                *(signed(mean, 3).removeprefix("+") for mean in values.mean()),
                interval(values.iloc[:, -1] - values.iloc[:, 0], 3),
                p_value(p),
                last,
                " ".join(fixed),
                selected,
                loss,
            ]
        )
    lowest, *others = (f"{level:g}" for level in values)
    epochs = "epochs " + ", ".join(str(epoch) for epoch in PLAN["epochs"])
    head = ["dataset", f"{QUANTITIES[quantity][2]} = {lowest}", *others, "change", "p"]
    head += ["last epoch", epochs, "best accuracy", "best loss"]
    return markdown_table(head, rows)


def where(quantity: str, direction: str, layer: str = "") -> list[str]:
    """The datasets and layers in which a quantity rises or falls at the last epoch.

    Args:
        quantity: A key of `QUANTITIES`.
        direction: A key of `SIGNS`.
        layer: The one that counts; all when left out.
    """
    found = [cell for cell, t in trends(quantity).items() if t.direction == direction]
    return [f"{name} {number}" for name, number in found if layer in str(number)]


def sharper(place: str) -> str:
    """In how many datasets and layers T sharpens attention at the level of a place."""
    means = [t.values.mean().iloc[int(place)] for t in trends("flatness").values()]
    return str(sum(mean < 0 for mean in means))


def figure_4() -> Figure:
    """The paper's figure of controlled noise, of its methods, at the last epoch."""
    values = learned_values().rename(columns=lambda name: name.removesuffix(f"_{LAST}"))
    values = values[values["method"].map(lambda method: METHODS[method].in_paper)]
    datasets = shown_datasets()
    missing = [name for name in FURTHER if name not in datasets]
    note = f"; {' and '.join(missing)}: not run" if missing else ""
    return draw_panels(panels_of(values), len(datasets), note)


TABLES = {
    "accuracy": accuracy,
    "methods": methods,
    "fresh_seeds": fresh_seeds,
    "by_sigma": by_sigma,
    "trend": trend,
}
NUMBERS = {
    "runs": lambda study: f"{len(read_study(study)):,}",
    "mean_gain": mean_gain,
    "gain_at": gain_at,
    "lost_at": lost_at,
    "count": lambda *which: str(len(where(*which))),
    "where": lambda *which: ", ".join(where(*which)),
    "sharper": sharper,
    "rms": lambda dataset: f"{PLAN['feature_rms'][dataset]:g}",
}
FIGURES = {"noise-figure-4": figure_4}
