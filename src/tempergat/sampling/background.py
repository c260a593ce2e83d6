"""Makes batches ahead, in threads, while the caller works on others."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from tempergat.base import UserError

T = TypeVar("T")


def made_ahead(
    make: Callable[[int], T], steps: Iterable[int], ahead: int, threads: int
) -> Iterator[T]:
    """Yields ``make(step)`` for each step, in order.

    An error in a thread is raised where its result would have been yielded. When the
    iterator is dropped, the threads end.

    Args:
        make: Called in the threads.
        steps: What to call it with.
        ahead: How many results are made ahead; 0 makes them in the caller's thread.
        threads: Number of threads.
    """
    if ahead == 0:
        yield from map(make, steps)
        return
    process, rest = os.getpid(), iter(steps)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tempergat-sampler")
    try:
        waiting: deque[Future[T]] = deque(
            pool.submit(make, step) for step in islice(rest, ahead)
        )
        while waiting:
            if os.getpid() != process:
                raise UserError(
                    "an iteration over a sampler cannot go on in a forked process, "
                    "which has none of its threads; begin a new one there"
                )
            done = waiting.popleft().result()
            waiting.extend(pool.submit(make, step) for step in islice(rest, 1))
            yield done
    finally:
        # A forked process has no threads to wait for.
        own = os.getpid() == process
        pool.shutdown(wait=own, cancel_futures=own)
