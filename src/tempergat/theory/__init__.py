"""The paper's two theorems: closed forms, simulation, and checks of the proofs.

`tempergat.theory.figures` is imported by its own name, because it loads matplotlib.
"""

from tempergat.theory.logits import simulate_logits
from tempergat.theory.model import (
    Degree,
    GaussianNoise,
    MissingNoise,
    Setting,
    standard_setting,
)
from tempergat.theory.report import FULL, QUICK, Effort, Report, analyse, verdicts
from tempergat.theory.simulate import Simulation, simulate
from tempergat.theory.tables import TABLE_NAMES, read_tables, to_csv, write_tables

__all__ = [
    "FULL",
    "QUICK",
    "TABLE_NAMES",
    "Degree",
    "Effort",
    "GaussianNoise",
    "MissingNoise",
    "Report",
    "Setting",
    "Simulation",
    "analyse",
    "read_tables",
    "simulate",
    "simulate_logits",
    "standard_setting",
    "to_csv",
    "verdicts",
    "write_tables",
]
