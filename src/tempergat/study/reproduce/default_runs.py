"""Jobs of the default recipe: search, test on fresh seeds, second plan."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tempergat.data import Dataset
from tempergat.study.default_recipe import (
    confirmation_file,
    load_default_plan,
    load_second_plan,
    runs_file,
    search_result,
    second_file,
    second_graphs,
)
from tempergat.study.engine import Store, config_hash, finished_runs
from tempergat.study.reproduce.jobs import Workspace
from tempergat.study.reproduce.multiverse_runs import StageRuns
from tempergat.study.when import load_plan as load_when_plan
from tempergat.study.when import real_graph
from tempergat.training import MixedRun, canonical_json, train_mixed


class SearchRuns(StageRuns):
    """Runs that differ in the learning rate or the split are trained at once."""

    def train_together(
        self, splits: Mapping[int, Dataset], store: Store, workspace: Workspace
    ) -> None:
        """Train what is missing; few runs at once leave a GPU idle."""
        work = (splits, self.configs, self.seeds, store, workspace.device)
        done = {(run.config_hash, run.seed) for run in finished_runs(*work)}
        together: dict[str, list[tuple[int, MixedRun]]] = {}
        numbers = list(splits)
        for config in self.configs:
            values = config.model_dump(mode="json")
            shared = canonical_json(values | {"learning_rate": 0.0})
            for seed in self.seeds:
                if (config_hash(values), seed) not in done:
                    # As `sweep` takes them in turn.
                    split = numbers[seed % len(numbers)]
                    run = MixedRun(splits[split], config, seed)
                    together.setdefault(shared, []).append((split, run))
        for group in together.values():
            trained = train_mixed([run for _, run in group], workspace.device)
            store.put_group(
                [
                    replace(run, split=split)
                    for run, (split, _) in zip(trained, group, strict=True)
                ]
            )


class SplitRuns(SearchRuns):
    """Runs on the splits of a graph of results/when/plan.yaml."""

    def splits(self, workspace: Workspace) -> Mapping[int, Dataset]:
        """The graph with each of the splits that are used."""
        return real_graph(load_when_plan(workspace.results).real, self.dataset)


def default_recipe_runs(workspace: Workspace) -> Iterator[StageRuns]:
    """The search for the default recipe, its test on fresh seeds, and the second plan.

    The test has the chosen cell and the present one, once the search has the runs of as
    many families as the plan asks for.
    """
    yield from _first_plan(workspace)
    second = load_second_plan(workspace.results)
    if second is not None:
        for graph in second_graphs(workspace.results):
            file, configs = second_file(graph), second.configs()
            yield SplitRuns(graph, file, configs, second.run_seeds)


def _first_plan(workspace: Workspace) -> Iterator[StageRuns]:
    plan = load_default_plan(workspace.results)
    configs = tuple(plan.configs())
    for graph in plan.graphs:
        yield SearchRuns(graph, runs_file(graph), configs, plan.run_seeds)
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
