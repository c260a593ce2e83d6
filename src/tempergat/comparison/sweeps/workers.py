"""Who trains the groups of a sweep: this process, or others."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple, Protocol, Self

import torch

from tempergat.comparison.storage.rows import Group
from tempergat.data import Dataset
from tempergat.training import (
    BuildModule,
    OutOfMemory,
    Preparation,
    Run,
    RunConfig,
    device_name,
    free_memory,
    train_group,
)


class Job(NamedTuple):
    """What a worker trains: a group, and what else `train_group` is given.

    Attributes:
        group: The group; a worker may be given a part of it.
        split: Number of the split that it is trained on.
        dataset: The graph with that split.
        config: The settings that its runs share.
        build: Builds the module, where it is a user's own.
        preparation: What is done to features and model before every run.
    """

    group: Group
    split: int
    dataset: Dataset
    config: RunConfig
    build: BuildModule | None
    preparation: Preparation | None

    @property
    def work(self) -> int:
        """Epochs of all its runs together."""
        return len(self.group.seeds) * self.config.epochs


OnEpoch = Callable[[Job, int], None]


class Workers(Protocol):
    """Train groups, perhaps several at once, perhaps on other machines."""

    @property
    def device(self) -> torch.device:
        """The kind of device that they train on."""

    @property
    def device_name(self) -> str:
        """Its name, the same for all of them."""

    @property
    def is_free(self) -> bool:
        """Whether another group can be started."""

    def start(self, job: Job) -> None:
        """Train a group as soon as a worker is free."""

    def wait(self, on_epoch: OnEpoch) -> tuple[Job, list[Run] | OutOfMemory]:
        """Wait for a group that was started to end: the group, and what came of it.

        Args:
            on_epoch: Called in this thread with a group and each of its epochs, where
                the workers know them.

        Raises:
            UserError: It cannot be trained.
        """


class LocalWorkers:
    """Train groups in this process, inside a `with` block.

    One group at a time is trained in the thread that waits, several in threads of their
    own. On a CPU these share torch's own threads, on a GPU each has a CUDA stream. Once
    groups do not fit memory side by side, they are trained one at a time.

    Args:
        device: Where they are trained.
        count: How many groups are trained at once.
    """

    def __init__(self, device: torch.device, count: int = 1) -> None:
        self.device = device
        self.device_name = device_name(device)
        self._count = count
        self._torch_threads = torch.get_num_threads()
        self._torch_threads_each = max(1, self._torch_threads // count)
        self._events: SimpleQueue[tuple[Job, int | list[Run] | BaseException]] = (
            SimpleQueue()
        )
        self._threads: dict[int, threading.Thread] = {}
        # Trained one at a time by whoever waits.
        self._alone: deque[Job] = deque()
        self._stopped = threading.Event()
        # Torch keeps memory that was freed for the stream that had it.
        self._streams: SimpleQueue[torch.cuda.Stream] = SimpleQueue()
        if device.type == "cuda" and count > 1:
            for _ in range(count):
                stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
                self._streams.put(stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        for thread in self._threads.values():
            thread.join()
        # Also what threads that are started later begin with.
        torch.set_num_threads(self._torch_threads)

    @property
    def is_free(self) -> bool:
        return len(self._threads) + len(self._alone) < self._count

    def start(self, job: Job) -> None:
        if self._count == 1:
            self._alone.append(job)
            return
        thread = threading.Thread(target=self._work, args=(job,), daemon=True)
        self._threads[job.group.id] = thread
        thread.start()

    def wait(self, on_epoch: OnEpoch) -> tuple[Job, list[Run] | OutOfMemory]:
        """Wait for a group to end; the epochs of the one started first are shown.

        A group that runs out of memory beside others is trained again alone.
        """
        while self._threads:
            job, event = self._events.get()
            if isinstance(event, int):
                if job.group.id == next(iter(self._threads)):
                    on_epoch(job, event)
                continue
            self._threads.pop(job.group.id).join()
            if isinstance(event, list):
                return job, event
            if not isinstance(event, OutOfMemory):
                raise event
            self._count = 1
            self._alone.append(job)
            del event
            free_memory(self.device)
        job = self._alone.popleft()
        torch.set_num_threads(self._torch_threads)
        try:
            return job, self._training(job)(partial(on_epoch, job))
        except OutOfMemory as error:
            reason = str(error)
        free_memory(self.device)
        return job, OutOfMemory(reason)

    def _training(self, job: Job) -> Callable[[Callable[[int], None]], list[Run]]:
        """Trains a group, and calls what it is given after every epoch."""
        of_job = (job.dataset, job.config, job.group.seeds)
        return partial(train_group, *of_job, self.device, job.build, job.preparation)

    def _work(self, job: Job) -> None:
        """Train a group in a thread."""

        def note(epoch: int) -> None:
            if self._stopped.is_set():
                raise _StoppedError
            self._events.put((job, epoch))

        try:
            if self.device.type == "cuda":
                stream = self._streams.get()
                try:
                    with torch.cuda.device(self.device), torch.cuda.stream(stream):
                        runs = self._training(job)(note)
                finally:
                    self._streams.put(stream)
            else:
                torch.set_num_threads(self._torch_threads_each)
                runs = self._training(job)(note)
            # The peak is that of all groups that were trained at that time.
            self._events.put((job, [replace(run, memory_bytes=None) for run in runs]))
        except BaseException as error:
            # Whoever waits raises it.
            self._events.put((job, error))


class _StoppedError(Exception):
    """Ends a training whose outcome is not waited for any more."""
