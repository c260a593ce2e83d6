"""The paper's two theorems: closed forms, simulation, and checks of the proofs.

What needs torch (real layers, training, the whole report) is imported from its module.
"""

from tempergat.stats import Estimate
from tempergat.theory.logits import simulate_logits
from tempergat.theory.model import (
    Degree,
    GaussianNoise,
    MissingNoise,
    Setting,
    standard_setting,
)
from tempergat.theory.simulate import Simulation, simulate

__all__ = [
    "Degree",
    "Estimate",
    "GaussianNoise",
    "MissingNoise",
    "Setting",
    "Simulation",
    "simulate",
    "simulate_logits",
    "standard_setting",
]
