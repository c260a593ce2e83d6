"""Scores and gains of the paper's methods with its recipes, beside the paper's."""

from functools import cache

import pandas as pd

from studies.results import read_runs
from tempergat import stats
from tempergat.comparison.paper import BACKBONE_OF, PAPER_METHODS, read_paper
from tempergat.nn import METHODS

DATASETS = ("cora", "citeseer", "pubmed")
RULES = {
    "best_val_accuracy": "best validation accuracy",
    "best_val_loss": "best validation loss",
    "last_epoch": "last epoch",
}
FIRST_RULE = "best_val_accuracy"
GATED = [name for name in BACKBONE_OF if METHODS[name].gate]
ALONE = [name for name in BACKBONE_OF if not METHODS[name].gate]
PAPER = {
    dataset: pd.DataFrame(cells.values()).set_index("method")
    for dataset, cells in read_paper().items()
}


def runs_on(dataset: str) -> pd.DataFrame:
    """The runs on a dataset."""
    return read_runs("homogeneous/runs.csv").query("dataset == @dataset")


@cache
def scores(dataset: str, rule: str = FIRST_RULE) -> pd.DataFrame:
    """Test scores in percent: a row for each seed, a column for each method."""
    runs = runs_on(dataset)
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


def gains(found: pd.DataFrame) -> dict[str, stats.PairedComparison]:
    """Each variant against its backbone, Holm-corrected over the variants."""
    return {gain.method: gain for gain in _compared(found, BACKBONE_OF)}


def against_gcn(dataset: str) -> list[stats.PairedComparison]:
    """Each method with attention against gcn, Holm-corrected over the methods."""
    found = scores(dataset)
    return _compared(found, {method: "gcn" for method in found if method != "gcn"})


def _compared(
    found: pd.DataFrame, against: dict[str, str]
) -> list[stats.PairedComparison]:
    by_seed = {method: found[method].dropna().to_dict() for method in found}
    return stats.compare_pairs(by_seed, against)


@cache
def cell_tests(dataset: str) -> dict[str, tuple[stats.Welch, bool]]:
    """Our mean minus the paper's, and whether they agree, by method.

    They agree where Welch's test, Holm-corrected over the methods, shows no difference.
    """
    found = scores(dataset)
    tests = [stats.welch(moments(found[m]), paper_moments(dataset, m)) for m in found]
    agree = [p >= stats.ALPHA for p in stats.holm([test.p for test in tests])]
    return dict(zip(found, zip(tests, agree, strict=True), strict=True))


def average_gain(found: pd.DataFrame, methods: list[str]) -> stats.Summary:
    """The average gain of some variants, over seeds."""
    gained = [found[method] - found[BACKBONE_OF[method]] for method in methods]
    # Equal scores have a difference of 0, whatever their last bits.
    return stats.summarise(pd.concat(gained, axis=1).dropna().mean(axis=1).round(9))


def joint_test(dataset: str) -> tuple[int, stats.Welch]:
    """The scores of all variants together: ours minus the paper's.

    Returns:
        How many variants lie below the paper's, and the test of their average. It takes
        the paper's means as all erring in one direction, the most cautious reading.
    """
    paper = PAPER[dataset].loc[list(BACKBONE_OF)]
    ours = scores(dataset)[list(BACKBONE_OF)].dropna()
    below = int((ours.mean() < paper["mean"]).sum())
    theirs = paper["mean"].mean(), paper["std"].mean(), paper["runs"].min()
    return below, stats.welch(moments(ours.mean(axis=1)), theirs)
