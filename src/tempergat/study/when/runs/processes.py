"""Groups of runs are trained by several processes, on CPU cores and a GPU at once."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack

import torch

from tempergat.study.when.plan import WhenPlan
from tempergat.study.when.runs.groups import Group, train
from tempergat.study.when.runs.rows import Row

# Several keep a GPU busy: a group of small runs is prepared longer than it is trained.
GPU_PROCESSES = 4


def processes_on(device: torch.device) -> dict[str, int]:
    """How many processes train on each device.

    Most groups are a single run on a small graph, which many cores train about as fast
    as a GPU does. So the other cores train beside a GPU.

    Args:
        device: The device that was asked for.

    Returns:
        Processes by device. A CPU has as many as torch has threads, which
        OMP_NUM_THREADS sets.
    """
    cores = torch.get_num_threads()
    if device.type == "cpu":
        return {"cpu": cores}
    found = {str(device): GPU_PROCESSES}
    if cores > GPU_PROCESSES:
        found["cpu"] = cores - GPU_PROCESSES
    return found


def train_groups(
    plan: WhenPlan,
    groups: Sequence[Group],
    processes: Mapping[str, int],
    on_rows: Callable[[list[Row]], None],
) -> None:
    """Trains groups, in their order, and returns when all are done.

    Args:
        plan: The plan.
        groups: The groups.
        processes: How many processes train on each device; a single one on the CPU is
            this process.
        on_rows: Called with the rows of every group as it is done.

    Raises:
        UserError: A graph cannot be loaded.
    """
    if dict(processes) == {"cpu": 1}:
        for group in groups:
            on_rows(train(plan, group, "cpu"))
        return
    context = multiprocessing.get_context("spawn")
    waiting, running = list(groups), dict[Future[list[Row]], str]()
    with ExitStack() as stack:
        pools = {
            device: stack.enter_context(
                ProcessPoolExecutor(count, context, initializer=_prepare)
            )
            for device, count in processes.items()
        }
        while waiting or running:
            for device, pool in pools.items():
                free = processes[device] - list(running.values()).count(device)
                for group in waiting[:free]:
                    running[pool.submit(train, plan, group, device)] = device
                waiting = waiting[free:]
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                on_rows(future.result())


def _prepare() -> None:
    # Ctrl-C is for the process that writes the rows; it lets the others end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
