"""Searches for settings: tuning, and calibration against the paper's baselines."""

from tempergat.study.tuning.calibration import (
    DatasetCalibration,
    calibrate,
    calibration_json,
    grid_configs,
    grid_of,
    judge,
)
from tempergat.study.tuning.calibration_page import (
    CALIBRATION_CSV,
    calibration_table,
    reproduce_calibration,
)
from tempergat.study.tuning.searching import read_trials, search, write_tuned
from tempergat.study.tuning.tuned_page import TRIALS_FOLDER, TUNED_CSV, reproduce_tuned

__all__ = [
    "CALIBRATION_CSV",
    "TRIALS_FOLDER",
    "TUNED_CSV",
    "DatasetCalibration",
    "calibrate",
    "calibration_json",
    "calibration_table",
    "grid_configs",
    "grid_of",
    "judge",
    "read_trials",
    "reproduce_calibration",
    "reproduce_tuned",
    "search",
    "write_tuned",
]
