"""Studies of many runs: comparison, noise, tuning, the paper's tables, diagnosis."""

from tempergat.study.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
