"""Studies of many runs: comparison, noise, tuning, the paper's tables, diagnosis."""

from tempergat.study.comparison import Comparison, compare
from tempergat.study.results import METRIC_NAMES

__all__ = ["METRIC_NAMES", "Comparison", "compare"]
