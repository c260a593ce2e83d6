"""The tables of docs/own_graph.md: what the commands on the page print.

    python -m benchmarks.own_graph FOLDER [NAME ...]

The command of a table is the last `tempergat compare` in a block of the page before it;
it is run in the folder of graphs. Its table goes to own_graph/tables/NAME.csv in
benchmarks/results, and every run to a row of own_graph/NAME.csv. `benchmarks.pages`
fills the page.
"""

import argparse
import csv
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from benchmarks.origin import origin
from benchmarks.pages import RESULTS
from studies.pages import DOCS
from tempergat.comparison.storage.export import export_stores

PAGE = DOCS / "own_graph.md"
RUNS = RESULTS / "own_graph"
TABLES = RUNS / "tables"
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


def printed_table(markdown: str) -> list[list[str]]:
    """The rows of the first table that `compare` wrote as Markdown, its head first."""
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [row for row in cells if set("".join(row)) - set("-: ")]


def train(name: str, command: str, graphs: Path, device: str) -> None:
    """Runs a command of the page, and keeps its table and its runs."""
    with tempfile.TemporaryDirectory() as folder:
        given = [*shlex.split(command)[1:], "--device", device, "--out", folder]
        call = [sys.executable, "-m", "tempergat", *given]
        subprocess.run(call, cwd=graphs, check=True)
        (markdown,) = Path(folder).glob("*.md")
        head, *rows = printed_table(markdown.read_text(encoding="utf-8"))
        made = origin(torch.device(device))
        with (TABLES / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*head, *ORIGIN])
            writer.writerows([*row, *(made[key] for key in ORIGIN)] for row in rows)
        runs = RUNS / f"{name}.csv"
        runs.unlink(missing_ok=True)
        export_stores([Path(folder) / "store.sqlite"], runs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", type=Path, help="folder in which commands are run")
    parser.add_argument("names", nargs="*", help="tables; all when left out")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    given = parser.parse_args()
    found = commands(PAGE.read_text(encoding="utf-8"))
    for name in given.names or found:
        train(name, found[name], given.graphs, given.device)


if __name__ == "__main__":
    main()
