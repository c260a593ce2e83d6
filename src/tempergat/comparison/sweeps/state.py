"""What a sweep was asked for, cut into groups, and how much of it is done."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from tempergat.comparison.storage.rows import Group, Origin, RunKey, even_groups
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.shards import Shard, divide_groups
from tempergat.comparison.sweeps.workers import Workers
from tempergat.data import Dataset
from tempergat.training import (
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


class Part(NamedTuple):
    """The seeds that are trained on one split."""

    split: int
    dataset: Dataset
    seeds: list[int]


class SweepState:
    """The runs that a sweep was asked for, cut into groups, and which are done.

    Args:
        dataset: The graph; or the graph with each of several splits, by the splits'
            numbers.
        configs: One configuration per method.
        seeds: The seeds, each once.
        store: Where runs are stored.
        place: Where to train: a device of this machine, or workers on others.
        preparation: What is done to features and model before every run.
        shard: The part of the groups that is asked for; all of them when left out.

    Attributes:
        store: Where runs are stored.
        parts: The splits that have a seed, by fingerprint.
        preparation: What is done to features and model before every run.
        asked: What identifies each run that was asked for.
        groups: The groups that hold the runs, in the order of training.
    """

    def __init__(
        self,
        dataset: Dataset | Mapping[int, Dataset],
        configs: Sequence[RunConfig],
        seeds: Sequence[int],
        store: Store,
        place: torch.device | Workers,
        preparation: Preparation | None = None,
        shard: Shard | None = None,
    ) -> None:
        self.store = store
        self.preparation = preparation
        if isinstance(place, torch.device):
            device, name = place, device_name(place)
        else:
            device, name = place.device, place.device_name
        self._origin = Origin(name, numerics_of(name))
        # By hash, in the order given.
        self._settings = {hash_of(config, preparation): config for config in configs}
        self.parts: dict[str, Part] = {}
        graphs = {0: dataset} if isinstance(dataset, Dataset) else dataset
        numbers = list(graphs)
        # The graph that each seed is trained on.
        self._fingerprints: dict[int, str] = {}
        for seed in sorted(seeds):
            split = numbers[seed % len(numbers)]
            # Equal splits are one.
            new = Part(split, graphs[split], [])
            self._fingerprints[seed] = new.dataset.fingerprint
            self.parts.setdefault(new.dataset.fingerprint, new).seeds.append(seed)
        self.asked: set[RunKey] = set()
        self.groups = list(self._cut(device, shard))
        self._known: dict[RunKey, Run] = {}
        self._runs_done = self._work_left = 0
        # What was trained so far, in epochs of a run, and the time it took.
        self._work, self._time_s = 0, 0.0

    def _cut(self, device: torch.device, shard: Shard | None) -> Iterator[Group]:
        prepared = self.preparation
        own_features = prepared is not None and prepared.features is not None
        for config in self._settings.values():
            for part in self.parts.values():
                refuse_other_training(part.dataset, config)
                if prepared is not None:
                    prepared.refuse_other_training(part.dataset, config)
        position = 0
        for config_hash_, config in self._settings.items():
            for fingerprint, part in self.parts.items():
                size = group_size(
                    part.dataset, config, device, own_features=own_features
                )
                groups = self.store.groups(
                    fingerprint,
                    config.method,
                    config_hash_,
                    part.seeds,
                    size,
                    **self._origin._asdict(),
                )
                asked = set(part.seeds)
                if shard is not None:
                    mine: set[int] = set()
                    for seeds in even_groups(part.seeds, size):
                        if shard.takes(position):
                            mine.update(seeds)
                        position += 1
                    groups, asked = divide_groups(groups, mine, asked)
                self.asked |= {self._key(config_hash_, seed) for seed in asked}
                yield from groups

    def _key(self, config_hash_: str, seed: int) -> RunKey:
        method = self._settings[config_hash_].method
        device, numerics = self._origin
        graph = self._fingerprints[seed]
        return RunKey(graph, method, numerics, device, config_hash_, seed)

    def replace(self, group: Group, parts: Sequence[Group]) -> None:
        """Put the groups that another group was cut into in its place."""
        place = self.groups.index(group)
        self.groups[place : place + 1] = parts

    def config_of(self, group: Group) -> RunConfig:
        """The settings that a group's runs share."""
        return self._settings[group.config_hashes[0]]

    def dataset_of(self, group: Group) -> Dataset:
        """The graph that a group is trained on."""
        return self.parts[group.fingerprint].dataset

    def work(self, group: Group) -> int:
        """Epochs of all runs of a group together."""
        return len(group.seeds) * self.config_of(group).epochs

    def add_time(self, group: Group, time_s: float) -> None:
        """Count a group that was trained, and the time it took."""
        self._work += self.work(group)
        self._time_s += time_s

    def runs(self) -> list[Run]:
        """The runs asked for that are in the store, in the order asked for."""
        keys = (
            self._key(h, seed) for h in self._settings for seed in self._fingerprints
        )
        return [self._known[k] for k in keys if k in self.asked and k in self._known]

    def look_for_new_runs(self) -> list[Run]:
        """The runs asked for that were not in the store at the last look."""
        new = []
        for fingerprint, part in self.parts.items():
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

    def progress(
        self, group: Group | None, epoch: int | None = None, *, waiting: bool = False
    ) -> Progress:
        """The state after an epoch of a group, or after a look into the store.

        Args:
            group: The current group; None before the first.
            epoch: How many epochs it has trained; None to look for new runs.
            waiting: Whether another sweep trains the group.
        """
        new: list[Run] = []
        if epoch is None:
            new = self.look_for_new_runs()
            left = [g for g in self.groups if not g.keys <= self._known.keys()]
            self._work_left = sum(self.work(g) for g in left)
            unfinished = sum(len(g.keys & self.asked) for g in left)
            self._runs_done = len(self.asked) - unfinished
        time_left = None
        if self._work:
            trained = len(group.seeds) * (epoch or 0) if group else 0
            work_left = max(self._work_left - trained, 0)
            time_left = self._time_s / self._work * work_left
        return Progress(
            method=group.method if group else None,
            runs_done=self._runs_done,
            runs=len(self.asked),
            group_runs=len(group.keys & self.asked) if group else 0,
            epoch=epoch or 0,
            epochs=self.config_of(group).epochs if group else 0,
            new=tuple(new),
            time_left_s=time_left,
            waiting=waiting,
        )


def hash_of(config: RunConfig, preparation: Preparation | None = None) -> str:
    """The hash that runs with these settings and this preparation are stored under."""
    settings = config.model_dump(mode="json")
    if preparation is None:
        return config_hash(settings)
    condition = preparation.stored_condition
    return config_hash(settings, condition, preparation.matmul_precision)
