"""The processes that `torchrun` started, and what they exchange."""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from tempergat.base import UserError, first_line
from tempergat.training.settings.config import RunConfig

Value = TypeVar("Value")

# The first process evaluates while the others wait, which may take hours. A process
# that dies is noticed by torchrun, which ends the others.
_TIMEOUT = timedelta(days=30)
# What the processes have in common, once they have joined; torchrun itself keeps it.
_stores: list[PrefixStore] = []


@dataclass(frozen=True)
class Ranks:
    """This process among those that train one run together.

    Attributes:
        rank: Its number.
        world_size: How many there are.
        local_rank: Its number on this machine.
        local_world_size: How many there are on this machine.
        device: Where it trains.
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def add_up(self, values: Tensor) -> None:
        """Puts the sum over all processes in the place of the values."""
        with _explain_lost_process():
            dist.all_reduce(values)

    def gather_rows(self, rows: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """The rows of all processes, by rank; sizes has how many each of them has."""
        # Parts of different sizes are sent in tensors of the largest.
        sent = rows.new_zeros(max(sizes), *rows.shape[1:])
        sent[: rows.size(0)] = rows
        parts = [torch.empty_like(sent) for _ in sizes]
        with _explain_lost_process():
            dist.all_gather(parts, sent)
        return [part[:size] for part, size in zip(parts, sizes, strict=True)]

    def add_rows(self, parts: Sequence[Tensor]) -> Tensor:
        """The sum over all processes of what each has for this one.

        Args:
            parts: Rows for each process, by rank.
        """
        most = max(part.size(0) for part in parts)
        sent = parts[0].new_zeros(len(parts), most, *parts[0].shape[1:])
        for place, part in zip(sent, parts, strict=True):
            place[: part.size(0)] = part
        own = torch.empty_like(sent[0])
        with _explain_lost_process():
            dist.reduce_scatter(own, list(sent))
        return own[: parts[self.rank].size(0)]

    def from_first(self, compute: Callable[[], Value]) -> Value:
        """What a function returns in the first process, which alone calls it."""
        values: list[Any] = [compute() if self.is_first else None]
        with _explain_lost_process():
            dist.broadcast_object_list(values, src=0)
        value: Value = values[0]
        return value

    def copy_from_first(self, values: Iterable[Tensor]) -> None:
        """Puts the first process's tensors in the place of these."""
        with _explain_lost_process():
            for value in values:
                dist.broadcast(value, src=0)

    def from_all(self, value: Value) -> list[Value]:
        """The values of all processes, by rank."""
        values: list[Any] = [None] * self.world_size
        with _explain_lost_process():
            dist.all_gather_object(values, value)
        return values


@contextmanager
def _explain_lost_process() -> Iterator[None]:
    """Turns a lost connection to another process into an error for the user.

    Raises:
        UserError: The connection is lost.
    """
    try:
        yield
    except RuntimeError as error:
        # Without gloo's source file in front and its guesses at the end.
        reason = re.sub(r"^\[\S+\] |\. This is .*", "", first_line(error))
        raise UserError(
            f"another process of this run is lost ({reason}); the same command goes on "
            "from the last checkpoint, and torchrun --max-restarts 3 by itself"
        ) from error


@contextmanager
def joined_ranks(config: RunConfig, device: torch.device) -> Iterator[Ranks | None]:
    """Joins the processes that `torchrun` started; None outside of it.

    They talk over NCCL on GPUs and over gloo on CPUs. Each has its own GPU.

    Args:
        device: Where to train; for GPUs, without a number.

    Raises:
        UserError: The settings do not allow several processes, or there are more
            processes on this machine than GPUs.
    """
    if not dist.is_available() or not dist.is_torchelastic_launched():
        yield None
        return
    rank, world_size, local_rank, local_world_size = (
        int(os.environ[name])
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    )
    size = config.batch_size or 0
    if config.training == "sampled" and size % world_size:
        raise UserError(
            f"the batch size {size} cannot be divided evenly over {world_size} "
            f"processes; give {size // world_size * world_size or world_size} or "
            f"{-(-size // world_size) * world_size}"
        )
    if device.type == "cuda":
        device = _own_gpu(device, local_rank, local_world_size)
    ranks = Ranks(rank, world_size, local_rank, local_world_size, device)
    if not dist.is_initialized():
        _join(ranks)
        # At the end of the process: torchrun's processes can join only once.
        atexit.register(dist.destroy_process_group)
    try:
        yield ranks
    except BaseException as error:
        # Leaving in good order may wait for the others, who may wait for this one.
        atexit.unregister(dist.destroy_process_group)
        # Those who lose this one are not to say so: only the first process is heard
        # when it is stopped, the others when they are the first to fail.
        if ranks.is_first or isinstance(error, Exception):
            with suppress(RuntimeError):
                error.is_said = _stores[-1].add("failed", 1) > 1  # type: ignore[attr-defined]
        raise


def _join(ranks: Ranks) -> None:
    meetings = rendezvous("env://", ranks.rank, ranks.world_size, timeout=_TIMEOUT)
    store, _, _ = next(iter(meetings))
    # After a restart the store may still hold the addresses of the processes before.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    _stores.append(PrefixStore(f"tempergat-{attempt}", store))
    dist.init_process_group(
        "nccl" if ranks.device.type == "cuda" else "gloo",
        store=_stores[-1],
        rank=ranks.rank,
        world_size=ranks.world_size,
        timeout=_TIMEOUT,
    )


def _own_gpu(device: torch.device, local_rank: int, count: int) -> torch.device:
    gpus = torch.cuda.device_count()
    if device.index is not None or count > gpus:
        raise UserError(
            f"torchrun gives each of {count} processes its own GPU of this machine, "
            f"which has {gpus}; choose the device cuda without a number, and "
            f"--nproc-per-node {gpus} at most"
        )
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)
