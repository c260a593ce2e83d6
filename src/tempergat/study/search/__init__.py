"""How settings are searched: the plans, and what is tried next."""

from tempergat.study.search.plans import (
    CalibrationPlan,
    Grid,
    SearchPlan,
    Setting,
    load_calibration,
    load_search,
    search_for_any_graph,
    search_names,
    setting_word,
)
from tempergat.study.search.proposals import (
    Proposals,
    Trial,
    best_trial,
    require_optuna,
)

__all__ = [
    "CalibrationPlan",
    "Grid",
    "Proposals",
    "SearchPlan",
    "Setting",
    "Trial",
    "best_trial",
    "load_calibration",
    "load_search",
    "require_optuna",
    "search_for_any_graph",
    "search_names",
    "setting_word",
]
