"""How near each cell of the grid is to the paper's baselines."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats as scipy_stats

from tempergat.stats import Summary, deviation_distance, summarise, welch
from tempergat.study.engine import Run, config_hash
from tempergat.study.multiverse.plan import MultiversePlan, Training
from tempergat.study.paper import PaperCell
from tempergat.training import SELECTION_RULES, RunConfig

Paper = Mapping[str, Mapping[str, PaperCell]]


@dataclass(frozen=True)
class Baseline:
    """One baseline on one dataset in a cell.

    Attributes:
        ours: Our test scores in percent.
        mean_distance: Our mean minus the paper's, in standard errors.
        std_distance: The logarithm of our standard deviation over the paper's, in
            standard errors.
    """

    dataset: str
    method: str
    ours: Summary
    mean_distance: float
    std_distance: float


@dataclass(frozen=True)
class Cell:
    """A training and a selection rule, beside the paper's baselines.

    Attributes:
        training: The settings that were tried.
        selection: The selection rule.
        baselines: Those that were run.
        not_run: The number of baselines that were not run. With some, the misfit and
            the distance are lower bounds, and p is an upper bound.
    """

    training: Training
    selection: str
    baselines: tuple[Baseline, ...]
    not_run: int = 0

    @property
    def distances(self) -> tuple[float, ...]:
        """Those of the means, then those of the standard deviations."""
        return (
            *(baseline.mean_distance for baseline in self.baselines),
            *(baseline.std_distance for baseline in self.baselines),
        )

    @property
    def misfit(self) -> float:
        """Sum of the squared distances."""
        return math.fsum(distance**2 for distance in self.distances)

    @property
    def p(self) -> float:
        """Probability of a misfit at least as large at the paper's own settings."""
        return float(scipy_stats.chi2.sf(self.misfit, self._statistics))

    @property
    def distance(self) -> float:
        """Root mean square of the distances, in standard errors."""
        return math.sqrt(self.misfit / self._statistics)

    @property
    def _statistics(self) -> int:
        """A mean and a standard deviation for each baseline."""
        return 2 * (len(self.baselines) + self.not_run)


class RunIndex:
    """Runs by dataset, configuration and seed."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs: dict[tuple[str, str], dict[int, Run]] = {}
        for run in runs:
            of_config = self._runs.setdefault((run.dataset, run.config_hash), {})
            of_config[run.seed] = run

    def scores(
        self, dataset: str, config: RunConfig, seeds: range, selection: str
    ) -> dict[int, float | None] | None:
        """Test scores in percent by seed; None unless there is a run of every seed.

        A failed run has no score.
        """
        key = config_hash(config.model_dump(mode="json"))
        found = self._runs.get((dataset, key), {})
        if any(seed not in found for seed in seeds):
            return None
        return {
            seed: 100.0 * found[seed].scores[selection].test
            if found[seed].status == "done"
            else None
            for seed in seeds
        }


def judge_cells(plan: MultiversePlan, runs: RunIndex, paper: Paper) -> list[Cell]:
    """The cells of which some baseline was run, nearest to the paper first.

    Those of which all baselines were run come before the others.

    Args:
        plan: The plan.
        runs: The runs.
        paper: The paper's cells by dataset and method.
    """
    cells = [
        cell
        for training in plan.trainings()
        for selection in SELECTION_RULES
        if (cell := _judge(plan, training, selection, runs, paper)).baselines
    ]
    return sorted(cells, key=lambda cell: (cell.not_run > 0, cell.misfit))


def is_near(cell: Cell, plan: MultiversePlan) -> bool:
    """Whether a cell is, or may still be, within the plan's distance of the paper."""
    return cell.distance <= plan.near_standard_errors


def is_rejected(cell: Cell, plan: MultiversePlan) -> bool:
    """Whether the paper's baselines are unlikely at a cell's settings."""
    return cell.p < plan.not_rejected_p


def chosen_trainings(plan: MultiversePlan, cells: Sequence[Cell]) -> list[Training]:
    """The trainings in which variants are run, nearest first.

    Args:
        plan: The plan.
        cells: Its cells as `judge_cells` sorts them.
    """
    whole = [cell for cell in cells if not cell.not_run]
    nearest = list(dict.fromkeys(cell.training for cell in whole))
    near = {cell.training for cell in whole if is_near(cell, plan)}
    return [
        training
        for place, training in enumerate(nearest)
        if training in near or place < plan.least_trainings
    ]


def _judge(
    plan: MultiversePlan,
    training: Training,
    selection: str,
    runs: RunIndex,
    paper: Paper,
) -> Cell:
    baselines = []
    not_run = 0
    for dataset in plan.datasets:
        for method in plan.baselines:
            config = plan.config(training, dataset, method)
            scores = runs.scores(dataset, config, plan.run_seeds, selection)
            if scores is None:
                not_run += 1
                continue
            done = [score for score in scores.values() if score is not None]
            ours = summarise(done, failed=len(scores) - len(done))
            baselines.append(_beside(dataset, method, ours, paper[dataset][method]))
    return Cell(training, selection, tuple(baselines), not_run)


def _beside(dataset: str, method: str, ours: Summary, paper: PaperCell) -> Baseline:
    if ours.mean is None or not ours.std:
        # Too few finished runs, or all alike: as far from the paper as can be.
        return Baseline(dataset, method, ours, math.inf, math.inf)
    test = welch((ours.mean, ours.std, ours.runs), (paper.mean, paper.std, paper.runs))
    return Baseline(
        dataset,
        method,
        ours,
        test.difference / test.standard_error,
        deviation_distance(ours.std, ours.runs, paper.std, paper.runs),
    )
