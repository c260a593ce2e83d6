"""The tables of docs/own_graph.md: what the commands on the page print.

    python -m benchmarks.own_graph [NAME ...] --graphs FOLDER
    python -m benchmarks.own_graph [NAME ...]

The command of a table is the last `tempergat compare` in a block of the page before it;
it is run in the folder of graphs, and every run goes to a row of own_graph/NAME.csv in
benchmarks/results. Without graphs these rows are tested again. The table goes to
own_graph/tables/NAME.csv, and `benchmarks.pages` fills the page with it and with what
the comparison says.
"""

import argparse
import csv
import math
import re
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import torch

from benchmarks.origin import origin
from benchmarks.pages import RESULTS
from studies.pages import DOCS
from tempergat.comparison.plan import DEFAULT_METHODS, baselines_of
from tempergat.comparison.report.sentences import verdict
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tempergat.comparison.storage.export import export_stores, read_runs

PAGE = DOCS / "own_graph.md"
RUNS = RESULTS / "own_graph"
TABLES = RUNS / "tables"
# Of a split, on average, where a table's runs are on several; the rows lack them.
TRAINING_NODES = {
    "texas_4_classes": 86.4,
    "cora_ml": 1796,
    "cora_ml_directed": 1796,
    "acm": 1815,
    "twitch_de": 5699,
    "facebook": 13482,
}
# Kept in the files, not shown on the page.
ORIGIN = ("machine", "commit")
_PART = re.compile(
    r"^```sh[^\n]*\n(?P<command>tempergat compare .*?)^```$"
    r"|^<!-- own_graph (?P<name>\w+) -->$",
    re.MULTILINE | re.DOTALL,
)


def commands(page: str) -> dict[str, str]:
    """The command of every table, by name."""
    found, command = {}, ""
    for part in _PART.finditer(page):
        if part["name"] is None:
            command = part["command"].replace("\\\n", " ")
        else:
            found[part["name"]] = " ".join(command.split())
    return found


def train(name: str, command: str, graphs: Path, device: str) -> None:
    """Runs a command of the page, and keeps its runs."""
    with tempfile.TemporaryDirectory() as folder:
        given = [*shlex.split(command)[1:], "--device", device, "--out", folder]
        call = [sys.executable, "-m", "tempergat", *given]
        subprocess.run(call, cwd=graphs, check=True)
        runs = RUNS / f"{name}.csv"
        runs.unlink(missing_ok=True)
        export_stores([Path(folder) / "store.sqlite"], runs)
        made = origin(torch.device(device))
        (TABLES / f"{name}.csv").write_text(",".join(made[key] for key in ORIGIN))


def write_table(name: str) -> None:
    """Compares the runs of a table; where they were made stays as it was."""
    path = TABLES / f"{name}.csv"
    *_, made = csv.reader(path.read_text(encoding="utf-8").splitlines())
    table = result_table(compared(name))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*table.columns, *ORIGIN])
        writer.writerows([*row, *made[-len(ORIGIN) :]] for row in table.all_rows)


@cache
def compared(name: str) -> DatasetResult:
    """The comparison of a table's runs."""
    runs = read_runs(RUNS / f"{name}.csv")
    methods = list(DEFAULT_METHODS)
    # One test set of each split, over its training nodes.
    test = {run.split: sum(map(sum, run.confusion)) for run in runs}
    ratio = sum(test.values()) / len(test) / TRAINING_NODES.get(name, math.inf)
    return dataset_result(
        runs,
        methods,
        baselines_of(methods, None),
        runs[0].config.get("metric") or "accuracy",
        runs[0].config["selection"],
        all_pairs=True,
        test_to_train=ratio,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="tables; all when left out")
    parser.add_argument("--graphs", type=Path, help="folder in which commands are run")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    given = parser.parse_args()
    found = commands(PAGE.read_text(encoding="utf-8"))
    for name in given.names or found:
        if given.graphs is not None:
            train(name, found[name], given.graphs, given.device)
        write_table(name)
    with (RUNS / "verdicts.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [[name, verdict(compared(name))] for name in found]
        csv.writer(file).writerows([["name", "verdict"], *rows])


if __name__ == "__main__":
    main()
