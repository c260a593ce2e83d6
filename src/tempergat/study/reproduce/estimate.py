"""Estimates of the time and memory that missing runs take."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from tempergat.base import UserError
from tempergat.data import Dataset, find_entry
from tempergat.study.engine import Run
from tempergat.study.reproduce.jobs import Batch, Job, Workspace
from tempergat.study.reproduce.sampled_cost import (
    FLOAT_BYTES,
    sampled_bytes,
    sampled_seconds,
)
from tempergat.training import bytes_per_seed, group_size

# The published tables whose runs have times.
_TIMED = (
    "homogeneous.csv",
    "heterogeneous.csv",
    "tuned.csv",
    "calibration.csv",
    "multiverse/cora.csv",
    "multiverse/citeseer.csv",
    "multiverse/pubmed.csv",
)


@dataclass(frozen=True)
class TimeEstimate:
    """How long missing runs take, and what that is estimated from."""

    time_s: float
    source: str


class Speeds:
    """Time per epoch and run, as measured by finished runs on one kind of device.

    Args:
        workspace: Its results and its store are searched for finished runs.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._device, self._kind = workspace.device, workspace.device.type
        self._devices: set[str] = set()
        self._sums: dict[tuple[str, str], tuple[float, int]] = {}
        self._runs: dict[str, int] = {}
        for run in _finished_runs(workspace):
            epochs = run.config.get("epochs")
            # A device is called `cpu`, or `cuda (NAME)`.
            same_kind = run.device.split()[0] == self._kind
            if run.status != "done" or not same_kind or not epochs:
                continue
            key = (run.dataset, run.method)
            time_s, done = self._sums.get(key, (0.0, 0))
            self._sums[key] = (time_s + run.time_s, done + int(epochs))
            self._runs[run.dataset] = self._runs.get(run.dataset, 0) + 1
            self._devices.add(run.device)

    def estimate(self, dataset: str, batches: Sequence[Batch]) -> TimeEstimate | None:
        """The time that missing runs take; None where nothing was measured.

        Runs on the dataset itself are used where there are some. Otherwise the time
        of sampled training is computed from its settings, and for full training the
        time on the dataset nearest in size is scaled by the number of nodes and edges.
        """
        measured, factor, scaled = dataset, 1.0, ""
        if dataset not in self._runs:
            if all(batch.config.training == "sampled" for batch in batches):
                return self._computed(dataset, batches)
            size = _size(dataset)
            ratios = {
                name: size / known
                for name in self._runs
                if size is not None and (known := _size(name)) is not None
            }
            if not ratios:
                return None
            measured = min(ratios, key=lambda name: abs(math.log(ratios[name])))
            factor, scaled = ratios[measured], ", scaled by nodes and edges"
        time_s = sum(
            batch.runs * batch.config.epochs * self._speed(measured, batch)
            for batch in batches
        )
        return TimeEstimate(
            factor * time_s,
            f"from {self._runs[measured]:,} runs on {measured} with "
            f"{', '.join(sorted(self._devices))}{scaled}",
        )

    def _computed(self, dataset: str, batches: Sequence[Batch]) -> TimeEstimate:
        entry, total, source = find_entry(dataset), 0.0, ""
        for batch in batches:
            seconds, source = sampled_seconds(entry, batch.config, self._device)
            total += batch.runs * seconds
        return TimeEstimate(total, source)

    def _speed(self, dataset: str, batch: Batch) -> float:
        """Seconds per epoch of a run; over all methods where this one was not run."""
        key = (dataset, batch.config.method)
        if key in self._sums:
            time_s, epochs = self._sums[key]
            return time_s / epochs
        of_all = [sums for (name, _), sums in self._sums.items() if name == dataset]
        return sum(time_s for time_s, _ in of_all) / sum(done for _, done in of_all)


def memory_bytes(
    job: Job, batches: Sequence[Batch], workspace: Workspace, is_local: bool
) -> int | None:
    """Memory that the largest group of runs takes at once; None where unknown.

    Sampled training is estimated from the counts of the catalogue; full-batch training
    from the graph itself, or from the counts where it is not here and has one type.

    Args:
        job: The job.
        batches: Its missing runs.
        workspace: Where to train.
        is_local: Whether the files of the graph are here.
    """
    if all(batch.config.training == "sampled" for batch in batches):
        entry = find_entry(job.dataset)
        return max(sampled_bytes(entry, batch.config) for batch in batches)
    graph = job.example_graph(workspace) if is_local else _counted_graph(job.dataset)
    if graph is None:
        return None
    return max(
        min(group_size(graph, batch.config, workspace.device), batch.runs)
        * bytes_per_seed(graph, batch.config)
        for batch in batches
    )


def _counted_graph(name: str) -> Dataset | None:
    """A graph of the catalogue's counts, without values; None for a typed graph."""
    entry = find_entry(name)
    if entry.target is not None or entry.num_edges is None:
        return None
    with torch.device("meta"):
        x = torch.empty(entry.num_nodes, entry.num_features)
        data = Data(x=x, edge_index=torch.empty(2, entry.num_edges, dtype=torch.long))
    return Dataset(name, data, None, entry.num_classes, entry.metric, "", "")


def disk_bytes(dataset: str) -> int | None:
    """Size of a dataset's files: what is downloaded, and the arrays made of it."""
    try:
        entry = find_entry(dataset)
    except UserError:
        return 0
    if entry.download_bytes is None and not entry.keep_processed:
        return None
    found = entry.download_bytes or 0
    if entry.keep_processed:
        numbers = entry.num_nodes * entry.num_features + 2 * (entry.num_edges or 0)
        found += FLOAT_BYTES * numbers
    return found


def _finished_runs(workspace: Workspace) -> Iterator[Run]:
    for file in _TIMED:
        yield from workspace.published_runs(file)
    if workspace.has_store:
        with workspace.open_store() as store:
            yield from store.runs()


def _size(dataset: str) -> int | None:
    """Nodes and edges as the catalogue counts them; None for other graphs."""
    try:
        entry = find_entry(dataset)
    except UserError:
        return None
    return None if entry.num_edges is None else entry.num_nodes + entry.num_edges
