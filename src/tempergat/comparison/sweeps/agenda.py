"""What a sweep was asked for, cut into groups, and how much of it is done."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from tempergat.comparison.storage.store import Group, Store
from tempergat.comparison.sweeps.cutting import cut_runs
from tempergat.comparison.sweeps.origin import Origin
from tempergat.comparison.sweeps.progress import Clock, Progress
from tempergat.comparison.sweeps.sharding import Shard, divide_groups
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


@dataclass
class Part:
    """The seeds that are trained on one split."""

    split: int
    dataset: Dataset
    seeds: list[int]


class Agenda:
    """The runs that a sweep was asked for, cut into groups, and which are done.

    Args:
        dataset: The graph; or the graph with each of several splits, by the splits'
            numbers.
        configs: One configuration per method.
        seeds: The seeds, each once.
        store: Where runs are stored.
        device: Where to train.
        preparation: What is done to features and model before every run.
        shard: The part of the groups that is asked for; all of them when left out.
        made_on: The name of the device, where it is on another machine.

    Attributes:
        store: Where runs are stored.
        origin: The device and the numerics of the runs.
        parts: The splits that have a seed, by fingerprint.
        preparation: As given.
        groups: The groups that hold the runs, in the order of training.
        clock: Estimates the time left.
    """

    def __init__(
        self,
        dataset: Dataset | Mapping[int, Dataset],
        configs: Sequence[RunConfig],
        seeds: Sequence[int],
        store: Store,
        device: torch.device,
        preparation: Preparation | None = None,
        shard: Shard | None = None,
        made_on: str | None = None,
    ) -> None:
        graphs = {0: dataset} if isinstance(dataset, Dataset) else dataset
        self._seeds = sorted(seeds)
        self.store = store
        self._device = device
        name = made_on or device_name(device)
        self.origin = Origin(name, numerics_of(name))
        self.preparation = preparation
        # By hash, in the order given.
        self._settings = {hash_of(config, preparation): config for config in configs}
        self.parts = self._deal(graphs)
        # Fingerprint, configuration hash and seed of each run asked for.
        self._asked: set[tuple[str, str, int]] = set()
        self.groups = list(self._cut(shard))
        self._known: dict[tuple[str, str, int], Run] = {}
        self.clock = Clock()
        self._runs_done = self._work_left = 0
        self._elsewhere = store.count_by_origin(
            list(self.parts), list(self._settings), self._seeds
        )
        self._elsewhere.pop(self.origin, None)

    def _deal(self, graphs: Mapping[int, Dataset]) -> dict[str, Part]:
        """The splits that have a seed, by fingerprint; equal ones are one."""
        parts: dict[str, Part] = {}
        numbers = list(graphs)
        for seed in self._seeds:
            split = numbers[seed % len(numbers)]
            graph = graphs[split]
            new = Part(split, graph, [])
            parts.setdefault(graph.fingerprint, new).seeds.append(seed)
        return parts

    def _cut(self, shard: Shard | None) -> Iterator[Group]:
        own_features = False
        if self.preparation is not None:
            own_features = self.preparation.features is not None
        for config in self._settings.values():
            for part in self.parts.values():
                refuse_other_training(part.dataset, config)
                if self.preparation is not None:
                    self.preparation.refuse_other_training(part.dataset, config)
        position = 0
        for key, config in self._settings.items():
            for fingerprint, part in self.parts.items():
                size = group_size(
                    part.dataset, config, self._device, own_features=own_features
                )
                groups = self.groups_of(
                    fingerprint, config.method, [key], part.seeds, size
                )
                asked = {(key, seed) for seed in part.seeds}
                if shard is not None:
                    mine = set()
                    for _, seeds in cut_runs([key], part.seeds, size):
                        if shard.takes(position):
                            mine |= {(key, seed) for seed in seeds}
                        position += 1
                    groups, asked = divide_groups(groups, mine, asked)
                self._asked |= {(fingerprint, key, seed) for key, seed in asked}
                yield from groups

    def groups_of(
        self,
        fingerprint: str,
        method: str,
        hashes: Sequence[str],
        seeds: Sequence[int],
        size: int,
    ) -> list[Group]:
        """As `Store.groups`, for runs of this sweep's device and numerics."""
        return self.store.groups(
            fingerprint, method, hashes, seeds, size, **self.origin._asdict()
        )

    def replace(self, group: Group, parts: Sequence[Group]) -> None:
        """Put the groups that another group was cut into in its place."""
        place = self.groups.index(group)
        self.groups[place : place + 1] = parts

    def config_of(self, group: Group) -> RunConfig:
        """The settings that a group's runs share."""
        known = (key for key in group.config_hashes if key in self._settings)
        return self._settings[next(known)]

    def refuse_altered(self, group: Group) -> None:
        """Refuses to train a group.

        Raises:
            UserError: It holds other runs than those of one configuration asked for.
        """
        if group.config_hashes not in [(key,) for key in self._settings]:
            raise self.store.altered_group(group)

    def work(self, group: Group) -> int:
        """Epochs of all runs of a group together."""
        return len(group.units) * self.config_of(group).epochs

    def runs(self) -> list[Run]:
        """The runs asked for that were found in the store, in the order asked for."""
        found = self._asked & self._known.keys()
        return [
            self._known[fingerprint, key, seed]
            for key in self._settings
            for seed in self._seeds
            for fingerprint, part in self.parts.items()
            if seed in part.seeds and (fingerprint, key, seed) in found
        ]

    @property
    def runs_asked_for(self) -> int:
        """How many runs were asked for."""
        return len(self._asked)

    def look_for_new_runs(self) -> Iterator[Run]:
        """The runs asked for that were not in the store at the last look."""
        for fingerprint, part in self.parts.items():
            runs = self.store.runs(
                fingerprint=fingerprint,
                config_hashes=list(self._settings),
                origin=self.origin,
            )
            for run in runs:
                key = (fingerprint, run.config_hash, run.seed)
                if key in self._known:
                    continue
                # One graph may have been read under two names, or two numbers.
                found = replace(run, dataset=part.dataset.name, split=part.split)
                self._known[key] = found
                if key in self._asked:
                    yield found

    def progress(self, group: Group | None) -> Progress:
        """The state after a look for new runs in the store."""
        new = tuple(self.look_for_new_runs())
        left = [g for g in self.groups if not self._is_known(g)]
        self._work_left = sum(self.work(g) for g in left)
        unfinished = sum(self._asked_for(g) for g in left)
        self._runs_done = self.runs_asked_for - unfinished
        return replace(self._progress(group, self._work_left), new=new)

    def progress_at(self, group: Group, epoch: int) -> Progress:
        """The state after an epoch of a group."""
        work = self._work_left - len(group.units) * epoch
        return replace(self._progress(group, work), epoch=epoch)

    def _progress(self, group: Group | None, work_left: int) -> Progress:
        config = None if group is None else self.config_of(group)
        return Progress(
            method=None if group is None else group.method,
            runs_done=self._runs_done,
            runs=self.runs_asked_for,
            group_runs=0 if group is None else self._asked_for(group),
            epochs=0 if config is None else config.epochs,
            time_left_s=self.clock.estimate(work_left),
            config=config,
            elsewhere=self._elsewhere,
        )

    def _is_known(self, group: Group) -> bool:
        return all(
            (group.fingerprint, key, seed) in self._known
            for key, seed in group.units
            if key in self._settings
        )

    def _asked_for(self, group: Group) -> int:
        """How many of a group's runs were asked for; it is trained whole."""
        return sum(
            (group.fingerprint, key, seed) in self._asked for key, seed in group.units
        )


def hash_of(config: RunConfig, preparation: Preparation | None = None) -> str:
    """The hash that runs with these settings and this preparation are stored under."""
    settings = config.model_dump(mode="json")
    if preparation is None:
        return config_hash(settings)
    condition = preparation.stored_condition
    return config_hash(settings, condition, preparation.matmul_precision)
