"""Scores and gains of the paper's methods beside the paper's.

`table` is the name of a CSV of runs below the folder of results.
"""

import math
from collections.abc import Sequence
from functools import cache

import pandas as pd

from studies.results import read_runs
from tempergat import stats
from tempergat.comparison.paper import BACKBONE_OF, PAPER_METHODS, read_paper
from tempergat.nn import METHODS

TABLE = "homogeneous"
DATASETS = ("cora", "citeseer", "pubmed")
RULES = {
    "best_val_accuracy": "best validation accuracy",
    "best_val_loss": "best validation loss",
    "last_epoch": "last epoch",
}
FIRST_RULE = "best_val_accuracy"
NO_GAIN = "the paper shows no gain"
GROUPS = {
    "gated variants": [name for name in BACKBONE_OF if METHODS[name].gate],
    "temperature alone": [name for name in BACKBONE_OF if not METHODS[name].gate],
}
PAPER = {
    dataset: pd.DataFrame(cells.values()).set_index("method")
    for dataset, cells in read_paper().items()
}


def runs_on(dataset: str, table: str = TABLE) -> pd.DataFrame:
    """The runs on a dataset."""
    return read_runs(f"{table}/runs.csv").query("dataset == @dataset")


@cache
def scores(dataset: str, rule: str = FIRST_RULE, table: str = TABLE) -> pd.DataFrame:
    """Test scores in percent: a row for each seed, a column for each method."""
    runs = runs_on(dataset, table)
    found = runs.pivot(index="seed", columns="method", values=f"{rule}_test")
    return 100.0 * found[list(PAPER_METHODS)]


def moments(values: pd.Series) -> tuple[float, float, int]:
    """Mean, standard deviation and number of runs."""
    return values.mean(), values.std(), values.count()


def paper_moments(dataset: str, method: str) -> tuple[float, float, int]:
    """The paper's mean, standard deviation and number of runs."""
    return tuple(PAPER[dataset].loc[method, ["mean", "std", "runs"]])


def paper_gain(dataset: str, method: str) -> float:
    """A variant's mean minus its backbone's in the paper."""
    mean = PAPER[dataset]["mean"]
    return mean[method] - mean[BACKBONE_OF[method]]


@cache
def gains(
    dataset: str, rule: str = FIRST_RULE, table: str = TABLE
) -> dict[str, stats.PairedComparison]:
    """Each variant against its backbone, Holm-corrected over the variants."""
    found = scores(dataset, rule, table)
    by_seed = {method: found[method].dropna().to_dict() for method in found}
    return {gain.method: gain for gain in stats.compare_pairs(by_seed, BACKBONE_OF)}


def outcome(
    dataset: str, method: str, rule: str = FIRST_RULE, table: str = TABLE
) -> str:
    """What our runs say about a gain of the paper."""
    if paper_gain(dataset, method) <= 0.0:
        return NO_GAIN
    verdict = gains(dataset, rule, table)[method].verdict
    return {"better": "holds", "worse": "reversed"}.get(verdict, verdict)


@cache
def cell_tests(dataset: str, table: str = TABLE) -> dict[str, tuple[stats.Welch, bool]]:
    """Our mean minus the paper's, and whether they agree, by method.

    They agree where Welch's test, Holm-corrected over the methods, shows no difference.
    """
    found = scores(dataset, table=table)
    tests = [stats.welch(moments(found[m]), paper_moments(dataset, m)) for m in found]
    agree = [p >= stats.ALPHA for p in stats.holm([test.p for test in tests])]
    return dict(zip(found, zip(tests, agree, strict=True), strict=True))


def pooled_gain(
    dataset: str, methods: Sequence[str], rule: str, table: str = TABLE
) -> stats.Summary:
    """The average gain of some variants, over seeds."""
    share = _weights(methods, of_gains=True)
    return stats.summarise(_weighted(scores(dataset, rule, table), share))


def joint_tests(
    dataset: str, *, of_gains: bool
) -> tuple[int, stats.Welch, stats.Welch]:
    """All variants' scores, or gains, together: ours minus the paper's.

    Returns:
        How many variants lie below the paper's, the test of the average if the paper's
        means err independently, and if they err all in one direction.
    """
    paper, ours = PAPER[dataset], scores(dataset)
    away = ours.mean() - paper["mean"]
    below = sum(
        away[method] - of_gains * away[backbone] < 0.0
        for method, backbone in BACKBONE_OF.items()
    )
    share = _weights(list(BACKBONE_OF), of_gains=of_gains)
    errors = (share * paper["std"]).abs()
    average, mean, runs = _weighted(ours, share), share @ paper["mean"], paper["runs"]
    independent, correlated = (
        stats.welch(moments(average), (mean, std, runs.min()))
        for std in (math.hypot(*errors), errors.sum())
    )
    return below, independent, correlated


def _weights(methods: Sequence[str], *, of_gains: bool) -> pd.Series:
    """The weight of each method in the average score, or gain, of some variants."""
    share = pd.Series(0.0, index=PAPER_METHODS)
    for method in methods:
        share[method] += 1 / len(methods)
        if of_gains:
            share[BACKBONE_OF[method]] -= 1 / len(methods)
    return share


def _weighted(found: pd.DataFrame, share: pd.Series) -> pd.Series:
    return (found * share).dropna().apply(math.fsum, axis=1)
