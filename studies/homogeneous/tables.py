"""Tables, numbers and figures of docs/reproduction.md."""

from collections.abc import Sequence
from functools import partial

from studies.homogeneous import beside, figures, multiverse
from studies.homogeneous.beside import DATASETS, FIRST_RULE, GROUPS, RULES, TABLE
from studies.pages import markdown_table
from tempergat.comparison.paper import BACKBONE_OF
from tempergat.comparison.report.formats import mean_and_std, p_value, percent, signed
from tempergat.stats import Summary

PAGE = "reproduction"
GATED, ALONE = GROUPS.values()


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """A difference and the ends of its interval."""
    return f"{signed(value)} ({signed(low)} to {signed(high)})"


def mean_interval(found: Summary) -> str:
    """A mean difference and the ends of its interval."""
    return with_interval(found.mean, found.low, found.high)


def outcomes(rule: str, methods: Sequence[str] = tuple(BACKBONE_OF)) -> list[str]:
    """What our runs say about the paper's gains of some variants."""
    found = [beside.outcome(name, m, rule) for name in DATASETS for m in methods]
    return [outcome for outcome in found if outcome != beside.NO_GAIN]


def by_rule() -> str:
    """The outcomes of the paper's gains under each selection rule."""
    rows = []
    for rule, words in RULES.items():
        every = outcomes(rule)
        counts = [every.count(o) for o in ("holds", "within noise", "reversed")]
        found = [outcomes(rule, methods) for methods in GROUPS.values()]
        held = [f"{of_one.count('holds')} of {len(of_one)}" for of_one in found]
        rows.append([words, *map(str, counts), *held])
    head = ["epoch selected by", "hold", "within noise", "reversed"]
    head += ["gated variants' gains that hold", "temperature alone"]
    return markdown_table(head, rows)


def pooled() -> str:
    """The average gain of the gated variants, and of a temperature alone."""
    rows = []
    for words, methods in (
        (f"{len(GATED)} gated variants", GATED),
        (f"temperature alone ({len(ALONE)} variants)", ALONE),
    ):
        for name in DATASETS:
            found = [beside.pooled_gain(name, methods, rule) for rule in RULES]
            rows.append([words, name, *map(mean_interval, found)])
    return markdown_table(["variants", "dataset", *RULES.values()], rows)


def ranges() -> str:
    """Each variant's gains over the cells near the paper's baselines."""
    rows, head = [], ["variant"]
    for name in multiverse.PLAN["datasets"]:
        head += [f"{name}, paper", "ours: range; above 0, below 0"]
    for method in multiverse.PLAN["variants"]:
        row = [method]
        for name in multiverse.PLAN["datasets"]:
            in_paper = method in BACKBONE_OF
            row.append(signed(beside.paper_gain(name, method) if in_paper else None))
            row.append(_range(name, method))
        rows.append(row)
    return markdown_table(head, rows)


def _range(dataset: str, method: str) -> str:
    near = [
        gain
        for cell, gain in multiverse.gains(dataset, method).items()
        if cell.distance <= multiverse.PLAN["near_standard_errors"]
    ]
    means = [gain.mean for gain in near]
    sides = [multiverse.side(gain) for gain in near]
    counts = f"{sides.count('above')}, {sides.count('below')} of {len(near)}"
    return f"{signed(min(means))} to {signed(max(means))}; {counts}"


def variations() -> str:
    """What settings change that baselines do not have."""
    rows = []
    for variation in multiverse.PLAN["variations"]:
        for name in multiverse.PLAN["datasets"]:
            found = [multiverse.change(variation, name, rule) for rule in RULES]
            changes = [mean_interval(change) for _, change in found]
            rows.append([variation, name, str(found[0][0]), *changes])
    return markdown_table(["variation", "dataset", "methods", *RULES.values()], rows)


def joint() -> str:
    """All variants together beside the paper's."""
    rows = []
    for name in DATASETS:
        for kind in ("scores", "gains"):
            below, test, correlated = beside.joint_tests(name, of_gains=kind == "gains")
            difference = with_interval(test.difference, *test.interval())
            row = [name, kind, f"{below} of {len(BACKBONE_OF)}", difference]
            rows.append([*row, p_value(test.p), p_value(correlated.p)])
    head = ["dataset", "variants'", "below the paper's"]
    head += ["average difference (95 % interval)", "p", "p, correlated"]
    return markdown_table(head, rows)


def agreement() -> str:
    """How many cells agree with the paper's."""
    rows = []
    for name in DATASETS:
        agree = [agrees for _, agrees in beside.cell_tests(name).values()]
        failed = beside.runs_on(name)["status"].ne("done").sum()
        rows.append([name, f"{sum(agree)} of {len(agree)}", str(failed)])
    head = ["dataset", "cells that agree with the paper's", "failed runs"]
    return markdown_table(head, rows)


def beside_paper(dataset: str, table: str = TABLE) -> str:
    """The scores of all methods on a dataset beside the paper's."""
    rows = []
    for method, (test, agrees) in beside.cell_tests(dataset, table).items():
        mean, std, _ = beside.paper_moments(dataset, method)
        ours = beside.scores(dataset, table=table)[method]
        row = [method, mean_and_std(mean, std), mean_and_std(ours.mean(), ours.std())]
        away = [signed(test.difference), signed(test.in_standard_errors, 1)]
        rows.append([*row, str(ours.count()), *away, "yes" if agrees else "no"])
    head = ["method", "paper", "ours", "runs", "difference", "standard errors"]
    return markdown_table([*head, "agrees"], rows)


def variants(dataset: str, table: str = TABLE) -> str:
    """The gains of all variants on a dataset beside the paper's."""
    rows = []
    for method, gain in beside.gains(dataset, table=table).items():
        row = [method, gain.baseline, signed(beside.paper_gain(dataset, method))]
        row.append(with_interval(gain.difference, gain.low, gain.high))
        row += [p_value(gain.t_p_holm), p_value(gain.wilcoxon_p_holm)]
        row += [signed(gain.effect_size), signed(gain.correlation), gain.verdict]
        rows.append([*row, beside.outcome(dataset, method, table=table)])
    head = ["variant", "backbone", "paper", "ours (95 % interval)", "p", "p Wilcoxon"]
    head += ["d", "correlation of pairs", "verdict", "the paper's gain"]
    return markdown_table(head, rows)


def in_every_cell(side: str, dataset: str) -> str:
    """The variants whose interval is on one side of 0 in every cell."""
    variants = multiverse.PLAN["variants"]
    gains = {method: multiverse.gains(dataset, method) for method in variants}
    sides = {m: {multiverse.side(g) for g in gains[m].values()} for m in variants}
    return ", ".join(method for method in variants if sides[method] == {side})


TABLES = {
    "by_rule": by_rule,
    "pooled": pooled,
    "ranges": ranges,
    "variations": variations,
    "joint": joint,
    "agreement": agreement,
    "beside_paper": beside_paper,
    "variants": variants,
}
NUMBERS = {
    "gated": lambda name, rule: signed(beside.pooled_gain(name, GATED, rule).mean),
    "paper_gains": lambda: str(len(outcomes(FIRST_RULE))),
    "temperature_gains": lambda: str(len(outcomes(FIRST_RULE, ALONE))),
    "held": lambda rule: str(outcomes(rule).count("holds")),
    "in_every_cell": in_every_cell,
    "paper_gain": lambda name, method: signed(beside.paper_gain(name, method)),
    "gain": lambda name, method: signed(beside.gains(name)[method].difference),
    "gain_p": lambda name, method: p_value(beside.gains(name)[method].t_p_holm),
    "paper": lambda name, method: percent(beside.paper_moments(name, method)[0]),
    "ours": lambda name, method: percent(beside.scores(name)[method].mean()),
    "away": lambda name, method: signed(
        beside.cell_tests(name)[method][0].in_standard_errors, 1
    ),
    "seconds": lambda name: percent(beside.runs_on(name)["time_s"].sum(), 0),
}
FIGURES = {
    "homogeneous-gains": figures.pooled_figure,
    "multiverse": figures.multiverse_figure,
    **{f"scores-{name}": partial(figures.scores_figure, name) for name in DATASETS},
}
