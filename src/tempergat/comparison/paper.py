"""The paper's published numbers, from paper.csv beside this file."""

import csv
from dataclasses import dataclass
from importlib import resources

from pydantic import TypeAdapter

from tempergat.comparison.results.result import DatasetResult
from tempergat.data import CATALOG
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


_CELL = TypeAdapter(PaperCell)


def read_paper() -> dict[str, dict[str, PaperCell]]:
    """The paper's cells by dataset and method."""
    file = resources.files("tempergat.comparison") / "paper.csv"
    cells: dict[str, dict[str, PaperCell]] = {}
    for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        cell = _CELL.validate_python(row)
        cells.setdefault(cell.dataset, {})[cell.method] = cell
    return cells


def published_scores(result: DatasetResult) -> dict[str, PaperCell]:
    """The paper's cells by method, where it has the dataset and the metric."""
    confusions = [row.confusion for row in result.results if row.confusion]
    classes = CATALOG[result.dataset].num_classes if result.dataset in CATALOG else 0
    # A graph of the user may have the name of a dataset.
    if any(len(counts) != classes for counts in confusions):
        return {}
    return {
        method: cell
        for method, cell in read_paper().get(result.dataset, {}).items()
        if cell.metric == result.metric.name and method in result.methods
    }
