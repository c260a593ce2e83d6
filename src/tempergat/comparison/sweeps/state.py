"""What a sweep was asked for, cut into groups, and how much of it is done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from tempergat.comparison.storage.rows import Group, Origin, RunKey
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.workers import Job, Workers
from tempergat.data import Dataset
from tempergat.training import (
    BuildModule,
    Preparation,
    Run,
    RunConfig,
    config_hash,
    device_name,
    group_size,
    numerics_of,
    refuse_other_training,
)


@dataclass(frozen=True)
class Progress:
    """The state of a sweep, for display.

    Attributes:
        method: The method of the current group; None before the first.
        runs_done: How many of the runs asked for are in the store.
        runs: How many runs were asked for.
        group_runs: How many of them are in the current group.
        epoch: Epochs the current group has trained.
        epochs: Epochs it will train.
        new: Runs asked for that were seen in the store for the first time, whether
            this sweep or another process trained them.
        time_left_s: Estimate; None until a group has trained.
        waiting: Whether another sweep trains the group and this one waits for it.
    """

    method: str | None
    runs_done: int
    runs: int
    group_runs: int = 0
    epoch: int = 0
    epochs: int = 0
    new: tuple[Run, ...] = ()
    time_left_s: float | None = None
    waiting: bool = False


OnProgress = Callable[[Progress], None]


class _Part(NamedTuple):
    """The seeds that are trained on one split."""

    split: int
    dataset: Dataset
    seeds: list[int]


class SweepState:
    """The runs that a sweep was asked for, cut into groups, and which are done.

    The arguments are those of `sweep`; `report` calls `on_progress`.

    Attributes:
        store: Where runs are stored.
        asked: What identifies each run that was asked for.
        jobs: The groups that hold the runs, by their numbers.
    """

    def __init__(
        self,
        dataset: Dataset | Mapping[int, Dataset],
        configs: Sequence[RunConfig],
        seeds: Sequence[int],
        store: Store,
        place: torch.device | Workers,
        preparation: Preparation | None = None,
        builds: Mapping[str, BuildModule] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.store = store
        self._on_progress = on_progress or (lambda progress: None)
        if isinstance(place, torch.device):
            device, name = place, device_name(place)
        else:
            device, name = place.device, place.device_name
        # All settings have the same metric.
        self._origin = Origin(name, numerics_of(name, dict(configs[0])))
        # By hash, in the order given.
        self._settings = {hash_of(config, preparation): config for config in configs}
        self._parts: dict[str, _Part] = {}
        graphs = {0: dataset} if isinstance(dataset, Dataset) else dataset
        numbers = list(graphs)
        for seed in sorted(seeds):
            split = numbers[seed % len(numbers)]
            # Equal splits are one.
            new = _Part(split, graphs[split], [])
            self._parts.setdefault(new.dataset.fingerprint, new).seeds.append(seed)
        self.asked: set[RunKey] = set()
        self.jobs: dict[int, Job] = {}
        self._cut(device, preparation, builds or {})
        self._known: dict[RunKey, Run] = {}
        self._runs_done = self._work_left = 0
        # What was trained so far, in epochs of a run, and the time it took.
        self._work, self._time_s = 0, 0.0

    def _cut(
        self,
        device: torch.device,
        prepared: Preparation | None,
        builds: Mapping[str, BuildModule],
    ) -> None:
        own_features = prepared is not None and prepared.features is not None
        for config in self._settings.values():
            for part in self._parts.values():
                refuse_other_training(part.dataset, config)
                if prepared is not None:
                    prepared.refuse_other_training(part.dataset, config)
        origin = self._origin._asdict()
        for settings, config in self._settings.items():
            build = builds.get(config.method)
            for fingerprint, (split, graph, seeds) in self._parts.items():
                size = group_size(graph, config, device, own_features=own_features)
                groups = self.store.groups(
                    fingerprint, config.method, settings, seeds, size, **origin
                )
                self.asked |= {
                    RunKey(
                        fingerprint,
                        config.method,
                        **origin,
                        config_hash=settings,
                        seed=seed,
                    )
                    for seed in seeds
                }
                for group in groups:
                    job = Job(group, split, graph, config, build, prepared)
                    self.jobs[group.id] = job

    def replace(self, job: Job, groups: Sequence[Group]) -> list[Job]:
        """Put the groups that a group was cut into in its place."""
        del self.jobs[job.group.id]
        parts = {group.id: job._replace(group=group) for group in groups}
        self.jobs |= parts
        return list(parts.values())

    def add_time(self, job: Job, time_s: float) -> None:
        """Count a group that was trained, and the time it took."""
        self._work += job.work
        self._time_s += time_s

    def runs(self) -> list[Run]:
        """The runs asked for that are in the store, in the order asked for."""
        order = list(self._settings)
        found = self.asked & self._known.keys()
        in_order = sorted(found, key=lambda k: (order.index(k.config_hash), k.seed))
        return [self._known[key] for key in in_order]

    def _new_runs(self) -> list[Run]:
        """The runs asked for that were not in the store at the last look."""
        new = []
        for fingerprint, part in self._parts.items():
            runs = self.store.runs(
                fingerprint=fingerprint,
                config_hashes=list(self._settings),
                origin=self._origin,
            )
            for run in runs:
                key = RunKey.of(run)
                if key not in self._known:
                    # One graph may have been read under two names, or two numbers.
                    self._known[key] = replace(
                        run, dataset=part.dataset.name, split=part.split
                    )
                    if key in self.asked:
                        new.append(self._known[key])
        return new

    def report(
        self,
        job: Job | None = None,
        epoch: int | None = None,
        *,
        waiting: bool = False,
    ) -> None:
        """Show the state after an epoch of a group, or after a look into the store.

        Args:
            job: The current group; None before the first.
            epoch: How many epochs it has trained; None to look for new runs.
            waiting: Whether another sweep trains the group.
        """
        new: list[Run] = []
        if epoch is None:
            new = self._new_runs()
            jobs = self.jobs.values()
            left = [j for j in jobs if not j.group.keys <= self._known.keys()]
            self._work_left = sum(j.work for j in left)
            unfinished = sum(len(j.group.keys & self.asked) for j in left)
            self._runs_done = len(self.asked) - unfinished
        now = Progress(None, self._runs_done, len(self.asked), new=tuple(new))
        trained = 0
        if job is not None:
            trained = len(job.group.seeds) * (epoch or 0)
            now = replace(
                now,
                method=job.config.method,
                group_runs=len(job.group.keys & self.asked),
                epoch=epoch or 0,
                epochs=job.config.epochs,
                waiting=waiting,
            )
        if self._work:
            work_left = max(self._work_left - trained, 0)
            now = replace(now, time_left_s=self._time_s / self._work * work_left)
        self._on_progress(now)


def hash_of(config: RunConfig, preparation: Preparation | None = None) -> str:
    """The hash that runs with these settings and this preparation are stored under."""
    settings = config.model_dump(mode="json")
    if preparation is None:
        return config_hash(settings)
    condition = preparation.stored_condition
    return config_hash(settings, condition, preparation.matmul_precision)
