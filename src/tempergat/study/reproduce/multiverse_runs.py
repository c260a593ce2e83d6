"""Jobs whose runs are added to a file: joint calibration and multiverse."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tempergat.data import Dataset
from tempergat.study.engine import Store, finished_runs, sweep, write_runs
from tempergat.study.multiverse import (
    PLAN_FILE,
    Cell,
    MultiversePlan,
    RunIndex,
    Stage,
    baseline_stage,
    chosen_trainings,
    judge_cells,
    load_multiverse,
    runs_file,
    variant_stages,
)
from tempergat.study.paper import read_paper
from tempergat.study.reproduce.jobs import Workspace
from tempergat.study.reproduce.method_runs import MethodRuns


@dataclass(frozen=True)
class StageRuns(MethodRuns):
    """The runs of one stage. Other runs of the file stay as they are."""

    def run(self, workspace: Workspace) -> str:
        """Train the missing runs and add them to the file.

        If the training is stopped, the runs that are done are added.
        """
        splits = self.splits(workspace)
        others = [
            run for run in workspace.published_runs(self.file) if not self.asks_for(run)
        ]
        with workspace.open_store() as store:
            store.put_group(self.published_here(workspace))
            watch = workspace.watch(self.dataset)
            work = (splits, self.configs, self.seeds, store, workspace.device)
            try:
                self.train_together(splits, store, workspace)
                sweep(*work, watch)
            finally:
                done = finished_runs(*work)
                path = workspace.results / self.file
                if done:
                    write_runs([*others, *done], path)
                    workspace.forget(self.file)
        return f"{path}: {len(done)} runs here, {len(others)} others kept"

    def splits(self, workspace: Workspace) -> Mapping[int, Dataset]:
        """The graph with each split that is used, by number; the first one here."""
        return {0: workspace.load(self.dataset)}

    def train_together(
        self, splits: Mapping[int, Dataset], store: Store, workspace: Workspace
    ) -> None:
        """Train runs that the sweep would train one after the other; none here."""

    def example_graph(self, workspace: Workspace) -> Dataset:
        """The graph with the first of its splits."""
        return next(iter(self.splits(workspace).values()))


def joint_baselines(workspace: Workspace) -> Iterator[StageRuns]:
    """The baselines of the joint calibration; none where results/ has no plan."""
    if not (workspace.results / PLAN_FILE).is_file():
        return
    plan = load_multiverse(workspace.results)
    for dataset in plan.datasets:
        stage = baseline_stage(plan, dataset, _cells(plan, workspace))
        if stage is not None:
            yield _job(plan, stage)


def multiverse_variants(workspace: Workspace) -> Iterator[StageRuns]:
    """The variants in the trainings near the paper, once the baselines are complete."""
    if not (workspace.results / PLAN_FILE).is_file():
        return
    plan = load_multiverse(workspace.results)
    baselines = list(joint_baselines(workspace))
    if not all(job.stock(workspace).is_complete for job in baselines):
        return
    trainings = chosen_trainings(plan, _cells(plan, workspace))
    for stage in variant_stages(plan, trainings):
        yield _job(plan, stage)


def _job(plan: MultiversePlan, stage: Stage) -> StageRuns:
    return StageRuns(
        stage.dataset, runs_file(stage.dataset), stage.configs, plan.run_seeds
    )


def _cells(plan: MultiversePlan, workspace: Workspace) -> list[Cell]:
    runs = [
        run
        for dataset in plan.datasets
        for run in workspace.published_runs(runs_file(dataset))
    ]
    return judge_cells(plan, RunIndex(runs), read_paper())
