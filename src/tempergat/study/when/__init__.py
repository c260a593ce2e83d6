"""Gate or residual? A factorial study of what is added to plain attention."""

from tempergat.study.when.graphs import real_graph
from tempergat.study.when.plan import PLAN_FILE, RealGraph, WhenPlan, load_plan
from tempergat.study.when.report.page import WhenReport, reproduce_when, when_json
from tempergat.study.when.runs.parts import (
    GENERATED,
    TIME_NOTE,
    counts,
    run_generated,
    run_real,
)
from tempergat.study.when.runs.rows import CSV_OF_STAGE

__all__ = [
    "CSV_OF_STAGE",
    "GENERATED",
    "PLAN_FILE",
    "TIME_NOTE",
    "RealGraph",
    "WhenPlan",
    "WhenReport",
    "counts",
    "load_plan",
    "real_graph",
    "reproduce_when",
    "run_generated",
    "run_real",
    "when_json",
]
