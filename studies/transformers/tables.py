"""The table and the numbers of docs/transformers.md."""

from functools import cache

import pandas as pd

from studies.pages import markdown_table, p_value, signed
from studies.results import read_runs
from studies.transformers.study import GRAPHS, PLAN
from tempergat.stats import (
    ALPHA,
    PairedComparison,
    compare_pairs,
    equivalence_p,
    summarise,
)

PAGE = "transformers"
PLAIN, *OTHERS = PLAN["methods"]
# The rule of the plan, and the others by which an epoch can be selected.
SELECTED, *OTHER_RULES = "best_val_accuracy", "best_val_loss", "last_epoch"


@cache
def scores(rule: str = SELECTED) -> pd.DataFrame:
    """Test accuracy in points by dataset and seed, with a column for each method."""
    runs = read_runs("transformers/runs.csv")
    where = ["dataset", "seed"]
    return 100.0 * runs.pivot(index=where, columns="method", values=f"{rule}_test")


@cache
def compared(rule: str = SELECTED) -> dict[str, PairedComparison]:
    """Each method against the plain one, over means of the datasets by seed."""
    means = scores(rule).groupby("seed").mean()
    found = compare_pairs(means.to_dict(), dict.fromkeys(OTHERS, PLAIN))
    return {test.method: test for test in found}


def verdict(test: PairedComparison) -> str:
    """Whether there is a gain, in the words of the plan."""
    if test.t_p_holm < ALPHA:
        return "gains" if test.difference > 0 else "loses"
    values = (test.difference, test.standard_error, test.pairs - 1)
    return "no gain" if equivalence_p(*values, PLAN["margin"]) < ALPHA else "not shown"


def accuracy() -> str:
    """Every method on every dataset, and its gain over the plain one."""
    rows = []
    for method in PLAN["methods"]:
        on_each = [summarise(scores().loc[dataset][method]) for dataset in GRAPHS]
        cells = [f"{found.mean:.2f} ± {found.std:.2f}" for found in on_each]
        test = compared().get(method)
        gain = [""] * 5
        if test is not None:
            ends = f"[{signed(test.low, 2)}, {signed(test.high, 2)}]"
            others = [compared(rule)[method] for rule in OTHER_RULES]
            gain = [
                f"{signed(test.difference, 2)} {ends}",
                p_value(test.t_p_holm),
                verdict(test),
                *(f"{signed(it.difference, 2)}, {verdict(it)}" for it in others),
            ]
        rows.append([f"`{method}`", *cells, *gain])
    head = ["method", *GRAPHS, "gain", "p", "verdict"]
    return markdown_table([*head, "by validation loss", "at the last epoch"], rows)


def gain(method: str, rule: str = SELECTED) -> str:
    """`+0.08`: a method's mean gain."""
    return signed(compared(rule)[method].difference, 2)


def gain_on(dataset: str, method: str) -> str:
    """`+0.08`: a method's mean gain on one dataset."""
    of = scores().loc[dataset]
    return signed((of[method] - of[PLAIN]).mean(), 2)


TABLES = {"accuracy": accuracy}
NUMBERS = {"gain": gain, "gain_on": gain_on}
FIGURES: dict[str, object] = {}
