"""Graphs by name, user graphs, and controlled noise on their features."""

from tempergat.data.csbm import csbm
from tempergat.data.dataset import Dataset, describe
from tempergat.data.features import normalize_rows
from tempergat.data.inputs import GraphInput, as_dataset, load_splits
from tempergat.data.loading import load
from tempergat.data.noise import gaussian, missing

__all__ = [
    "Dataset",
    "GraphInput",
    "as_dataset",
    "csbm",
    "describe",
    "gaussian",
    "load",
    "load_splits",
    "missing",
    "normalize_rows",
]
