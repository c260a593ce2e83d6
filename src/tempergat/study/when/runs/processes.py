"""Groups of runs are trained by several processes of one device."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache

import torch

from tempergat.study.when.plan import WhenPlan
from tempergat.study.when.runs.groups import Group
from tempergat.study.when.runs.rows import Row
from tempergat.study.when.runs.training import train

# Several keep a GPU busy: a group of small runs is prepared longer than it is trained.
GPU_PROCESSES = 5

# Takes a group and its rows; returns groups that are trained before all others.
OnRows = Callable[[Group, list[Row]], Iterable[Group]]


def processes_on(device: torch.device) -> int:
    """How many processes train on a device.

    A CPU has as many as torch has threads, which OMP_NUM_THREADS sets. Beside a GPU no
    core trains: it would take minutes for a group, and the last ones would be waited
    for.

    Args:
        device: The device that was asked for.
    """
    return torch.get_num_threads() if device.type == "cpu" else GPU_PROCESSES


def train_groups(
    plan: WhenPlan,
    groups: Iterable[Group],
    device: str,
    processes: int,
    on_rows: OnRows,
) -> None:
    """Trains groups, in their order, and returns when all are done.

    Args:
        plan: The plan.
        groups: The groups.
        device: The device that they are trained on.
        processes: How many processes train; a single one on the CPU is this process.
        on_rows: Called with the rows of every group as it is done.

    Raises:
        UserError: A graph cannot be loaded.
    """
    waiting = deque(groups)
    if device == "cpu" and processes == 1:
        while waiting:
            group = waiting.popleft()
            waiting.extendleft(on_rows(group, train(plan, group, device)))
        return
    if not waiting:
        return
    running: dict[Future[list[Row]], Group] = {}
    pool = _pool(device, processes)
    while waiting or running:
        while waiting and len(running) < processes:
            group = waiting.popleft()
            running[pool.submit(train, plan, group, device, processes)] = group
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            group = running.pop(future)
            waiting.extendleft(on_rows(group, future.result()))


@lru_cache
def _pool(device: str, processes: int) -> ProcessPoolExecutor:
    """The processes of a device, kept for all graphs: each takes seconds to start."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, context, initializer=_prepare)


def _prepare() -> None:
    # Ctrl-C is for the process that writes the rows; it lets the others end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
