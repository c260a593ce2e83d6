"""Studies of many runs: comparison, noise, tuning, the paper's tables, diagnosis."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.study.comparison import Comparison, Comparisons, compare
    from tempergat.study.explorer import NodePicture, draw_node
    from tempergat.study.machines import merge
    from tempergat.study.results import METRIC_NAMES

__all__ = [
    "METRIC_NAMES",
    "Comparison",
    "Comparisons",
    "NodePicture",
    "compare",
    "draw_node",
    "merge",
]

__getattr__, __dir__ = lazy_names(__name__)
