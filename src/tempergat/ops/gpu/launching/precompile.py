"""Compiles kernels before they are needed, in background threads.

Triton is imported by a background thread too, so that the caller does not wait for it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import torch

OPS = ("gat", "gatv2", "dot_product", "dropout", "aggregate", "outer")
# How long the end of the process waits for what was begun: to stop inside the compiler,
# an import or an operation of torch could crash.
_LAST_SECONDS = 10.0
# What was asked for, on which device. The result comes when compilation has begun.
requests: dict[tuple[CompileRequest, torch.device], Future[None]] = {}


class CompileRequest(NamedTuple):
    """The arguments of `compile_ahead`, which says what they mean, but the device."""

    op: str
    heads: int
    channels: int
    models: int = 1
    nodes: int = 1
    dtype: torch.dtype = torch.float32
    dropout: bool = False
    gate: bool = False
    edge: bool = False
    learnt: bool = False
    weights: bool = False
    training: bool = True


class BackgroundThreads:
    """A fixed number of threads that run functions in the order of submission.

    They never keep a process from ending. Those of `concurrent.futures` work off all
    that was submitted before; here, what is not begun by then is dropped.

    Args:
        count: The number of threads.
    """

    def __init__(self, count: int) -> None:
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._idle = threading.Condition()
        self._running = 0
        self.closed = False
        self._process = os.getpid()
        for number in range(count):
            name = f"tempergat-compile-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        atexit.register(self.close)

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """Has the function run; its result is that of the future.

        The future is cancelled if the threads are closed before they begin with it.
        """
        future: Future[Any] = Future()
        with self._idle:
            if self.closed:
                future.cancel()
            else:
                self._waiting.put((future, function))
        return future

    def _work(self) -> None:
        while True:
            future, function = self._waiting.get()
            with self._idle:
                if self.closed:
                    future.cancel()
                    return
                self._running += 1
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
            finally:
                with self._idle:
                    self._running -= 1
                    self._idle.notify_all()

    def close(self) -> None:
        """Drops what is not begun, and waits a little for what is."""
        if os.getpid() != self._process:
            # A forked process has none of the threads.
            return
        with self._idle:
            self.closed = True
            with contextlib.suppress(queue.Empty):
                while True:
                    # Whoever waits for the result learns that it does not come.
                    self._waiting.get_nowait()[0].cancel()
            self._idle.wait_for(lambda: self._running == 0, _LAST_SECONDS)


@functools.cache
def _request_thread() -> BackgroundThreads:
    return BackgroundThreads(1)


def start(request: CompileRequest, device: torch.device, number: int) -> None:
    """Starts to compile what was asked for.

    Args:
        request: What was asked for.
        device: The device as it was asked for.
        number: Its number.
    """

    def find_kernels() -> None:
        dry_run = importlib.import_module(f"{__package__}.dry_run")
        if not _request_thread().closed:
            dry_run.compile_kernels(request, number)

    # What fails there fails again in the call itself, which reports it.
    requests[request, device] = _request_thread().submit(find_kernels)
