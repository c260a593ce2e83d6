"""Measurements of a graph, and a short screening of the methods on it."""

from tempergat.study.diagnose.measure import Measurements, measure
from tempergat.study.diagnose.page import reproduce_diagnose
from tempergat.study.diagnose.screening import (
    SCREENED,
    SCREENING_EPOCHS,
    SCREENING_RUNS,
    Diagnosis,
    Screened,
    Screening,
    as_json,
    diagnose,
)
from tempergat.study.diagnose.validation import (
    VALIDATION_CSV,
    VALIDATION_DATASETS,
    generate,
    generated_graphs,
    is_generated,
    read_validation,
    runs_needed,
    validate,
    write_validation,
)

__all__ = [
    "SCREENED",
    "SCREENING_EPOCHS",
    "SCREENING_RUNS",
    "VALIDATION_CSV",
    "VALIDATION_DATASETS",
    "Diagnosis",
    "Measurements",
    "Screened",
    "Screening",
    "as_json",
    "diagnose",
    "generate",
    "generated_graphs",
    "is_generated",
    "measure",
    "read_validation",
    "reproduce_diagnose",
    "runs_needed",
    "validate",
    "write_validation",
]
