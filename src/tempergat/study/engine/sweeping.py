"""Training of every method over all seeds, group by group, through the store."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from tempergat.base import GroupLocks
from tempergat.data import Dataset
from tempergat.study.engine.origin import Origin
from tempergat.study.engine.progress import Clock, OnProgress, Progress
from tempergat.study.engine.store import Group, Store
from tempergat.training import (
    CLEAN,
    BuildModule,
    Condition,
    FeatureNoise,
    OutOfMemory,
    Run,
    RunConfig,
    config_hash,
    device_name,
    free_memory,
    group_size,
    numerics_of,
    refuse_other_training,
    train_group,
)


def sweep(
    dataset: Dataset | Mapping[int, Dataset],
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    store: Store,
    device: torch.device,
    on_progress: OnProgress | None = None,
    builds: Mapping[str, BuildModule] | None = None,
    noise: FeatureNoise | None = None,
) -> list[Run]:
    """Train the runs of every configuration and seed that the store does not hold yet.

    Runs are cut into groups that train together. The cut is stored, and the runs of a
    group are written all at once, so a sweep that is stopped at any moment and started
    again ends with the same runs. A group that does not fit memory is cut into smaller
    ones for good. Several sweeps may share the store: each leaves alone the groups that
    another trains, and takes them over if that one dies.

    Runs made on another device, or by code with other numerics, are not used.

    Args:
        dataset: The graph; or the graph with each of several splits, by the splits'
            numbers. They take turns: of S splits, seed r trains on number r mod S.
        configs: One configuration per method.
        seeds: The seeds, each once.
        store: Where runs are stored.
        device: Where to train.
        on_progress: Called after every epoch and every group, for display.
        builds: For each method that is a user's own module, the function that builds
            it.
        noise: Noise on the features: every seed is trained under every condition.

    Returns:
        The runs of these seeds in the order of the configurations, then of the
        conditions, failed ones included.

    Raises:
        UserError: Nothing can be trained, or the store cannot be used or does not give
            back every run that was asked for.
        OutOfMemory: A single run does not fit memory. All others have been trained.
    """
    graphs = {0: dataset} if isinstance(dataset, Dataset) else dataset
    return _Sweep(
        graphs, configs, seeds, store, device, on_progress, builds or {}, noise
    ).run()


def finished_runs(
    dataset: Dataset | Mapping[int, Dataset],
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    store: Store,
    device: torch.device,
    noise: FeatureNoise | None = None,
) -> list[Run]:
    """The runs that `sweep` with these arguments would not have to train.

    After a sweep that was stopped, these are the runs done so far.
    """
    graphs = {0: dataset} if isinstance(dataset, Dataset) else dataset
    return _Sweep(graphs, configs, seeds, store, device, None, {}, noise).stored()


@dataclass
class _Part:
    """The seeds that are trained on one split."""

    split: int
    dataset: Dataset
    seeds: list[int]


@dataclass(frozen=True)
class _Setting:
    """A configuration under one condition."""

    config: RunConfig
    condition: Condition


class _Sweep:
    """One sweep.

    Each of its groups is in one of these states, as seen from here:

    - finished: all its runs are in the store;
    - free: nobody holds its lock; this sweep takes the lock and trains it;
    - held: another sweep holds its lock. When the lock is free again, the group is
      finished, or its holder died and the group is free;
    - replaced: it did not fit memory, so this or another sweep stored a part of it and
      cut the rest into further groups, which take its place at the front of the queue;
    - too large: a single run of its configuration does not fit memory.

    The first pass trains every free group and sets held ones aside. The second pass
    waits for those.
    """

    def __init__(
        self,
        graphs: Mapping[int, Dataset],
        configs: Sequence[RunConfig],
        seeds: Sequence[int],
        store: Store,
        device: torch.device,
        on_progress: OnProgress | None,
        builds: Mapping[str, BuildModule],
        noise: FeatureNoise | None,
    ) -> None:
        self._seeds = sorted(seeds)
        self._store = store
        self._device = device
        name = device_name(device)
        self._origin = Origin(name, numerics_of(name))
        self._builds = builds
        self._noise = noise
        self._on_progress = on_progress or (lambda progress: None)
        # By hash, in the order of the configurations.
        self._settings = {
            _hash(config, condition, noise): _Setting(config, condition)
            for config in configs
            for condition in ((CLEAN,) if noise is None else noise.conditions)
        }
        self._parts = self._deal(graphs)
        self._groups = list(self._cut())
        self._known: dict[tuple[str, str, int], Run] = {}
        self._too_large: dict[RunConfig, str] = {}
        self._clock = Clock()
        self._runs_done = self._work_left = 0
        self._elsewhere = store.count_by_origin(
            list(self._parts), list(self._settings), self._seeds
        )
        self._elsewhere.pop(self._origin, None)

    def _deal(self, graphs: Mapping[int, Dataset]) -> dict[str, _Part]:
        """The splits that have a seed, by fingerprint; equal ones are one."""
        parts: dict[str, _Part] = {}
        numbers = list(graphs)
        for seed in self._seeds:
            split = numbers[seed % len(numbers)]
            graph = graphs[split]
            new = _Part(split, graph, [])
            parts.setdefault(graph.fingerprint, new).seeds.append(seed)
        return parts

    def _cut(self) -> Iterator[Group]:
        hashes: dict[RunConfig, list[str]] = {}
        for key, setting in self._settings.items():
            hashes.setdefault(setting.config, []).append(key)
        for config in hashes:
            for part in self._parts.values():
                refuse_other_training(part.dataset, config)
        for config, keys in hashes.items():
            for fingerprint, part in self._parts.items():
                size = group_size(
                    part.dataset,
                    config,
                    self._device,
                    own_features=self._noise is not None,
                )
                yield from self._groups_of(
                    fingerprint, config.method, keys, part.seeds, size
                )

    def _groups_of(
        self,
        fingerprint: str,
        method: str,
        hashes: Sequence[str],
        seeds: Sequence[int],
        size: int,
    ) -> list[Group]:
        return self._store.groups(
            fingerprint, method, hashes, seeds, size, **self._origin._asdict()
        )

    def run(self) -> list[Run]:
        self._report(None)
        pending = self._store.pending(self._groups)
        with GroupLocks(self._store.path) as locks:
            for wait in (False, True):
                queue, held = deque(pending), []
                while queue:
                    group = queue.popleft()
                    if not locks.acquire(group.id, wait=False):
                        if not wait:
                            held.append(group)
                            continue
                        self._report(group, waiting=True)
                        locks.acquire(group.id, wait=True)
                    try:
                        replacements = self._finish(group)
                    finally:
                        locks.release(group.id)
                    queue.extendleft(reversed(replacements))
                    self._report(group)
                pending = held
        if self._too_large:
            reason, *_ = self._too_large.values()
            _, *others = (config.method for config in self._too_large)
            also = f"; the same goes for {', '.join(others)}" if others else ""
            raise OutOfMemory(f"{reason}{also}")
        runs = self._runs()
        if len(runs) < self._runs_asked_for:
            raise self._store.lacks(self._runs_asked_for - len(runs))
        return runs

    def stored(self) -> list[Run]:
        list(self._look_for_new_runs())
        return self._runs()

    def _runs(self) -> list[Run]:
        return [
            self._known[fingerprint, key, seed]
            for key in self._settings
            for seed in self._seeds
            for fingerprint, part in self._parts.items()
            if seed in part.seeds and (fingerprint, key, seed) in self._known
        ]

    def _finish(self, group: Group) -> list[Group]:
        """Train a group unless it is finished; return what replaces it, unfinished."""
        if not self._store.has(group):
            parts = self._groups_of(
                group.fingerprint,
                group.method,
                group.config_hashes,
                group.seeds,
                len(group.units),
            )
            self._replace(group, parts)
            return self._store.pending(parts)
        too_large = self._config(group) in self._too_large
        if too_large or not self._store.pending([group]):
            return []
        return self._train(group)

    def _train(self, group: Group) -> list[Group]:
        """Train a group, or the largest part of it that fits memory."""
        trained = group
        while (runs := self._attempt(trained)) is None:
            if len(trained.units) == 1:
                return []
            trained = _first_half(trained)
        if trained == group:
            self._store.put_group(runs)
            return []
        parts = self._store.put_part(group, runs)
        self._replace(group, parts)
        return self._store.pending(parts)

    def _attempt(self, group: Group) -> list[Run] | None:
        """Train a group's runs at once; None where memory does not suffice."""
        started = time.monotonic()
        part = self._parts[group.fingerprint]
        noise = self._noise
        if not set(group.config_hashes) <= set(self._settings):
            raise self._store.altered_group(group)
        if noise is not None:
            conditions = [self._settings[key].condition for key in group.config_hashes]
            noise = replace(noise, conditions=tuple(conditions))
        try:
            runs = train_group(
                part.dataset,
                self._config(group),
                group.seeds,
                self._device,
                lambda epoch: self._report_epoch(group, epoch),
                self._builds.get(group.method),
                noise,
            )
        except OutOfMemory as error:
            if len(group.units) == 1:
                self._too_large[self._config(group)] = str(error)
        else:
            self._clock.add(self._work(group), time.monotonic() - started)
            return [replace(run, split=part.split, group_id=group.id) for run in runs]
        free_memory(self._device)
        return None

    def _replace(self, group: Group, parts: Sequence[Group]) -> None:
        place = self._groups.index(group)
        self._groups[place : place + 1] = parts

    def _report(self, group: Group | None, *, waiting: bool = False) -> None:
        """Look for new runs in the store and show where the sweep stands."""
        new = tuple(self._look_for_new_runs())
        left = [g for g in self._groups if not self._is_known(g)]
        self._work_left = sum(self._work(g) for g in left)
        unfinished = sum(self._asked_for(g) for g in left)
        self._runs_done = self._runs_asked_for - unfinished
        progress = self._progress(group, self._work_left)
        self._on_progress(replace(progress, new=new, waiting=waiting))

    def _report_epoch(self, group: Group, epoch: int) -> None:
        work = self._work_left - len(group.units) * epoch
        self._on_progress(replace(self._progress(group, work), epoch=epoch))

    def _progress(self, group: Group | None, work_left: int) -> Progress:
        config = None if group is None else self._config(group)
        return Progress(
            method=None if group is None else group.method,
            runs_done=self._runs_done,
            runs=self._runs_asked_for,
            group_runs=0 if group is None else self._asked_for(group),
            epochs=0 if config is None else config.epochs,
            time_left_s=self._clock.estimate(work_left),
            config=config,
            elsewhere=self._elsewhere,
        )

    def _look_for_new_runs(self) -> Iterator[Run]:
        for fingerprint, part in self._parts.items():
            runs = self._store.runs(
                fingerprint=fingerprint,
                config_hashes=list(self._settings),
                origin=self._origin,
            )
            for run in runs:
                key = (fingerprint, run.config_hash, run.seed)
                if key in self._known:
                    continue
                # One graph may have been read under two names, or two numbers.
                found = replace(run, dataset=part.dataset.name, split=part.split)
                self._known[key] = found
                if run.seed in part.seeds:
                    yield found

    def _is_known(self, group: Group) -> bool:
        return all(
            (group.fingerprint, key, seed) in self._known
            for key, seed in group.units
            if key in self._settings
        )

    @property
    def _runs_asked_for(self) -> int:
        seeds = sum(len(part.seeds) for part in self._parts.values())
        return seeds * len(self._settings)

    def _asked_for(self, group: Group) -> int:
        """How many of a group's runs were asked for; it is trained whole."""
        seeds = set(group.seeds) & set(self._parts[group.fingerprint].seeds)
        return len(seeds) * len(group.config_hashes)

    def _config(self, group: Group) -> RunConfig:
        known = (key for key in group.config_hashes if key in self._settings)
        return self._settings[next(known)].config

    def _work(self, group: Group) -> int:
        return len(group.units) * self._config(group).epochs


def _first_half(group: Group) -> Group:
    """The first half of a group's configurations or, of a single one, of its seeds."""
    if len(group.config_hashes) > 1:
        half = (len(group.config_hashes) + 1) // 2
        return replace(group, config_hashes=group.config_hashes[:half])
    return replace(group, seeds=group.seeds[: (len(group.seeds) + 1) // 2])


def _hash(config: RunConfig, condition: Condition, noise: FeatureNoise | None) -> str:
    return config_hash(
        config.model_dump(mode="json"),
        None if condition == CLEAN else condition,
        "highest" if noise is None else noise.matmul_precision,
    )
