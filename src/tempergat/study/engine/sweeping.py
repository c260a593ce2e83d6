"""Many runs: every method over all seeds, group by group, through the store."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from tempergat.base.locks import GroupLocks
from tempergat.data import Dataset
from tempergat.study.engine.store import Group, Store
from tempergat.training import (
    OutOfMemory,
    Run,
    RunConfig,
    config_hash,
    free_memory,
    group_size,
    train_group,
)
from tempergat.training.task import refuse_other_training


@dataclass(frozen=True)
class Progress:
    """Where a sweep stands.

    Attributes:
        method: The method whose group is at hand; None before the first.
        runs_done: Runs in the store, of those this sweep is about.
        runs: Runs this sweep is about.
        group_runs: Those of them that train together at the moment.
        epoch: Epochs they have trained.
        epochs: Epochs they will train.
        new: Runs seen in the store for the first time, this sweep's own and those of
            other processes.
        time_left_s: Estimate; None until a group has trained.
        waiting: Whether another process trains the group and this one waits for it.
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


def sweep(
    dataset: Dataset | Mapping[int, Dataset],
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    store: Store,
    device: torch.device,
    on_progress: OnProgress | None = None,
) -> list[Run]:
    """Train what the store does not hold yet of every configuration and seed.

    Seeds are cut into groups that train together; the cut is kept in the store, and a
    group's runs are kept all at once, so a sweep that is stopped at any moment and
    started again ends with the same runs. A group that does not fit memory is cut
    smaller, for good. Several processes may share the store: each leaves alone what
    another has in hand, and takes it over should that one die.

    Args:
        dataset: The graph; or the graph with each of several splits, by the splits'
            numbers. They take turns: of S splits, seed r trains on number r mod S.
        configs: One configuration per method.
        seeds: The seeds, each once.
        store: Where runs are kept.
        device: Where to train.
        on_progress: Called after every epoch and every group.

    Returns:
        The runs of these seeds, in the order of the configurations, failed ones
        included.

    Raises:
        UserError: Nothing can be trained, or the store cannot be used.
        OutOfMemory: A single run does not fit memory. All others have been trained.
    """
    graphs = {0: dataset} if isinstance(dataset, Dataset) else dataset
    return _Sweep(graphs, configs, seeds, store, device, on_progress).run()


def finished_runs(
    dataset: Dataset | Mapping[int, Dataset],
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    store: Store,
    device: torch.device,
) -> list[Run]:
    """The runs of a sweep that are in the store; trains nothing.

    Takes the arguments of `sweep` and returns what it would, as far as it is there.
    """
    graphs = {0: dataset} if isinstance(dataset, Dataset) else dataset
    started = _Sweep(graphs, configs, seeds, store, device, None)
    started.look_for_new_runs()
    return started.finished()


@dataclass
class _Part:
    """What is trained on one split."""

    split: int
    dataset: Dataset
    seeds: list[int]


class _Sweep:
    def __init__(
        self,
        graphs: Mapping[int, Dataset],
        configs: Sequence[RunConfig],
        seeds: Sequence[int],
        store: Store,
        device: torch.device,
        on_progress: OnProgress | None,
    ) -> None:
        self._seeds = sorted(seeds)
        self._store = store
        self._device = device
        self._on_progress = on_progress or (lambda progress: None)
        self._configs = {_hash(config): config for config in configs}
        self._parts = self._deal(graphs)
        self._groups = list(self._cut())
        self._known: dict[tuple[str, str, int], Run] = {}
        self._too_large: dict[str, str] = {}
        self._clock = _Clock()

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
        for config in self._configs.values():
            for part in self._parts.values():
                refuse_other_training(part.dataset, config)
        for key, config in self._configs.items():
            for fingerprint, part in self._parts.items():
                yield from self._store.groups(
                    fingerprint,
                    config.method,
                    key,
                    part.seeds,
                    group_size(part.dataset, config, self._device),
                )

    def run(self) -> list[Run]:
        self._report(None)
        pending = self._store.pending(self._groups)
        with GroupLocks(self._store.path) as locks:
            # First what no other process has in hand, then what is left of the rest.
            for wait in (False, True):
                queue, in_other_hands = deque(pending), []
                while queue:
                    group = queue.popleft()
                    if wait:
                        self._report(group, waiting=True)
                    if not locks.acquire(group.id, wait=wait):
                        in_other_hands.append(group)
                        continue
                    try:
                        queue.extendleft(reversed(self._finish(group)))
                    finally:
                        locks.release(group.id)
                    self._report(group)
                pending = in_other_hands
        if self._too_large:
            reason, *_ = self._too_large.values()
            _, *others = (self._configs[key].method for key in self._too_large)
            also = f"; the same goes for {', '.join(others)}" if others else ""
            raise OutOfMemory(f"{reason}{also}")
        return self.finished()

    def finished(self) -> list[Run]:
        """The runs seen in the store so far, in the order of the configurations."""
        return [
            self._known[fingerprint, key, seed]
            for key in self._configs
            for seed in self._seeds
            for fingerprint in self._parts
            if (fingerprint, key, seed) in self._known
            and seed in self._parts[fingerprint].seeds
        ]

    def _finish(self, group: Group) -> list[Group]:
        """Train a group unless it is done; return what is left in its place."""
        study = (group.fingerprint, group.method, group.config_hash)
        if not self._store.has(group):
            # Another process found that it does not fit memory, and cut it.
            parts = self._store.groups(*study, group.seeds, len(group.seeds))
            self._replace(group, parts)
            return self._store.pending(parts)
        if group.config_hash in self._too_large or not self._store.pending([group]):
            return []
        return self._train(group)

    def _train(self, group: Group) -> list[Group]:
        trained = group
        while (runs := self._attempt(trained)) is None:
            if len(trained.seeds) == 1:
                return []
            half = (len(trained.seeds) + 1) // 2
            trained = replace(group, seeds=group.seeds[:half])
        if trained == group:
            self._store.put_group(runs)
            return []
        parts = self._store.put_part(group, runs)
        self._replace(group, parts)
        return self._store.pending(parts)

    def _attempt(self, group: Group) -> list[Run] | None:
        """Train a group's seeds at once; None where memory does not suffice."""
        started = time.monotonic()
        part = self._parts[group.fingerprint]

        def on_epoch(epoch: int) -> None:
            self._report(group, epoch=epoch)

        try:
            runs = train_group(
                part.dataset,
                self._configs[group.config_hash],
                group.seeds,
                self._device,
                on_epoch,
            )
        except OutOfMemory as error:
            if len(group.seeds) == 1:
                self._too_large[group.config_hash] = str(error)
        else:
            self._clock.add(self._work(group), time.monotonic() - started)
            return [replace(run, split=part.split, group_id=group.id) for run in runs]
        free_memory(self._device)
        return None

    def _replace(self, group: Group, parts: Sequence[Group]) -> None:
        place = self._groups.index(group)
        self._groups[place : place + 1] = parts

    def _report(
        self, group: Group | None, epoch: int | None = None, waiting: bool = False
    ) -> None:
        # Between two epochs of a group nothing new is looked for.
        new = () if epoch is not None else self.look_for_new_runs()
        left = [g for g in self._groups if not self._is_known(g)]
        work = sum(self._work(g) for g in left)
        config = self._configs[group.config_hash] if group is not None else None
        if group is not None and config is not None and epoch is not None:
            work -= len(group.seeds) * epoch
        self._on_progress(
            Progress(
                method=group.method if group is not None else None,
                runs_done=sum(self._asked_for(g) for g in self._groups)
                - sum(self._asked_for(g) for g in left),
                runs=sum(self._asked_for(g) for g in self._groups),
                group_runs=self._asked_for(group) if group is not None else 0,
                epoch=epoch or 0,
                epochs=config.epochs if config is not None else 0,
                new=new,
                time_left_s=self._clock.estimate(work),
                waiting=waiting,
            )
        )

    def look_for_new_runs(self) -> tuple[Run, ...]:
        """Runs that are in the store and were not at the last look."""
        new = []
        for fingerprint, part in self._parts.items():
            runs = self._store.runs(
                fingerprint=fingerprint, config_hashes=list(self._configs)
            )
            for run in runs:
                key = (fingerprint, run.config_hash, run.seed)
                if key in self._known:
                    continue
                # One graph may have been read under two names, or two numbers.
                found = replace(run, dataset=part.dataset.name, split=part.split)
                self._known[key] = found
                if run.seed in part.seeds:
                    new.append(found)
        return tuple(new)

    def _is_known(self, group: Group) -> bool:
        return all(
            (group.fingerprint, group.config_hash, seed) in self._known
            for seed in group.seeds
        )

    def _asked_for(self, group: Group) -> int:
        """How many of a group's runs this sweep is about; it trains them all."""
        return len(set(group.seeds) & set(self._parts[group.fingerprint].seeds))

    def _work(self, group: Group) -> int:
        return len(group.seeds) * self._configs[group.config_hash].epochs


class _Clock:
    """Time per epoch of a run, as measured so far."""

    def __init__(self) -> None:
        self._work = 0
        self._time_s = 0.0

    def add(self, work: int, time_s: float) -> None:
        self._work += work
        self._time_s += time_s

    def estimate(self, work: int) -> float | None:
        return self._time_s / self._work * max(work, 0) if self._work else None


def _hash(config: RunConfig) -> str:
    return config_hash(config.model_dump(mode="json"))
