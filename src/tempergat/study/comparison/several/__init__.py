"""Methods compared on several graphs, one after another."""

from tempergat.study.comparison.several.across import (
    AcrossGraphs,
    Record,
    across_graphs,
)
from tempergat.study.comparison.several.comparisons import Comparisons
from tempergat.study.comparison.several.prepared import Prepared, check_prepared

__all__ = [
    "AcrossGraphs",
    "Comparisons",
    "Prepared",
    "Record",
    "across_graphs",
    "check_prepared",
]
