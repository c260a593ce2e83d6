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
from tempergat.theory.report import FULL, QUICK, Effort, Report, analyse
from tempergat.theory.simulate import Simulation, simulate
from tempergat.theory.tables import to_csv

__all__ = [
    "FULL",
    "QUICK",
    "Degree",
    "Effort",
    "GaussianNoise",
    "MissingNoise",
    "Report",
    "Setting",
    "Simulation",
    "analyse",
    "simulate",
    "simulate_logits",
    "standard_setting",
    "to_csv",
]
