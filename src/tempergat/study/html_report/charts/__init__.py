"""The figures of a report, each drawn as SVG text."""

from tempergat.study.html_report.charts.confusion import MOST_CLASSES, confusion_chart
from tempergat.study.html_report.charts.cost import COSTS, cost_chart
from tempergat.study.html_report.charts.curves import curves_chart
from tempergat.study.html_report.charts.gates import gates_chart
from tempergat.study.html_report.charts.heat_map import heat_map
from tempergat.study.html_report.charts.learned import LEARNED, learned_chart
from tempergat.study.html_report.charts.ranks import ranks_chart
from tempergat.study.html_report.charts.strips import strips_chart

__all__ = [
    "COSTS",
    "LEARNED",
    "MOST_CLASSES",
    "confusion_chart",
    "cost_chart",
    "curves_chart",
    "gates_chart",
    "heat_map",
    "learned_chart",
    "ranks_chart",
    "strips_chart",
]
