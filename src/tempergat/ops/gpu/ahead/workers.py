"""Threads that never keep a process from ending.

The threads of `concurrent.futures` work off all that was submitted before a process
ends. Here, what is not begun by then is dropped.
"""

import atexit
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

# How long the end of the process waits for what was begun: to stop inside the compiler
# could crash.
_LAST_SECONDS = 10.0


class Workers:
    """A fixed number of threads that run functions in the order of submission.

    Args:
        count: The number of threads.
    """

    def __init__(self, count: int) -> None:
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._idle = threading.Condition()
        self._running = 0
        self._closed = False
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
            if self._closed:
                future.cancel()
            else:
                self._waiting.put((future, function))
        return future

    def _work(self) -> None:
        while True:
            future, function = self._waiting.get()
            with self._idle:
                if self._closed:
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
            self._closed = True
            with contextlib.suppress(queue.Empty):
                while True:
                    # Whoever waits for the result learns that it does not come.
                    self._waiting.get_nowait()[0].cancel()
            self._idle.wait_for(lambda: self._running == 0, _LAST_SECONDS)
