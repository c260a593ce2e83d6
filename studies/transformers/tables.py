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


@cache
def scores() -> pd.DataFrame:
    """Test accuracy in points by dataset and seed, with a column for each method."""
    runs = read_runs("transformers/runs.csv")
    return runs.pivot(index=["dataset", "seed"], columns="method", values="test")


@cache
def compared() -> dict[str, PairedComparison]:
    """Each method against the plain one, over means of the datasets by seed."""
    means = scores().groupby("seed").mean()
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
        gain = ["", "", ""]
        if test is not None:
            ends = f"[{signed(test.low, 2)}, {signed(test.high, 2)}]"
            gain = [f"{signed(test.difference, 2)} {ends}", p_value(test.t_p_holm)]
            gain.append(verdict(test))
        rows.append([f"`{method}`", *cells, *gain])
    return markdown_table(["method", *GRAPHS, "gain", "p", "verdict"], rows)


def gain(method: str) -> str:
    """`+0.08 points, -0.28 to +0.43`: a method's gain and its 95 % interval."""
    test = compared()[method]
    ends = f"{signed(test.low, 2)} to {signed(test.high, 2)}"
    return f"{signed(test.difference, 2)} points, {ends}"


TABLES = {"accuracy": accuracy}
NUMBERS = {"gain": gain}
FIGURES: dict[str, object] = {}
