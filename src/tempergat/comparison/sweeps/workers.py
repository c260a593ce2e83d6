"""Several groups of runs are trained at once, each in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import NamedTuple, Self

import torch

from tempergat.comparison.storage.store import Group
from tempergat.training import Run

OnEpoch = Callable[[int], None]


class Outcome(NamedTuple):
    """How the training of a group ended: with its runs, or with an error."""

    runs: list[Run] | None = None
    error: BaseException | None = None


class _StoppedError(Exception):
    """Ends a training that nobody waits for any more."""


class Workers:
    """Threads that train groups; they end with the `with` block.

    On a CPU the threads share torch's own threads, on a GPU each has a CUDA stream.

    Args:
        count: How many groups are trained at once.
        device: Where they are trained.
    """

    def __init__(self, count: int, device: torch.device) -> None:
        self._count = count
        self._device = device
        self._torch_threads = torch.get_num_threads()
        self._events: SimpleQueue[tuple[Group, int | Outcome]] = SimpleQueue()
        self._running: dict[Group, threading.Thread] = {}
        self._stopped = threading.Event()
        # Torch keeps memory that was freed for the stream that had it.
        self._streams: SimpleQueue[torch.cuda.Stream] = SimpleQueue()
        if device.type == "cuda":
            for _ in range(count):
                self._streams.put(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        for thread in self._running.values():
            thread.join()
        # Also what threads that are started later begin with.
        torch.set_num_threads(self._torch_threads)

    @property
    def is_free(self) -> bool:
        """Whether another group can be started."""
        return len(self._running) < self._count

    @property
    def is_idle(self) -> bool:
        """Whether no group is being trained."""
        return not self._running

    def start(self, group: Group, train: Callable[[OnEpoch], list[Run]]) -> None:
        """Trains a group in a thread.

        Args:
            group: The group.
            train: Trains it and returns its runs; it takes a function to call with
                each epoch's number.
        """
        thread = threading.Thread(target=self._work, args=(group, train), daemon=True)
        self._running[group] = thread
        thread.start()

    def wait(self, on_epoch: Callable[[Group, int], None]) -> tuple[Group, Outcome]:
        """The next group that ends, and how.

        Args:
            on_epoch: Called in this thread with the group that was started first and
                each of its epochs.
        """
        while True:
            group, event = self._events.get()
            if isinstance(event, Outcome):
                self._running.pop(group).join()
                return group, event
            if group == next(iter(self._running)):
                on_epoch(group, event)

    def _work(self, group: Group, train: Callable[[OnEpoch], list[Run]]) -> None:
        def note(epoch: int) -> None:
            if self._stopped.is_set():
                raise _StoppedError
            self._events.put((group, epoch))

        try:
            if self._device.type == "cuda":
                stream = self._streams.get()
                try:
                    with torch.cuda.device(self._device), torch.cuda.stream(stream):
                        outcome = Outcome(runs=train(note))
                finally:
                    self._streams.put(stream)
            else:
                torch.set_num_threads(max(1, self._torch_threads // self._count))
                outcome = Outcome(runs=train(note))
        except BaseException as error:
            # Whoever waits raises it.
            outcome = Outcome(error=error)
        self._events.put((group, outcome))
