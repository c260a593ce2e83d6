"""A sweep whose groups are trained by workers on several machines."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from tempergat.base import GroupLocks
from tempergat.comparison.storage.store import Group, Store
from tempergat.comparison.sweeps.agenda import Agenda
from tempergat.comparison.sweeps.progress import OnProgress
from tempergat.comparison.sweeps.sweeping import Sweep, first_half
from tempergat.data import Dataset
from tempergat.training import BuildModule, OutOfMemory, Preparation, Run, RunConfig


def sweep_on(
    workers: "Workers",
    dataset: Dataset | Mapping[int, Dataset],
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    store: Store,
    on_progress: OnProgress | None = None,
    builds: Mapping[str, BuildModule] | None = None,
    preparation: Preparation | None = None,
) -> list[Run]:
    """As `sweep`, with the groups trained by workers; this process alone stores them.

    Args:
        workers: Where to train.
        dataset: As for `sweep`.
        configs: One configuration per method.
        seeds: The seeds, each once.
        store: Where runs are stored.
        on_progress: Called after every group, for display.
        builds: As for `sweep`.
        preparation: As for `sweep`.

    Raises:
        UserError: As for `sweep`, or a worker cannot train.
        OutOfMemory: A single run does not fit memory. All others have been trained.
    """
    agenda = Agenda(
        dataset,
        configs,
        seeds,
        store,
        workers.device,
        preparation,
        made_on=workers.device_name,
    )
    return SpreadSweep(agenda, workers, on_progress, builds or {}).run()


class Workers(Protocol):
    """Train groups somewhere else, several at once."""

    @property
    def device(self) -> torch.device:
        """The kind of device that they train on."""

    @property
    def device_name(self) -> str:
        """Its name, the same for all of them."""

    def start(
        self,
        ticket: int,
        dataset: Dataset,
        config: RunConfig,
        seeds: Sequence[int],
        build: BuildModule | None,
        preparation: Preparation | None,
    ) -> None:
        """Train a group, as `train_group` does, as soon as a worker is free."""

    def next_finished(self) -> tuple[int, list[Run] | OutOfMemory]:
        """Wait for a group that was started: its ticket, and what came of it.

        Raises:
            UserError: It cannot be trained.
        """


@dataclass(frozen=True)
class _Started:
    """A group that a worker trains.

    Attributes:
        group: The group.
        trained: The part of it that is trained; all of it at first.
    """

    group: Group
    trained: Group


class SpreadSweep(Sweep):
    """One sweep on workers; see `Sweep`. Only this process writes to the store."""

    def __init__(
        self,
        agenda: Agenda,
        workers: Workers,
        on_progress: OnProgress | None,
        builds: Mapping[str, BuildModule],
    ) -> None:
        super().__init__(agenda, workers.device, on_progress, builds)
        self._workers = workers
        self._started: dict[int, _Started] = {}
        self._tickets = 0

    def run(self) -> list[Run]:
        self._report(None)
        pending = self._store.pending(self._agenda.groups)
        with GroupLocks(self._store.path) as locks:
            held = [g for g in pending if not locks.acquire(g.id, wait=False)]
            self._train_all([g for g in pending if g not in held], locks)
            for group in held:
                self._report(group, waiting=True)
                locks.acquire(group.id, wait=True)
                self._train_all([group], locks)
        return self._all_runs()

    def _train_all(self, groups: Sequence[Group], locks: GroupLocks) -> None:
        """Train groups whose locks are held here, until all are finished."""
        for group in groups:
            self._start_or_replace(group, locks)
        last = time.monotonic()
        while self._started:
            ticket, outcome = self._workers.next_finished()
            started = self._started.pop(ticket)
            group, trained = started.group, started.trained
            if isinstance(outcome, OutOfMemory):
                if len(trained.units) > 1:
                    self._start(group, first_half(trained))
                    continue
                self._too_large[self._agenda.config_of(group)] = str(outcome)
                replacements = []
            else:
                # Several groups are trained at once, so the time between two of them
                # is what a group takes.
                now = time.monotonic()
                self._agenda.clock.add(self._agenda.work(trained), now - last)
                last = now
                replacements = self._put(group, trained, self._numbered(group, outcome))
            locks.release(group.id)
            self._report(group)
            for replacement in replacements:
                if locks.acquire(replacement.id, wait=True):
                    self._start_or_replace(replacement, locks)

    def _start_or_replace(self, group: Group, locks: GroupLocks) -> None:
        """Start a group that is not finished, or what it was cut into."""
        parts = self._unfinished(group)
        if parts == [group]:
            self._start(group, group)
            return
        locks.release(group.id)
        for part in parts:
            if locks.acquire(part.id, wait=True):
                self._start_or_replace(part, locks)

    def _start(self, group: Group, trained: Group) -> None:
        self._agenda.refuse_altered(group)
        self._tickets += 1
        self._workers.start(
            self._tickets,
            self._agenda.parts[group.fingerprint].dataset,
            self._agenda.config_of(group),
            trained.seeds,
            self._builds.get(group.method),
            self._agenda.preparation,
        )
        self._started[self._tickets] = _Started(group, trained)

    def _numbered(self, group: Group, runs: Sequence[Run]) -> list[Run]:
        split = self._agenda.parts[group.fingerprint].split
        return [replace(run, split=split, group_id=group.id) for run in runs]
