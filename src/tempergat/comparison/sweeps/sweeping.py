"""Training of every method over all seeds, group by group, through the store."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from tempergat.base import GroupLocks
from tempergat.comparison.storage.store import Group, Store
from tempergat.comparison.sweeps.agenda import Agenda
from tempergat.comparison.sweeps.progress import OnProgress
from tempergat.comparison.sweeps.sharding import Shard
from tempergat.comparison.sweeps.workers import Workers
from tempergat.data import Dataset
from tempergat.training import (
    BuildModule,
    OutOfMemory,
    Preparation,
    Run,
    RunConfig,
    bytes_per_seed,
    compile_kernels,
    free_memory,
    groups_at_once,
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
    preparation: Preparation | None = None,
    shard: Shard | None = None,
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
        preparation: What is done to features and model before every run.
        shard: The part of the groups that is trained here; all of them when left out.

    Returns:
        The runs of these seeds in the order of the configurations, failed ones
        included. Those of a shard are its own.

    Raises:
        UserError: Nothing can be trained, or the store cannot be used or does not give
            back every run that was asked for.
        OutOfMemory: A single run does not fit memory. All others have been trained.
    """
    agenda = Agenda(dataset, configs, seeds, store, device, preparation, shard)
    return Sweep(agenda, device, on_progress, builds or {}).run()


def finished_runs(
    dataset: Dataset | Mapping[int, Dataset],
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    store: Store,
    device: torch.device,
    preparation: Preparation | None = None,
    made_on: str | None = None,
) -> list[Run]:
    """The runs that `sweep` with these arguments would not have to train.

    After a sweep that was stopped, these are the runs done so far. `made_on` is the
    name of the device, where it is on another machine.
    """
    agenda = Agenda(
        dataset, configs, seeds, store, device, preparation, made_on=made_on
    )
    list(agenda.look_for_new_runs())
    return agenda.runs()


class Sweep:
    """One sweep.

    Each of its groups is in one of these states, as seen from here:

    - finished: all its runs are in the store;
    - free: nobody holds its lock; this sweep takes the lock and trains it;
    - held: another sweep holds its lock. When the lock is free again, the group is
      finished, or its holder died and the group is free;
    - replaced: it did not fit memory, so this or another sweep stored a part of it and
      cut the rest into further groups, which take its place at the front of the queue;
    - too large: a single run of its configuration does not fit memory.

    The first pass trains every free group, several at once where they are small, and
    sets held ones aside. The second pass waits for those.
    """

    def __init__(
        self,
        agenda: Agenda,
        device: torch.device,
        on_progress: OnProgress | None,
        builds: Mapping[str, BuildModule],
    ) -> None:
        self._agenda = agenda
        self._store = agenda.store
        self._device = device
        self._builds = builds
        self._on_progress = on_progress or (lambda progress: None)
        self._too_large: dict[RunConfig, str] = {}

    def run(self) -> list[Run]:
        self._report(None)
        pending = self._store.pending(self._agenda.groups)
        for group in pending:
            # While the first group trains, the kernels of the others are compiled.
            graph, config = self._graph_of(group), self._agenda.config_of(group)
            compile_kernels(graph, config, len(group.units), self._device)
        with GroupLocks(self._store.path) as locks:
            at_once = self._groups_at_once(pending)
            if at_once > 1:
                pending = self._train_several(pending, locks, at_once)
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
        return self._all_runs()

    def _groups_at_once(self, groups: Sequence[Group]) -> int:
        """How many of the groups are trained at once."""
        agenda = self._agenda
        most = len(groups)
        prepared = agenda.preparation
        if prepared and (prepared.features or prepared.matmul_precision != "highest"):
            return 1
        for group in groups:
            if self._builds.get(group.method):
                return 1
            graph, config = self._graph_of(group), agenda.config_of(group)
            runs = len(group.units)
            most = min(most, groups_at_once(graph, config, runs, self._device))
        return most

    def _train_several(
        self, groups: Sequence[Group], locks: GroupLocks, at_once: int
    ) -> list[Group]:
        """Train free groups, several at once; return those that are left.

        These are the groups that another sweep holds and those that did not fit memory
        beside others. After the first of those, no further group is started.
        """
        agenda = self._agenda
        # Long ones first, so that none is left when the others have finished.
        queue, left = deque(sorted(groups, key=self._effort, reverse=True)), []

        def show(group: Group, epoch: int) -> None:
            self._on_progress(agenda.progress_at(group, epoch))

        with Workers(at_once, self._device) as workers:
            while queue or not workers.is_idle:
                while queue and workers.is_free:
                    group = queue.popleft()
                    if not locks.acquire(group.id, wait=False):
                        left.append(group)
                    elif self._store.has(group) and self._store.pending([group]):
                        workers.start(group, partial(self._runs_of, group, at_once))
                    else:
                        locks.release(group.id)
                        left.append(group)
                if workers.is_idle:
                    continue
                group, (runs, error) = workers.wait(show)
                if runs is not None:
                    self._store.put_group(runs)
                elif isinstance(error, OutOfMemory):
                    left += [group, *queue]
                    queue.clear()
                    free_memory(self._device)
                elif error is not None:
                    raise error
                locks.release(group.id)
                if runs is not None:
                    self._report(group)
        return left

    def _effort(self, group: Group) -> int:
        """The work of a group in comparison with others on its graph."""
        config = self._agenda.config_of(group)
        per_epoch = bytes_per_seed(self._graph_of(group), config)
        return self._agenda.work(group) * per_epoch

    def _graph_of(self, group: Group) -> Dataset:
        return self._agenda.parts[group.fingerprint].dataset

    def _all_runs(self) -> list[Run]:
        """All runs asked for.

        Raises:
            OutOfMemory: A single run does not fit memory.
            UserError: The store does not give back every run.
        """
        if self._too_large:
            reason, *_ = self._too_large.values()
            _, *others = (config.method for config in self._too_large)
            also = f"; the same goes for {', '.join(others)}" if others else ""
            raise OutOfMemory(f"{reason}{also}")
        runs = self._agenda.runs()
        if len(runs) < self._agenda.runs_asked_for:
            raise self._store.lacks(self._agenda.runs_asked_for - len(runs))
        return runs

    def _finish(self, group: Group) -> list[Group]:
        """Train a group unless it is finished; return what replaces it, unfinished."""
        parts = self._unfinished(group)
        return self._train(group) if parts == [group] else parts

    def _unfinished(self, group: Group) -> list[Group]:
        """The group itself, what another sweep cut it into, or nothing.

        Only groups that are to be trained are listed.
        """
        if not self._store.has(group):
            parts = self._agenda.groups_of(
                group.fingerprint,
                group.method,
                group.config_hashes,
                group.seeds,
                len(group.units),
            )
            self._agenda.replace(group, parts)
            return self._store.pending(parts)
        if self._agenda.config_of(group) in self._too_large:
            return []
        return self._store.pending([group])

    def _train(self, group: Group) -> list[Group]:
        """Train a group, or the largest part of it that fits memory."""
        trained = group
        while (runs := self._attempt(trained)) is None:
            if len(trained.units) == 1:
                return []
            trained = first_half(trained)
        return self._put(group, trained, runs)

    def _put(self, group: Group, trained: Group, runs: Sequence[Run]) -> list[Group]:
        """Store the runs of a group, or of a part of it; return what is left of it."""
        if trained == group:
            self._store.put_group(runs)
            return []
        parts = self._store.put_part(group, runs)
        self._agenda.replace(group, parts)
        return self._store.pending(parts)

    def _attempt(self, group: Group) -> list[Run] | None:
        """Train a group's runs at once; None where memory does not suffice."""
        agenda = self._agenda

        def show(epoch: int) -> None:
            self._on_progress(agenda.progress_at(group, epoch))

        try:
            return self._runs_of(group, 1, show)
        except OutOfMemory as error:
            if len(group.units) == 1:
                self._too_large[agenda.config_of(group)] = str(error)
        free_memory(self._device)
        return None

    def _runs_of(
        self, group: Group, at_once: int, on_epoch: Callable[[int], None]
    ) -> list[Run]:
        """Train a group's runs at once, perhaps beside other groups."""
        started = time.monotonic()
        agenda = self._agenda
        agenda.refuse_altered(group)
        part = agenda.parts[group.fingerprint]
        runs = train_group(
            part.dataset,
            agenda.config_of(group),
            group.seeds,
            self._device,
            on_epoch,
            self._builds.get(group.method),
            agenda.preparation,
        )
        agenda.clock.add(agenda.work(group), (time.monotonic() - started) / at_once)
        known: dict[str, Any] = {"split": part.split, "group_id": group.id}
        if at_once > 1:
            # The peak is that of all groups that were trained at that time.
            known["memory_bytes"] = None
        return [replace(run, **known) for run in runs]

    def _report(self, group: Group | None, *, waiting: bool = False) -> None:
        """Look for new runs in the store and show where the sweep stands."""
        self._on_progress(replace(self._agenda.progress(group), waiting=waiting))


def first_half(group: Group) -> Group:
    """The first half of a group's seeds."""
    return replace(group, seeds=group.seeds[: (len(group.seeds) + 1) // 2])
