"""Jobs whose runs go through the store into a CSV of runs."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tempergat.study.engine import Progress, Run, config_hash, sweep, write_runs
from tempergat.study.paper import PAPER_METHODS, PLAIN_METHODS
from tempergat.study.reproduce.jobs import Batch, Job, Stock, Workspace
from tempergat.study.search import CalibrationPlan, SearchPlan, Trial
from tempergat.study.tuning import (
    REPEATS_FILE,
    RepeatsPlan,
    count_searches,
    grid_configs,
    read_trials,
    run_repeats,
    search,
    write_tuned,
)
from tempergat.training import (
    NUMERICS,
    Recipe,
    RunConfig,
    device_name,
    load_recipe,
    numerics_of,
)

_SEARCH_TIME = (
    "about a minute per search on an H200; processes with the same --out and --results "
    "share the searches"
)


@dataclass(frozen=True)
class MethodRuns(Job):
    """Runs of some configurations over some seeds on one dataset."""

    dataset: str
    file: str
    configs: tuple[RunConfig, ...]
    seeds: range

    def stock(self, workspace: Workspace) -> Stock:
        """What is there, and what is missing.

        All runs of a dataset come from one device and one version of the numerics.
        Where some are missing, only those that could be trained here count.
        """
        needed = len(self.configs) * len(self.seeds)
        by_origin: dict[str, list[Run]] = {}
        for run in self._published(workspace):
            by_origin.setdefault(_origin(run.device, run.numerics), []).append(run)
        if any(len(runs) == needed for runs in by_origin.values()):
            return Stock(needed, needed)
        usable = by_origin.pop(_origin_here(workspace), [])
        counts = Counter(run.config_hash for run in usable)
        missing = tuple(
            Batch(config, len(self.seeds) - counts[_hash(config)])
            for config in self.configs
            if counts[_hash(config)] < len(self.seeds)
        )
        elsewhere = {origin: len(runs) for origin, runs in by_origin.items()}
        return Stock(needed, len(usable), missing, elsewhere)

    def run(self, workspace: Workspace) -> str:
        """Train the missing runs and replace the rows of the dataset."""
        graph = workspace.load(self.dataset)
        with workspace.open_store() as store:
            store.put_group(self.published_here(workspace))
            watch = workspace.watch(self.dataset)
            runs = sweep(
                graph, self.configs, self.seeds, store, workspace.device, watch
            )
        merged = write_runs(runs, workspace.results / self.file)
        workspace.forget(self.file)
        return merged.sentence

    def published_here(self, workspace: Workspace) -> list[Run]:
        """The runs in results/ that could have been trained here."""
        here = _origin_here(workspace)
        return [
            run
            for run in self._published(workspace)
            if _origin(run.device, run.numerics) == here
        ]

    def _published(self, workspace: Workspace) -> list[Run]:
        return [r for r in workspace.published_runs(self.file) if self.asks_for(r)]

    def asks_for(self, run: Run) -> bool:
        """Whether a run is one of this job's."""
        is_wanted = run.dataset == self.dataset and run.seed in self.seeds
        return is_wanted and run.config_hash in {_hash(c) for c in self.configs}


@dataclass(frozen=True)
class SearchTrials(Job):
    """The trials of the search for settings on one dataset."""

    dataset: str
    file: str
    plan: SearchPlan

    def stock(self, workspace: Workspace) -> Stock:
        """What is there; an incomplete search is run from its beginning."""
        per_backbone = self.plan.trials * self.plan.seeds
        needed = per_backbone * len(PLAIN_METHODS)
        path = workspace.results / self.file
        if path.exists():
            found = Counter(line["backbone"] for line in read_trials(path))
            if all(found[name] >= self.plan.trials for name in PLAIN_METHODS):
                return Stock(needed, needed)
        recipe = load_recipe(self.plan.base)
        batches = (Batch(recipe.config_for(n), per_backbone) for n in PLAIN_METHODS)
        return Stock(needed, 0, tuple(batches))

    def run(self, workspace: Workspace) -> str:
        """Search; trials whose runs are in the store are not trained again."""
        graph = workspace.load(self.dataset)
        trials: list[Trial] = []
        with workspace.open_store() as store:
            for backbone in PLAIN_METHODS:
                trials += search(
                    graph,
                    self.plan,
                    backbone,
                    store,
                    workspace.device,
                    on_progress=workspace.watch(f"{self.dataset}, search"),
                )
        table = workspace.results / self.file
        recipe, _ = write_tuned(
            self.dataset, self.plan, trials, tuned_recipes(workspace), table.parent
        )
        return f"wrote {table} and the recipe {recipe}"


@dataclass(frozen=True)
class RepeatedSearches(Job):
    """The further searches of every method on one dataset."""

    dataset: str
    plan: RepeatsPlan
    file: str = REPEATS_FILE

    def stock(self, workspace: Workspace) -> Stock:
        """What is there, and what is missing; searches are counted."""
        counts = count_searches(self.plan, workspace.results, self.dataset)
        return Stock(*counts, unit="searches", time_note=_SEARCH_TIME)

    def run(self, workspace: Workspace) -> str:
        """Search; processes with the same folders share the searches."""
        graph = workspace.load(self.dataset)
        watch = workspace.watch(f"{self.dataset}, searches")

        def show(done: int, searches: int) -> None:
            if watch is not None:
                watch(Progress(None, done, searches))

        with workspace.open_store() as store:
            whole = run_repeats(
                self.plan, graph, workspace.results, store, workspace.device, show
            )
        return f"{self.dataset}: {whole} searches are in {workspace.results}"


def paper_runs(dataset: str, file: str, recipe: Recipe) -> MethodRuns:
    """The paper's methods with one recipe, over as many seeds as it says."""
    configs = tuple(recipe.config_for(method) for method in PAPER_METHODS)
    return MethodRuns(dataset, file, configs, range(recipe.runs))


def calibration_runs(dataset: str, file: str, plan: CalibrationPlan) -> MethodRuns:
    """The baselines in every cell of a dataset's grid."""
    configs = grid_configs(plan, dataset)
    return MethodRuns(dataset, file, tuple(configs), plan.run_seeds)


def tuned_recipes(workspace: Workspace) -> Path:
    """Where recipes go that a search here has found."""
    return workspace.out / "recipes" / "tuned"


def _origin_here(workspace: Workspace) -> str:
    device = device_name(workspace.device)
    return _origin(device, numerics_of(device))


def _origin(device: str, numerics: int) -> str:
    return device if numerics == NUMERICS else f"{device}, numerics {numerics}"


def _hash(config: RunConfig) -> str:
    return config_hash(config.model_dump(mode="json"))
