"""Jobs whose runs are added to a file: joint calibration, multiverse, default."""

from collections.abc import Iterator
from dataclasses import dataclass

from tempergat.data import Dataset
from tempergat.study.default_recipe import (
    confirmation_file,
    load_default_plan,
    search_result,
)
from tempergat.study.default_recipe import runs_file as default_runs_file
from tempergat.study.engine import (
    Store,
    config_hash,
    finished_runs,
    sweep,
    write_runs,
)
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
from tempergat.training import MixedRun, canonical_json, train_mixed


@dataclass(frozen=True)
class StageRuns(MethodRuns):
    """The runs of one stage. Other runs of the file stay as they are."""

    def run(self, workspace: Workspace) -> str:
        """Train the missing runs and add them to the file.

        If the training is stopped, the runs that are done are added.
        """
        graph = workspace.load(self.dataset)
        others = [
            run for run in workspace.published_runs(self.file) if not self.asks_for(run)
        ]
        with workspace.open_store() as store:
            store.put_group(self.published_here(workspace))
            watch = workspace.watch(self.dataset)
            work = (graph, self.configs, self.seeds, store, workspace.device)
            try:
                self.train_together(graph, store, workspace)
                sweep(*work, watch)
            finally:
                done = finished_runs(*work)
                path = workspace.results / self.file
                if done:
                    write_runs([*others, *done], path)
                    workspace.forget(self.file)
        return f"{path}: {len(done)} runs here, {len(others)} others kept"

    def train_together(
        self, graph: Dataset, store: Store, workspace: Workspace
    ) -> None:
        """Train runs that the sweep would train one after the other; none here."""


class SearchRuns(StageRuns):
    """Runs of a grid. Those that differ in the learning rate are trained at once."""

    def train_together(
        self, graph: Dataset, store: Store, workspace: Workspace
    ) -> None:
        """Train what is missing; few seeds of many configurations leave a GPU idle."""
        work = (graph, self.configs, self.seeds, store, workspace.device)
        done = {(run.config_hash, run.seed) for run in finished_runs(*work)}
        together: dict[str, list[MixedRun]] = {}
        for config in self.configs:
            values = config.model_dump(mode="json")
            shared = canonical_json(values | {"learning_rate": 0.0})
            for seed in self.seeds:
                if (config_hash(values), seed) not in done:
                    run = MixedRun(graph, config, seed)
                    together.setdefault(shared, []).append(run)
        for runs in together.values():
            store.put_group(train_mixed(runs, workspace.device))


def default_recipe_runs(workspace: Workspace) -> Iterator[StageRuns]:
    """The search for the default recipe, then its test on fresh seeds.

    The test has the chosen cell and the present one, once the search has the runs of as
    many families as the plan asks for.
    """
    plan = load_default_plan(workspace.results)
    configs = tuple(plan.configs())
    for graph in plan.graphs:
        yield SearchRuns(graph, default_runs_file(graph), configs, plan.run_seeds)
    found = search_result(plan, workspace.results)
    if found is None or found.families < plan.confirmation.least_families:
        return
    if dict(found.chosen) == plan.present:
        return
    both = tuple(
        plan.config(cell, method)
        for method in plan.methods
        for cell in (plan.present, found.chosen)
    )
    for graph in found.graphs:
        yield StageRuns(
            graph, confirmation_file(graph), both, plan.confirmation.run_seeds
        )


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
