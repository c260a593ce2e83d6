"""Measurements of a graph, and a short screening of the methods on it."""

from tempergat.study.diagnose.measure import Measurements, measure
from tempergat.study.diagnose.screening import (
    SCREENED,
    SCREENING_EPOCHS,
    SCREENING_RUNS,
    Diagnosis,
    Screened,
    Screening,
    as_json,
    diagnose,
    validation_scores,
)

__all__ = [
    "SCREENED",
    "SCREENING_EPOCHS",
    "SCREENING_RUNS",
    "Diagnosis",
    "Measurements",
    "Screened",
    "Screening",
    "as_json",
    "diagnose",
    "measure",
    "validation_scores",
]
