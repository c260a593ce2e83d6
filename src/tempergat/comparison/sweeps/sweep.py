"""Training of every method over all seeds, group by group, through the store."""

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch

from tempergat.base import GroupLocks
from tempergat.comparison.storage.store import Store
from tempergat.comparison.sweeps.state import OnProgress, SweepState
from tempergat.comparison.sweeps.workers import Job, LocalWorkers, Workers
from tempergat.data import Dataset
from tempergat.training import (
    BuildModule,
    OutOfMemory,
    Preparation,
    Run,
    RunConfig,
    bytes_per_seed,
    compile_kernels,
    groups_at_once,
)


def sweep(
    dataset: Dataset | Mapping[int, Dataset],
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    store: Store,
    place: torch.device | Workers,
    on_progress: OnProgress | None = None,
    builds: Mapping[str, BuildModule] | None = None,
    preparation: Preparation | None = None,
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
        store: Where runs are stored; this process alone stores them.
        place: Where to train: a device of this machine, or workers on others.
        on_progress: Called after every group, and on this machine after every epoch,
            for display.
        builds: For each method that is a user's own module, the function that builds
            it.
        preparation: What is done to features and model before every run.

    Returns:
        The runs of these seeds in the order of the configurations, failed ones
        included.

    Raises:
        UserError: Nothing can be trained, or the store cannot be used or does not give
            back every run that was asked for.
        OutOfMemory: A single run does not fit memory. All others have been trained.
    """
    state = SweepState(
        dataset, configs, seeds, store, place, preparation, builds, on_progress
    )
    state.report()
    running = _Sweep(state)
    pending = running.pending(state.jobs.values())
    with _workers(pending, place) as workers:
        return running.train(pending, workers)


def _workers(
    pending: list[Job], place: torch.device | Workers
) -> AbstractContextManager[Workers]:
    """Who trains the groups; on this machine, several at once where they are small."""
    if not isinstance(place, torch.device):
        return nullcontext(place)
    at_once = max(len(pending), 1)
    for group, _, graph, config, build, prepared in pending:
        # While the first group trains, the kernels of the others are compiled.
        compile_kernels(graph, config, len(group.seeds), place)
        fit = groups_at_once(graph, config, len(group.seeds), place)
        if build is not None or (
            prepared is not None
            and (prepared.features or prepared.matmul_precision != "highest")
        ):
            fit = 1
        at_once = min(at_once, fit)
    if at_once > 1:
        # Long ones first, so that none is left when the others have finished.
        pending.sort(
            key=lambda job: job.work * bytes_per_seed(job.dataset, job.config),
            reverse=True,
        )
    return LocalWorkers(place, at_once)


def finished_runs(
    dataset: Dataset | Mapping[int, Dataset],
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    store: Store,
    place: torch.device | Workers,
    preparation: Preparation | None = None,
) -> list[Run]:
    """The runs that `sweep` with these arguments would not have to train.

    After a sweep that was stopped, these are the runs done so far.
    """
    state = SweepState(dataset, configs, seeds, store, place, preparation)
    state.report()
    return state.runs()


class _Sweep:
    """One sweep.

    Each of its groups is in one of these states, as seen from here:

    - finished: all its runs are in the store;
    - free: no sweep holds its lock; this one takes the lock and trains it;
    - held: another sweep holds its lock. When the lock is free again, the group is
      finished, or its holder died and the group is free;
    - replaced: it did not fit memory, so this or another sweep stored a part of it and
      cut the rest into further groups, which take its place at the front of the queue;
    - too large: a single run of its configuration does not fit memory.

    The first pass trains every free group, several at once where they are small, and
    sets held ones aside. The second pass waits for those.
    """

    def __init__(self, state: SweepState) -> None:
        self._state = state
        self._store = state.store
        # What workers train, by number; a worker may train a part of the group.
        self._started: dict[int, Job] = {}
        self._last_event_s = 0.0
        self._too_large: dict[RunConfig, str] = {}

    def pending(self, jobs: Iterable[Job]) -> list[Job]:
        """Those of which some run is not in the store."""
        by_group = {job.group: job for job in jobs}
        return [by_group[group] for group in self._store.pending(by_group)]

    def train(self, pending: list[Job], workers: Workers) -> list[Run]:
        """Train groups, then wait for those of others; return all runs asked for.

        Raises:
            OutOfMemory: A single run does not fit memory.
            UserError: The store does not give back every run.
        """
        with GroupLocks(self._store.path) as locks:
            for wait in (False, True):
                pending = self._train_all(pending, workers, locks, wait)
        if self._too_large:
            reason, *_ = self._too_large.values()
            _, *others = (config.method for config in self._too_large)
            also = f"; the same goes for {', '.join(others)}" if others else ""
            raise OutOfMemory(f"{reason}{also}")
        runs = self._state.runs()
        if len(runs) < len(self._state.asked):
            raise self._store.lacks(len(self._state.asked) - len(runs))
        return runs

    def _train_all(
        self, jobs: Sequence[Job], workers: Workers, locks: GroupLocks, wait: bool
    ) -> list[Job]:
        """Train groups; return those that another sweep holds.

        Args:
            jobs: The groups.
            workers: Who trains them.
            locks: The locks of groups.
            wait: Whether to wait for groups that another sweep holds. One group at a
                time is then trained, so that no two sweeps wait for each other.
        """
        queue, held = deque(jobs), []
        while queue or self._started:
            while queue and workers.is_free and not (wait and self._started):
                job = queue.popleft()
                number = job.group.id
                if not locks.acquire(number, wait=False):
                    if not wait:
                        held.append(job)
                        continue
                    self._state.report(job, waiting=True)
                    locks.acquire(number, wait=True)
                parts = self._unfinished(job)
                if parts == [job]:
                    self._start(job, workers)
                else:
                    locks.release(number)
                    queue.extendleft(reversed(parts))
                    self._state.report(job)
            if not self._started:
                continue
            trained, outcome = workers.wait(self._state.report)
            job = self._started.pop(trained.group.id)
            seeds = trained.group.seeds
            if isinstance(outcome, list):
                parts = self._put(job, trained, outcome)
            elif len(seeds) > 1:
                self._start(job, workers, seeds[: (len(seeds) + 1) // 2])
                continue
            else:
                self._too_large[job.config] = str(outcome)
                parts = []
            locks.release(job.group.id)
            queue.extendleft(reversed(parts))
            self._state.report(job)
        return held

    def _unfinished(self, job: Job) -> list[Job]:
        """The group itself, what another sweep cut it into, or nothing.

        Only groups that are to be trained are listed.
        """
        parts = self._state.replace(job, self._store.parts_of(job.group))
        return [] if job.config in self._too_large else self.pending(parts)

    def _start(
        self, job: Job, workers: Workers, seeds: tuple[int, ...] | None = None
    ) -> None:
        """Have a group trained, or the part of it with these seeds."""
        if not self._started:
            self._last_event_s = time.monotonic()
        self._started[job.group.id] = job
        part = job.group if seeds is None else replace(job.group, seeds=seeds)
        workers.start(job._replace(group=part))

    def _put(self, job: Job, trained: Job, runs: Sequence[Run]) -> list[Job]:
        """Store the runs of a group, or of a part of it; return what is left of it."""
        # Several groups may be trained at once: the time between the ends of two of
        # them is what a group takes.
        now = time.monotonic()
        self._state.add_time(trained, now - self._last_event_s)
        self._last_event_s = now
        number = job.group.id
        runs = [replace(run, split=job.split, group_id=number) for run in runs]
        parts = self._state.replace(job, self._store.put_part(job.group, runs))
        # Never the part just trained: runs that do not come back are an error later.
        return self.pending(part for part in parts if part.group.id != number)
