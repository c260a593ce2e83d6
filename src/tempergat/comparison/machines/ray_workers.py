"""Workers on the machines of a Ray cluster.

Ray is imported when workers are asked for. A task trains one whole group. The graph is
put into Ray's object store once; on every machine its arrays are then mapped into the
memory of all workers.
"""

import importlib
import os
import socket
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

import tempergat
from tempergat.base import UserError, counted, first_line
from tempergat.comparison.machines.ray_cluster import CONNECT_TIMEOUT_S, connect
from tempergat.comparison.sweeps.workers import Job, OnEpoch
from tempergat.data import Dataset
from tempergat.training import (
    BuildModule,
    OutOfMemory,
    Preparation,
    Run,
    RunConfig,
    device_name,
    train_group,
)

# What a task returns: the runs, or the kind and the text of an error.
_Answer = list[Run] | tuple[Literal["memory", "user"], str]
# How often a group is started again after its worker or machine died.
_MOST_RESTARTS = 3
# How often the head is looked for while tasks run, and how long it may be away. After
# a minute without it, Ray would end this process in its own words.
_LOOK_EVERY_S = 5.0
_MOST_AWAY_S = 30.0


class RayWorkers:
    """Tasks on a Ray cluster, inside a `with` block.

    Args:
        address: `auto` for the cluster of this machine, or `HOST:PORT` of its head.
        device: `auto`, `cpu` or `cuda`; GPUs for `auto` where the cluster has some.

    Attributes:
        device: The kind of device that tasks train on.
        device_name: Its name.
        restarts: How many groups were started again because a worker or its machine
            died.

    Raises:
        UserError: Ray is not installed, or there is no such cluster or device.
    """

    def __init__(self, address: str, device: str = "auto") -> None:
        self._ray = _imported()
        self._head = connect(self._ray, address)
        try:
            self.device = self._chosen_device(device)
            self._threads = self._threads_of_a_task()
            self.device_name = device_name(torch.device("cpu"))
            if self.device.type == "cuda":
                describe = self._remote(_describe)
                self.device_name = str(self._ray.get(describe.remote("cuda")))
        except BaseException:
            self._ray.shutdown()
            raise
        self.restarts = 0
        self._graphs: dict[str, Any] = {}
        self._tasks: dict[Any, tuple[Job, Callable[[], Any], int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for task in self._tasks:
            self._ray.cancel(task, force=True)
        self._tasks.clear()
        self._graphs.clear()
        self._ray.shutdown()

    # Ray keeps tasks until a worker is free.
    is_free = True

    def start(self, job: Job) -> None:
        """Hand a group to the cluster."""
        fingerprint = job.dataset.fingerprint
        if fingerprint not in self._graphs:
            self._graphs[fingerprint] = self._put(job.dataset)
        train = partial(
            self._remote(_train).remote,
            self._graphs[fingerprint],
            job.group.seeds,
            job.config,
            job.build,
            job.preparation,
            self.device.type,
            self._threads,
            (tempergat.__version__, self.device_name),
        )
        self._tasks[train()] = (job, train, 0)

    def wait(self, on_epoch: OnEpoch) -> tuple[Job, list[Run] | OutOfMemory]:
        """Wait for a group to end; its epochs are not known here."""
        errors = self._ray.exceptions
        while True:
            task = self._ended_task()
            job, submit, restarts = self._tasks.pop(task)
            try:
                answer: _Answer = self._ray.get(task)
            except errors.OutOfMemoryError as error:
                return job, OutOfMemory(
                    "a Ray node had too little memory and ended a worker "
                    f"({first_line(error)}); use nodes with more"
                )
            except errors.RayTaskError as error:
                raise UserError(
                    f"a Ray worker failed: {first_line(error.cause)}"
                ) from error
            except errors.RayError as error:
                if restarts == _MOST_RESTARTS:
                    raise UserError(
                        f"a Ray worker died {counted(restarts + 1, 'time')} with the "
                        f"same runs ({first_line(error)}); it may have run out of "
                        "memory: use larger nodes, or train without --ray"
                    ) from error
                self.restarts += 1
                self._tasks[submit()] = (job, submit, restarts + 1)
                continue
            if isinstance(answer, list):
                return job, answer
            kind, message = answer
            if kind == "memory":
                return job, OutOfMemory(message)
            raise UserError(message)

    def _ended_task(self) -> Any:
        last_seen = time.monotonic()
        while True:
            limit = None if self._head is None else _LOOK_EVERY_S
            tasks, _ = self._ray.wait(list(self._tasks), timeout=limit)
            if tasks or self._head is None:
                return tasks[0]
            try:
                with socket.create_connection(self._head, CONNECT_TIMEOUT_S):
                    last_seen = time.monotonic()
            except OSError as error:
                if time.monotonic() - last_seen > _MOST_AWAY_S:
                    raise UserError(
                        f"the head of the Ray cluster, {self._head[0]}, is lost "
                        f"({error.strerror or 'no answer'}); start a cluster again, or "
                        "leave --ray out, and run the same command: stored runs are "
                        "kept"
                    ) from error

    def _remote(self, function: Callable[..., Any]) -> Any:
        # Restarts are counted here: Ray would repeat some forever.
        gpus = 1 if self.device.type == "cuda" else 0
        options = {"max_retries": 0, "num_cpus": self._threads, "num_gpus": gpus}
        return self._ray.remote(**options)(function)

    def _put(self, dataset: Dataset) -> Any:
        """Put a graph into the object store, its tensors as arrays."""
        util = self._ray.util
        util.register_serializer(Tensor, serializer=_to_arrays, deserializer=_to_tensor)
        try:
            return self._ray.put(dataset)
        finally:
            util.deregister_serializer(Tensor)

    def _chosen_device(self, name: str) -> torch.device:
        gpus = self._ray.cluster_resources().get("GPU", 0)
        if name == "auto":
            return torch.device("cuda" if gpus else "cpu")
        if name not in ("cpu", "cuda"):
            raise UserError(
                f"the device is {name!r}; with Ray, give auto, cpu or cuda: Ray "
                "chooses the GPU"
            )
        if name == "cuda" and not gpus:
            raise UserError(
                "no node of the Ray cluster has a GPU; choose the device cpu, or start "
                "nodes with GPUs"
            )
        return torch.device(name)

    def _threads_of_a_task(self) -> int:
        """As many as torch has here, because rounding may depend on them."""
        if self.device.type == "cuda":
            return 1
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        most = int(max(node["Resources"].get("CPU", 0) for node in nodes))
        if not most:
            raise UserError(
                "no node of the Ray cluster has a CPU for tasks; start one with "
                "`ray start --num-cpus`"
            )
        return min(torch.get_num_threads(), most)


def _imported() -> Any:
    # Read when Ray is loaded. Nothing is sent to its makers, and it prints no warning.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # It would print the log of a lost node among the tables.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray = importlib.import_module("ray")
            importlib.import_module("ray.exceptions")
    except ImportError as error:
        raise UserError(
            "Ray is not installed; install it with: pip install 'tempergat[ray]'"
        ) from error
    return ray


def _to_arrays(tensor: Tensor) -> tuple[str, Any]:
    """A tensor as arrays, which Ray maps into memory without a copy."""
    if tensor.layout == torch.sparse_csr:
        parts = (tensor.crow_indices(), tensor.col_indices(), tensor.values())
        return "csr", (*(part.numpy() for part in parts), tuple(tensor.shape))
    return "dense", tensor.detach().cpu().numpy()


def _to_tensor(arrays: tuple[str, Any]) -> Tensor:
    layout, content = arrays
    with warnings.catch_warnings():
        # The arrays are read-only, and training does not write to the graph.
        warnings.simplefilter("ignore")
        if layout == "csr":
            rows, columns, values, shape = content
            return torch.sparse_csr_tensor(
                torch.from_numpy(rows),
                torch.from_numpy(columns),
                torch.from_numpy(values),
                size=shape,
            )
        return torch.from_numpy(np.asarray(content))


def _train(
    dataset: Dataset,
    seeds: tuple[int, ...],
    config: RunConfig,
    build: BuildModule | None,
    preparation: Preparation | None,
    device: str,
    threads: int,
    expected: tuple[str, str],
) -> _Answer:
    """A task: train a group. Errors that a user can correct are returned as text."""
    torch.set_num_threads(threads)
    present = (tempergat.__version__, _describe(device))
    for what, here, there in zip(
        ("tempergat", "device"), present, expected, strict=True
    ):
        if here != there:
            return "user", (
                f"the Ray node {socket.gethostname()} has the {what} {here}, and not "
                f"{there}; use nodes that have the same"
            )
    try:
        where = torch.device(device)
        return train_group(
            dataset, config, seeds, where, build=build, preparation=preparation
        )
    except OutOfMemory as error:
        return "memory", str(error)
    except UserError as error:
        return "user", str(error)


def _describe(device: str) -> str:
    return device_name(torch.device(device))
