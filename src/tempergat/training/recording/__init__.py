"""What a run records of its training: curves, learned values and gates."""

from tempergat.training.recording.curves import thinned_curves
from tempergat.training.recording.gate_counts import BINS, count_gates
from tempergat.training.recording.moments import Measure, Moments, layer_records

__all__ = [
    "BINS",
    "Measure",
    "Moments",
    "count_gates",
    "layer_records",
    "thinned_curves",
]
