"""Tables and numbers of docs/best.md."""

import pandas as pd

from studies.best.study import PLAN
from studies.pages import markdown_table
from studies.results import read_csv

PAGE = "best"
_KINDS = {
    "alike": "one spread",
    "groups": "half share a seed's luck",
    "unequal": "unequal spread",
    "overlap": "splits overlap",
}


def read(name: str) -> pd.DataFrame:
    """A table of the simulation."""
    return read_csv(f"best/{name}.csv")


def covered() -> str:
    """The least coverage and the sets of each kind, truth and number of seeds."""
    rows = []
    for (kind, truth), cells in read("coverage").groupby(["kind", "truth"], sort=False):
        rows.append(
            [
                _KINDS[str(kind)],
                str(truth),
                _percent(cells["best_in_set"].min()),
                _percent(cells["a_best_left_out"].max()),
                _percent(cells["holm_in_set"].min()),
                _percent(cells["mcs_in_set"].min()) if kind == "alike" else "-",
            ]
        )
    head = ["scores", "methods", "best in set, least", "some best left out, most"]
    return markdown_table([*head, "Holm, least", "MCS, least"], rows, 2)


def sizes(methods: str) -> str:
    """The size of the set with a number of seeds, beside two other sets."""
    found = read("coverage").query(
        "methods == @count", local_dict={"count": int(methods)}
    )
    found = found[(found["kind"] == "alike") & (found["truth"] != "equal")]
    rows = [
        [
            str(cell["truth"]),
            str(cell["seeds"]),
            *(f"{cell[name]:.1f}" for name in ("size", "holm_size", "mcs_size")),
        ]
        for _, cell in found.iterrows()
    ]
    head = ["methods", "seeds", "this set", "Holm, all pairs", "MCS"]
    return markdown_table(head, rows)


def procedures() -> str:
    """Coverage of equal methods, and the size of the set of graded ones."""
    found = read("procedures").set_index(["truth", "methods", "seeds"])
    rows = []
    for (methods, seeds), equal in found.loc["equal"].iterrows():
        graded = found.loc["graded", methods, seeds]
        cells = [
            f"{_percent(equal[f'{name}_in_set'])}, {graded[f'{name}_size']:.1f}"
            for name in ("bonferroni", "largest_t", "sign_flips")
        ]
        rows.append([str(methods), str(seeds), *cells])
    head = ["methods", "seeds", "Bonferroni", "largest t", "sign flips"]
    return markdown_table(head, rows)


def predictions() -> str:
    """What was said of more seeds, and what came."""
    rows = [
        [
            str(cell["truth"]),
            str(cell["methods"]),
            f"{cell['seeds']} to {cell['wanted']}",
            *(f"{cell[name]:.1f}" for name in ("size_now", "size_said", "size_then")),
            f"{100 * cell['within_two']:.0f} %",
        ]
        for _, cell in read("predictions").iterrows()
    ]
    head = ["methods", "how many", "seeds", "now", "said", "then", "within two"]
    return markdown_table(head, rows)


def denials() -> str:
    """How often a gain that is there is denied, and shown."""
    rows = [
        [
            f"{cell['test_nodes']:g}",
            f"{cell['seeds']:g}",
            _percent(cell["denied"]),
            _percent(cell["shown"]),
        ]
        for _, cell in read("claims").iterrows()
    ]
    return markdown_table(["test nodes", "seeds", "denied", "shown"], rows, 0)


def least() -> str:
    """The least share of studies with a fixed best in the set, over all cells."""
    return _percent(read("coverage")["best_in_set"].min())


def most_denied() -> str:
    """The largest share of studies that deny a gain which is there."""
    return _percent(read("claims")["denied"].max())


def size_of(truth: str, methods: str, seeds: str, name: str) -> str:
    """The size of a set in one cell of scores of one spread."""
    cells = read("coverage").set_index(["kind", "truth", "methods", "seeds"])
    return f"{cells.loc['alike', truth, int(methods), int(seeds)][name]:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


TABLES = {
    "covered": covered,
    "sizes": sizes,
    "procedures": procedures,
    "predictions": predictions,
    "denials": denials,
}
NUMBERS = {
    "least": least,
    "cells": lambda: str(len(read("coverage"))),
    "studies": lambda: f"{PLAN['studies']:,}",
    "most_denied": most_denied,
    "rivals": lambda: f"{PLAN['studies_of_rivals']:,}",
    "claims": lambda: f"{PLAN['studies_of_claims']:,}",
    "size_of": size_of,
}
FIGURES: dict[str, None] = {}
