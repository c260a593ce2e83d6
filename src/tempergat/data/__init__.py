"""Graphs by name, graphs of one's own, and controlled noise."""

from tempergat.data.csbm import csbm
from tempergat.data.dataset import Dataset
from tempergat.data.features import normalize_rows
from tempergat.data.loading import load
from tempergat.data.noise import gaussian, missing

__all__ = ["Dataset", "csbm", "gaussian", "load", "missing", "normalize_rows"]
