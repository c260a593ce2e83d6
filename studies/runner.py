"""Trains the runs that the results of a study lack.

A study yields its stages one after the other and receives the runs of each, so that a
later stage can depend on an earlier one. Runs go through a store: a study that is
stopped continues where it was. Finished runs are rows of a table of the study.
"""

import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property

import torch

from studies.results import STUDIES, read_whole_runs, write_runs
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.state import OnProgress, hash_of
from tempergat.comparison.sweeps.sweep import finished_runs, sweep
from tempergat.data import Dataset, load
from tempergat.nn import find_method
from tempergat.training import (
    Overrides,
    Preparation,
    Recipe,
    Run,
    RunConfig,
    device_name,
    numerics_of,
)


@dataclass(frozen=True)
class Stage:
    """Runs of some settings over some seeds on one graph.

    Attributes:
        file: The table that holds the runs, as `runs_path` takes it.
        graph: The graph's name.
        configs: The settings.
        seeds: The seeds of each.
        load: Reads the graph, or the graph with each of its splits, which the seeds
            take in turn.
        preparation: What is done to features and model before every run.
    """

    file: str
    graph: str
    configs: Sequence[RunConfig]
    seeds: Sequence[int]
    load: Callable[[str], Dataset | Mapping[int, Dataset]] = load
    preparation: Preparation | None = None

    @cached_property
    def hashes(self) -> frozenset[str]:
        """The hashes of the settings with the preparation."""
        return frozenset(hash_of(config, self.preparation) for config in self.configs)

    def asks_for(self, run: Run) -> bool:
        """Whether a run is one of this stage's."""
        is_here = run.dataset == self.graph and run.seed in self.seeds
        return is_here and run.config_hash in self.hashes


Stages = Generator[Stage, list[Run], None]


@dataclass(frozen=True)
class Changes:
    """What a user asks for in place of a study's plan.

    Attributes:
        overrides: Settings in place of the recipe's.
        methods: The methods; none for those of the plan.
        runs: How many seeds; None for those of the plan.
    """

    overrides: Overrides = field(default_factory=Overrides)
    methods: Sequence[str] = ()
    runs: int | None = None

    def __bool__(self) -> bool:
        return bool(self.overrides.values or self.methods or self.runs)

    def configs(
        self, recipe: Recipe, methods: Sequence[str], graph: str
    ) -> list[RunConfig]:
        """The settings of the methods asked for, or of those of the plan.

        Raises:
            UserError: There is no such method, or its settings do not go together.
        """
        for method in self.methods:
            find_method(method)
        chosen = self.methods or methods
        for note in self.overrides.notes_for(chosen):
            print(note, file=sys.stderr)
        return [
            self.overrides.applied_to(recipe.config_for(method), graph)
            for method in chosen
        ]


UNCHANGED = Changes()


@dataclass
class Runner:
    """Trains stages and keeps their runs.

    Attributes:
        store: The store of runs that are trained here.
        device: Where to train.
        watch: Gives the progress callback for training on a graph.
    """

    store: Store
    device: torch.device
    watch: Callable[[str], OnProgress | None] = lambda graph: None
    _published: dict[str, list[Run]] = field(default_factory=dict)

    def run(self, stages: Stages) -> int:
        """Train all stages; returns how many runs they have."""
        count, runs = 0, None
        while True:
            try:
                stage = next(stages) if runs is None else stages.send(runs)
            except StopIteration:
                return count
            runs = self.finish(stage)
            count += len(runs)

    def finish(self, stage: Stage) -> list[Run]:
        """The runs of a stage; those that are missing are trained.

        All runs of a stage come from one device and one version of the numerics.
        """
        rows = self._rows(stage.file)
        mine = [run for run in rows if stage.asks_for(run)]
        asked = len(stage.configs) * len(stage.seeds)
        for origin in {(run.device, run.numerics) for run in mine}:
            same = [run for run in mine if (run.device, run.numerics) == origin]
            if len(same) == asked:
                return same
        name = device_name(self.device)
        here = (name, numerics_of(name, dict(stage.configs[0])))
        self.store.put_group([r for r in mine if (r.device, r.numerics) == here])
        graph = stage.load(stage.graph)
        try:
            return self.train(stage, graph)
        finally:
            known = {(run.config_hash, run.seed): run for run in mine}
            work = (graph, stage.configs, stage.seeds, self.store, self.device)
            found = finished_runs(*work, stage.preparation)
            if stage.preparation is None or not stage.preparation.epochs:
                found = [replace(run, layers_at_epochs=None) for run in found]
            done = [_with_origin(run, known) for run in found]
            if done:
                others = [r for r in rows if r.dataset == stage.graph and r not in mine]
                write_runs(stage.file, [*others, *done])
                del self._published[stage.file]

    def train(self, stage: Stage, graph: Dataset | Mapping[int, Dataset]) -> list[Run]:
        """The runs of a stage from the store; those that it lacks are trained."""
        return sweep(
            graph,
            stage.configs,
            stage.seeds,
            self.store,
            self.device,
            self.watch(stage.graph),
            preparation=stage.preparation,
        )

    def _rows(self, file: str) -> list[Run]:
        if file not in self._published:
            self._published[file] = read_whole_runs(file)
        return self._published[file]


def _with_origin(run: Run, known: Mapping[tuple[str, int], Run]) -> Run:
    """A run with the date and the commit of its training, or its published row."""
    before = known.get((run.config_hash, run.seed))
    if before is not None and before.time_s == run.time_s:
        return before
    made = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": _commit()}
    return replace(run, versions={**run.versions, **made})


@cache
def _commit() -> str:
    call = ["git", "-C", str(STUDIES), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(call, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
