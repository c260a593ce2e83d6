"""Searches for settings: tuning, and calibration against the paper's baselines."""

from tempergat.study.tuning.calibration import (
    calibration_json,
    grid_configs,
)
from tempergat.study.tuning.calibration_page import (
    CALIBRATION_CSV,
    reproduce_calibration,
)
from tempergat.study.tuning.repeat_runs import count_searches, run_repeats
from tempergat.study.tuning.repeats import REPEATS_FILE, RepeatsPlan, load_repeats
from tempergat.study.tuning.searching import read_trials, search, write_tuned
from tempergat.study.tuning.tuned_page import TRIALS_FOLDER, TUNED_CSV, reproduce_tuned

__all__ = [
    "CALIBRATION_CSV",
    "REPEATS_FILE",
    "TRIALS_FOLDER",
    "TUNED_CSV",
    "RepeatsPlan",
    "calibration_json",
    "count_searches",
    "grid_configs",
    "load_repeats",
    "read_trials",
    "reproduce_calibration",
    "reproduce_tuned",
    "run_repeats",
    "search",
    "write_tuned",
]
