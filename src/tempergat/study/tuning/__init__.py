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
from tempergat.study.tuning.plans import (
    CalibrationPlan,
    SearchPlan,
    Setting,
    load_calibration,
    load_search,
    search_for_any_graph,
    search_names,
)
from tempergat.study.tuning.proposals import (
    Proposals,
    Trial,
    best_trial,
    require_optuna,
)
from tempergat.study.tuning.searching import read_trials, search, write_tuned
from tempergat.study.tuning.tuned_page import TRIALS_FOLDER, TUNED_CSV, reproduce_tuned

__all__ = [
    "CALIBRATION_CSV",
    "TRIALS_FOLDER",
    "TUNED_CSV",
    "CalibrationPlan",
    "DatasetCalibration",
    "Proposals",
    "SearchPlan",
    "Setting",
    "Trial",
    "best_trial",
    "calibrate",
    "calibration_json",
    "calibration_table",
    "grid_configs",
    "grid_of",
    "judge",
    "load_calibration",
    "load_search",
    "read_trials",
    "reproduce_calibration",
    "reproduce_tuned",
    "require_optuna",
    "search",
    "search_for_any_graph",
    "search_names",
    "write_tuned",
]
