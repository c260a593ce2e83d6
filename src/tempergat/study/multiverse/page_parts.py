"""The parts of pages about the multiverse, made from results/."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tempergat.study.engine import Run, read_runs
from tempergat.study.multiverse import figures
from tempergat.study.multiverse.calibration_section import (
    calibration_answer,
    calibration_section,
)
from tempergat.study.multiverse.cells import (
    Cell,
    RunIndex,
    chosen_trainings,
    judge_cells,
)
from tempergat.study.multiverse.gains import cell_gains, variation_effects
from tempergat.study.multiverse.plan import PLAN_FILE, load_multiverse, runs_file
from tempergat.study.multiverse.reproduction_section import (
    FIGURE,
    multiverse_answer,
    multiverse_section,
    nearest_cells,
    not_run_section,
)
from tempergat.study.paper import BACKBONE_OF, read_paper


@dataclass(frozen=True)
class CalibrationPart:
    """The joint calibration as text; empty where nothing was run.

    Attributes:
        answer: The answer in three sentences.
        section: The section.
        cells: The cells that were run on all datasets, nearest first.
        near: Up to this distance a cell is near the paper's baselines.
    """

    answer: str = ""
    section: str = ""
    cells: Sequence[Cell] = ()
    near: float = 0.0


def calibration_part(results: Path) -> CalibrationPart:
    """The joint calibration for docs/calibration.md.

    Raises:
        UserError: A file cannot be read.
    """
    runs = _runs(results)
    if not runs:
        return CalibrationPart()
    plan, paper = load_multiverse(results), read_paper()
    index = RunIndex(runs)
    cells = judge_cells(plan, index, paper)
    if not cells:
        return CalibrationPart()
    has_variants = bool(cell_gains(plan, cells[:1], index))
    return CalibrationPart(
        calibration_answer(plan, cells, has_variants=has_variants),
        calibration_section(plan, cells, paper, _devices(runs)),
        [cell for cell in cells if not cell.not_run],
        plan.near_standard_errors,
    )


@dataclass(frozen=True)
class MultiversePart:
    """The gains in every cell as text; empty where nothing was run.

    Attributes:
        answer: A sentence without its full stop; empty where no variant was run.
        section: The section; where no variant was run, it says so.
    """

    answer: str = ""
    section: str = ""


def multiverse_part(results: Path, docs: Path) -> MultiversePart:
    """The gains in every cell for docs/reproduction.md, and their picture.

    Raises:
        UserError: A file cannot be read.
    """
    runs = _runs(results)
    if not runs:
        return MultiversePart()
    plan, paper = load_multiverse(results), read_paper()
    index = RunIndex(runs)
    cells = judge_cells(plan, index, paper)
    chosen = chosen_trainings(plan, cells)
    found = cell_gains(plan, cells, index)
    if not found:
        return MultiversePart("", not_run_section(plan, chosen))
    paper_gains = {
        dataset: {
            method: paper[dataset][method].mean - paper[dataset][backbone].mean
            for method, backbone in BACKBONE_OF.items()
        }
        for dataset in plan.datasets
    }
    figures.multiverse_figure(
        found, plan.variants, paper_gains, docs / "figures" / FIGURE
    )
    effects = variation_effects(plan, nearest_cells(cells), index)
    return MultiversePart(
        multiverse_answer(plan, found),
        multiverse_section(plan, found, effects, chosen, paper_gains, _devices(runs)),
    )


def _runs(results: Path) -> list[Run]:
    if not (results / PLAN_FILE).is_file():
        return []
    paths = [results / runs_file(name) for name in load_multiverse(results).datasets]
    return [run for path in paths if path.is_file() for run in read_runs(path)]


def _devices(runs: Sequence[Run]) -> str:
    return " and ".join(sorted({run.device for run in runs}))
