"""The paper's published numbers, as results/paper/results.csv holds them."""

import csv
from dataclasses import dataclass
from pathlib import Path

from tempergat.base import UserError
from tempergat.nn import METHODS

HOMOGENEOUS = ("cora", "citeseer", "pubmed", "ogbn-arxiv", "ogbn-products", "reddit")
HETEROGENEOUS = ("mag-year", "pokec", "oag-chem", "ogbn-mag", "oag-cs")
PAPER_METHODS = tuple(name for name, method in METHODS.items() if method.in_paper)
# The methods without temperature and gate: gcn, gat and gatv2.
PLAIN_METHODS = tuple(dict.fromkeys(METHODS[name].backbone for name in PAPER_METHODS))
# Each variant's backbone, in the order of the paper's tables.
BACKBONE_OF: dict[str, str] = {
    name: METHODS[name].backbone for name in PAPER_METHODS if name not in PLAIN_METHODS
}


@dataclass(frozen=True)
class PaperCell:
    """One cell of the paper's tables, in percent."""

    dataset: str
    method: str
    metric: str
    mean: float
    std: float
    runs: int


def read_paper(results: Path) -> dict[str, dict[str, PaperCell]]:
    """The paper's cells by dataset and method.

    Args:
        results: The project's folder of results.

    Raises:
        UserError: The file is missing or is not a table of results.
    """
    path = results / "paper" / "results.csv"
    try:
        text = path.read_text()
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}; run this in the project's folder, "
            "or name its results with --results"
        ) from error
    cells: dict[str, dict[str, PaperCell]] = {}
    try:
        for row in csv.DictReader(text.splitlines()):
            cell = PaperCell(
                row["dataset"],
                row["method"],
                row["metric"],
                float(row["mean"]),
                float(row["std"]),
                int(row["runs"]),
            )
            cells.setdefault(cell.dataset, {})[cell.method] = cell
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not a table of results ({error}); restore it from the project"
        ) from error
    return cells
