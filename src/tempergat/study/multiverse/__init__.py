"""The settings that the paper leaves open, and the variants under each of them."""

from tempergat.study.multiverse.cells import (
    Cell,
    RunIndex,
    chosen_trainings,
    is_near,
    is_rejected,
    judge_cells,
)
from tempergat.study.multiverse.figures import distances_figure
from tempergat.study.multiverse.page_parts import calibration_part, multiverse_part
from tempergat.study.multiverse.plan import (
    PLAN_FILE,
    MultiversePlan,
    Training,
    load_multiverse,
    runs_file,
)
from tempergat.study.multiverse.stages import Stage, baseline_stage, variant_stages

__all__ = [
    "PLAN_FILE",
    "Cell",
    "MultiversePlan",
    "RunIndex",
    "Stage",
    "Training",
    "baseline_stage",
    "calibration_part",
    "chosen_trainings",
    "distances_figure",
    "is_near",
    "is_rejected",
    "judge_cells",
    "load_multiverse",
    "multiverse_part",
    "runs_file",
    "variant_stages",
]
