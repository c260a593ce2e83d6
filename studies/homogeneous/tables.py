"""Tables, numbers and figures of docs/reproduction.md."""

from collections.abc import Callable, Iterator

from studies.calibration import tables as calibration
from studies.homogeneous import beside, combining, figures, multiverse
from studies.homogeneous.beside import ALONE, DATASETS, FIRST_RULE, GATED, PAPER, RULES
from studies.homogeneous.multiverse import RECIPES, Cell
from studies.pages import markdown_table
from tempergat.comparison.paper import BACKBONE_OF
from tempergat.comparison.report.formats import mean_and_std, p_value, signed
from tempergat.stats import Summary
from tempergat.training import METRICS

PAGE = "reproduction"
# Where the paper's gated variants gain.
GAINING = ("cora", "citeseer")
# What a test shows.
SHOWN = "†"
SETTINGS = ("recipes", "nearest", "second")
CELL_HEAD = ["settings", "epoch selected by"]


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """A difference and the ends of its interval."""
    return f"{signed(value)} ({signed(low)} to {signed(high)})"


def mean_interval(found: Summary) -> str:
    """A mean difference and the ends of its interval."""
    return with_interval(found.mean, found.low, found.high)


def held() -> str:
    """How many of the paper's gains hold in each cell, nearest first."""
    rows = []
    for cell in multiverse.cells():
        counts = [held_of(cell, GATED, (name,)) for name in GAINING]
        counts.append(held_of(cell, ALONE, DATASETS))
        row = [cell.settings, RULES[cell.rule], f"{cell.distance:.1f}", *counts]
        rows.append([*row, f"{multiverse.correlation(cell):.2f}"])
    head = [*CELL_HEAD, "distance", *(f"gated, {name}" for name in GAINING)]
    return markdown_table([*head, "temperature alone", "correlation"], rows, words=2)


def held_of(cell: Cell, methods: list[str], datasets: tuple[str, ...]) -> str:
    """How many of some gains hold in a cell."""
    count, every = multiverse.held(cell, methods, datasets)
    return f"{count} of {every}"


def averages() -> str:
    """The average gains of the gated variants and of a temperature alone."""
    groups = [(methods, name) for methods in (GATED, ALONE) for name in DATASETS]
    paper = [
        signed(sum(beside.paper_gain(name, m) for m in methods) / len(methods))
        for methods, name in groups
    ]
    rows = [["the paper", "not stated", *paper]]
    for cell in multiverse.cells():
        found = [
            beside.average_gain(
                multiverse.scores(cell.settings, name, cell.rule), methods
            )
            for methods, name in groups
        ]
        shown = [f"{signed(one.mean)} ± {one.high - one.mean:.2f}" for one in found]
        rows.append([cell.settings, RULES[cell.rule], *shown])
    words = ["gated", "temperature"]
    heads = [f"{word}, {name}" for word in words for name in DATASETS]
    return markdown_table([*CELL_HEAD, *heads], rows, words=2)


def scores() -> str:
    """The scores of all methods beside the paper's."""
    rows = []
    for method in beside.scores(DATASETS[0]):
        row = [method]
        for name in DATASETS:
            ours = beside.scores(name)[method]
            agrees = beside.cell_tests(name)[method][1]
            mean, std, _ = beside.paper_moments(name, method)
            row.append(mean_and_std(mean, std))
            row.append(mean_and_std(ours.mean(), ours.std()))
            row[-1] += "" if agrees else f" {SHOWN}"
        rows.append(row)
    return markdown_table(["method", *_columns()], rows)


def variants() -> str:
    """The gains of all variants beside the paper's."""
    rows = []
    for method in BACKBONE_OF:
        row = [method]
        for name in DATASETS:
            gain = beside.gains(beside.scores(name))[method]
            shown = with_interval(gain.difference, gain.low, gain.high)
            mark = f" {SHOWN}" if gain.verdict in ("better", "worse") else ""
            row.append(signed(beside.paper_gain(name, method)))
            row.append(shown + mark)
        rows.append(row)
    return markdown_table(["variant", *_columns()], rows)


def _columns() -> Iterator[str]:
    for name in DATASETS:
        yield f"{name}, paper"
        yield "ours"


def joint(what: str, dataset: str) -> str:
    """How many variants are `below` the paper's, their `difference`, or its `p`."""
    below, test = beside.joint_test(dataset)
    return {
        "below": str(below),
        "difference": METRICS["accuracy"].text(-test.difference),
        "p": p_value(test.p),
    }[what]


def combined() -> str:
    """Each combination minus the better of its parts."""
    rows = []
    for name in DATASETS:
        for method in combining.COMBINED:
            row = [name, method, signed(combining.paper_gain(name, method))]
            gains = [_combined(RECIPES, rule, name, method) for rule in RULES]
            rows.append([*row, *(with_interval(*gain) for gain in gains)])
    head = ["dataset", "combination", "the paper", *RULES.values()]
    return markdown_table(head, rows, words=2)


def _combined(settings: str, rule: str, name: str, method: str) -> combining.Gain:
    return combining.gain(multiverse.scores(settings, name, rule), method)


def combined_counts() -> str:
    """How many combinations are better and worse at all settings."""
    rows = []
    for settings in SETTINGS:
        row = [named(settings)]
        for rule in RULES:
            above, below = (combinations(s, settings, rule) for s in ("above", "below"))
            row.append(f"{above} above, {below} below")
        rows.append(row)
    return markdown_table(["settings", *RULES.values()], rows)


def combinations(side: str, settings: str, rule: str) -> str:
    """How many combinations have an interval on one side of 0, or how many there are.

    Args:
        side: `above`, `below` or `all`.
        settings: As `named` takes them.
        rule: The selection rule.
    """
    gains = [
        _combined(named(settings), rule, name, method)
        for name in DATASETS
        for method in combining.COMBINED
    ]
    counts = {
        "above": sum(gain.low > 0.0 for gain in gains),
        "below": sum(gain.high < 0.0 for gain in gains),
        "all": len(gains),
    }
    return str(counts[side])


def paper_combinations(side: str) -> str:
    """How many of the paper's combinations are above both parts, or how many it has."""
    every = [(name, method) for name in PAPER for method in combining.COMBINED]
    above = [combining.paper_gain(*one) > 0.0 for one in every]
    return str(sum(above) if side == "above" else len(above))


def variations() -> str:
    """What settings change that baselines do not have."""
    rows = []
    for variation in multiverse.PLAN["variations"]:
        for name in DATASETS:
            found = [multiverse.change(variation, name, rule) for rule in RULES]
            changes = [mean_interval(change) for _, change in found]
            rows.append([variation, name, str(found[0][0]), *changes])
    head = ["variation", "dataset", "methods", *RULES.values()]
    return markdown_table(head, rows, words=2)


def named(settings: str) -> str:
    """The settings of a cell: `recipes`, or the `nearest` or `second` other choice."""
    if settings == "recipes":
        return RECIPES
    found = [cell.settings for cell in multiverse.cells() if cell.settings != RECIPES]
    nearest, second = dict.fromkeys(found)
    return {"nearest": nearest, "second": second}[settings]


def of_cell(made: Callable[[Cell], str]) -> Callable[[str, str], str]:
    """A number of a cell that settings and a rule name."""

    def number(settings: str, rule: str) -> str:
        name = named(settings), rule
        return made(next(cell for cell in multiverse.cells() if cell[1:] == name))

    return number


def gated_gains(pick: Callable[[list[int]], int]) -> Callable[[str], str]:
    """A number of the gated gains that hold, over the settings of a rule."""

    def number(rule: str) -> str:
        cells = [cell for cell in multiverse.cells() if cell.rule == rule]
        return str(pick([multiverse.held(cell, GATED, GAINING)[0] for cell in cells]))

    return number


def gains_of(methods: list[str], datasets: tuple[str, ...]) -> str:
    """How many of the paper's gains some variants have."""
    return str(multiverse.held(multiverse.cells()[0], methods, datasets)[1])


def agree(what: str) -> str:
    """How many of our means agree with the paper's, or how many there are."""
    every = [agrees for name in DATASETS for _, agrees in _tests(name)]
    return str(sum(every) if what == "agree" else len(every))


def _tests(name: str) -> list[tuple[object, bool]]:
    return [*beside.cell_tests(name).values()]


def against_gcn(verdict: str, dataset: str) -> str:
    """How many methods with attention are better, or worse, than gcn."""
    return str(sum(c.verdict == verdict for c in beside.against_gcn(dataset)))


def without_attention_dropout(features: str) -> str:
    """gat's mean on Cora without it, at the decay that is best for it.

    Args:
        features: `raw`, or `normalised` where each node's sum to one.
    """
    runs = multiverse.calibration_runs().query(
        "dataset == 'cora' and method == 'gat' and attention_dropout == 0.0"
    )
    runs = runs[runs["normalize_features"] == (features == "normalised")]
    means = runs.groupby("weight_decay")[f"{FIRST_RULE}_test"].mean()
    return METRICS["accuracy"].text(100.0 * means.max())


def runs(what: str) -> str:
    """How many runs there are, how many failed, or the minutes that all took."""
    found = [beside.runs_on(name) for name in DATASETS]
    counts = {
        "all": sum(map(len, found)),
        "failed": sum((one["status"] != "done").sum() for one in found),
        "minutes": sum(one["time_s"].sum() for one in found) / 60.0,
    }
    return f"{counts[what]:,.0f}" if counts[what] else "none"


TABLES = {
    "held": held,
    "averages": averages,
    "scores": scores,
    "variants": variants,
    "combined": combined,
    "combined_counts": combined_counts,
    "variations": variations,
}
NUMBERS = {
    "gated": of_cell(lambda cell: str(multiverse.held(cell, GATED, GAINING)[0])),
    "correlation": of_cell(lambda cell: f"{multiverse.correlation(cell):.2f}"),
    "within_datasets": of_cell(
        lambda cell: f"{multiverse.correlation(cell, within=True):.2f}"
    ),
    "nearest_p": lambda: calibration.nearest("p"),
    "most_gated": gated_gains(max),
    "least_gated": gated_gains(min),
    "gated_gains": lambda: gains_of(GATED, GAINING),
    "gated_contrasts": lambda: str(len(GATED) * len(DATASETS)),
    "temperature_gains": lambda: gains_of(ALONE, DATASETS),
    "trained": lambda: str(len(DATASETS)),
    "datasets": lambda: str(len(PAPER)),
    "agree": agree,
    "joint": joint,
    "above_paper": lambda name, method: METRICS["accuracy"].text(
        beside.cell_tests(name)[method][0].difference
    ),
    "against_gcn": against_gcn,
    "combinations": combinations,
    "paper_combinations": paper_combinations,
    "without_attention_dropout": without_attention_dropout,
    "paper": lambda name, method: METRICS["accuracy"].text(
        beside.paper_moments(name, method)[0]
    ),
    "runs": runs,
}
FIGURES = {
    "gains-beside-paper": figures.beside_figure,
    "multiverse": figures.multiverse_figure,
}
