"""Jobs of the noise study, the test of the screening's pick, and gate or residual."""

from collections import Counter
from dataclasses import dataclass

from tempergat.data import Dataset
from tempergat.study.diagnose import (
    VALIDATION_CSV,
    generate,
    is_generated,
    read_validation,
    runs_needed,
    validate,
    write_validation,
)
from tempergat.study.engine import Progress
from tempergat.study.noise import (
    NOISE_STORE,
    NoisePlan,
    read_noise_csv,
    run_noise,
    variant_of,
    variant_of_config,
)
from tempergat.study.reproduce.jobs import Batch, Job, Stock, Workspace
from tempergat.study.when import TIME_NOTE as WHEN_TIME_NOTE
from tempergat.study.when import (
    RealGraph,
    WhenPlan,
    run_generated,
    run_real,
)
from tempergat.study.when import counts as count_when_runs
from tempergat.study.when import load_plan as load_when_plan
from tempergat.training import CLEAN, recipe_for


@dataclass(frozen=True)
class NoiseRuns(Job):
    """The runs of the noise study on one dataset."""

    dataset: str
    file: str
    plan: NoisePlan

    def stock(self, workspace: Workspace) -> Stock:
        """What is there, and what is missing."""
        configs = self.plan.configs(recipe_for(self.dataset)[1])
        each = len(self.plan.conditions) * self.plan.seeds
        asked = set(self.plan.conditions)
        found = Counter(
            variant_of(run)
            for run in read_noise_csv(workspace.results / self.file)
            if run.seed in self.plan.seed_numbers and (run.condition or CLEAN) in asked
        )
        missing = []
        for config in configs:
            absent = each - found[variant_of_config(config)]
            if absent > 0:
                missing.append(Batch(config, absent))
        needed = each * len(configs)
        present = needed - sum(batch.runs for batch in missing)
        return Stock(needed, present, tuple(missing))

    def run(self, workspace: Workspace) -> str:
        """Train the missing runs and write the file."""
        graph = workspace.load(self.dataset)
        _, recipe = recipe_for(self.dataset)
        path = workspace.results / self.file
        runs = run_noise(
            graph,
            recipe,
            self.plan,
            path,
            workspace.device,
            workspace.watch(self.dataset),
            workspace.out / NOISE_STORE,
        )
        return f"wrote {len(runs)} runs to {path}"


@dataclass(frozen=True)
class ValidationRuns(Job):
    """Screening and full runs on some graphs, to test the screening's pick.

    Attributes:
        dataset: Name of the group of graphs.
        graphs: Names of datasets or of generated graphs.
    """

    dataset: str
    graphs: tuple[str, ...]
    file: str = VALIDATION_CSV

    def stock(self, workspace: Workspace) -> Stock:
        """What is there, and what is missing."""
        missing = self._missing(workspace)
        # Graphs of one job have the same settings.
        per_graph = runs_needed(self.graphs[0])
        runs = sum(count for _, count in per_graph)
        batches = (Batch(config, count * len(missing)) for config, count in per_graph)
        return Stock(
            runs * len(self.graphs),
            runs * (len(self.graphs) - len(missing)),
            tuple(batches) if missing else (),
        )

    def run(self, workspace: Workspace) -> str:
        """Train on the missing graphs; each is written as it is finished."""
        missing = self._missing(workspace)
        path = workspace.results / self.file
        with workspace.open_store() as store:
            for name in missing:
                rows = validate(
                    name,
                    _graph(name, workspace),
                    store,
                    workspace.device,
                    workspace.watch(name),
                )
                write_validation(path, rows)
        return f"wrote {len(missing)} graphs to {path}"

    def example_graph(self, workspace: Workspace) -> Dataset:
        """The first of the graphs."""
        return _graph(self.graphs[0], workspace)

    def _missing(self, workspace: Workspace) -> list[str]:
        path = workspace.results / self.file
        done = (
            {row["graph"] for row in read_validation(path)} if path.exists() else set()
        )
        return [name for name in self.graphs if name not in done]


def _graph(name: str, workspace: Workspace) -> Dataset:
    return generate(name) if is_generated(name) else workspace.load(name)


@dataclass(frozen=True)
class WhenRuns(Job):
    """The runs of the study of gate and residual on some graphs.

    Attributes:
        dataset: "generated" for all generated graphs, or the name of a real one.
        file: The file that holds the runs that are reported.
    """

    dataset: str
    file: str

    def stock(self, workspace: Workspace) -> Stock:
        """What is there, and what is missing."""
        plan = load_when_plan(workspace.results)
        needed, present = count_when_runs(plan, workspace.results, self._real(plan))
        return Stock(needed, present, time_note=WHEN_TIME_NOTE)

    def run(self, workspace: Workspace) -> str:
        """Train the missing runs; they are written while others are trained."""
        plan, watch = load_when_plan(workspace.results), workspace.watch(self.dataset)

        def show(done: int, runs: int) -> None:
            if watch is not None:
                watch(Progress(None, done, runs))

        graph = self._real(plan)
        options = (workspace.results, workspace.out, workspace.device, show)
        done = (
            run_generated(plan, *options)
            if graph is None
            else run_real(plan, graph, *options)
        )
        return f"{self.dataset}: {done} runs are in {workspace.results / 'when'}"

    def _real(self, plan: WhenPlan) -> RealGraph | None:
        found = [graph for graph in plan.real.graphs if graph.name == self.dataset]
        return found[0] if found else None
