"""The parts of results/ that pages are made from, and how missing ones are made."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from tempergat.data import Dataset, load
from tempergat.study.engine import OnProgress, Run, Store, read_runs
from tempergat.training import RunConfig

_STORE_NAME = "store.sqlite"


@dataclass(frozen=True)
class Workspace:
    """Where results are, and where missing ones are made.

    Attributes:
        results: The folder of published results.
        out: The folder of the store, and of other files that are not published.
        device: Where to train.
        load: Reads a dataset by its name.
        watch: Gives the progress callback for training on a dataset.
    """

    results: Path
    out: Path
    device: torch.device
    load: Callable[[str], Dataset] = load
    watch: Callable[[str], OnProgress | None] = lambda name: None
    _runs: dict[str, list[Run]] = field(default_factory=dict, repr=False)

    def open_store(self) -> Store:
        """The store of runs that are trained here."""
        return Store(self.out / _STORE_NAME)

    @property
    def has_store(self) -> bool:
        """Whether there is a store already."""
        return (self.out / _STORE_NAME).is_file()

    def published_runs(self, file: str) -> list[Run]:
        """The runs of a CSV below `results`; none where there is no such file."""
        if file not in self._runs:
            path = self.results / file
            self._runs[file] = read_runs(path) if path.exists() else []
        return self._runs[file]

    def forget(self, file: str) -> None:
        """Read a CSV again the next time, after it was written."""
        self._runs.pop(file, None)


@dataclass(frozen=True)
class Batch:
    """Missing runs of one configuration."""

    config: RunConfig
    runs: int


@dataclass(frozen=True)
class Stock:
    """How much of a job is in results/ already.

    Attributes:
        needed: How many runs the page needs.
        present: How many of them are there.
        missing: The runs to be trained, by configuration.
        elsewhere: Runs from other devices or versions that are there, by origin. They
            are not combined with runs of this device.
        unit: What is counted.
        time_note: The time that the missing part takes, where it does not follow from
            finished runs.
    """

    needed: int
    present: int
    missing: tuple[Batch, ...] = ()
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    unit: str = "runs"
    time_note: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return self.present >= self.needed


class Job(ABC):
    """One graph's part of the results that a page is made from.

    Attributes:
        dataset: Name of the graph, or of the group of graphs.
        file: The file below results/ that holds it.
    """

    dataset: str
    file: str

    @abstractmethod
    def stock(self, workspace: Workspace) -> Stock:
        """What is there, and what is missing."""

    @abstractmethod
    def run(self, workspace: Workspace) -> str:
        """Make what is missing and put it into results/.

        Returns:
            A line that says what was written.
        """

    def example_graph(self, workspace: Workspace) -> Dataset:
        """The graph, or a typical one of several, for estimates of memory."""
        return workspace.load(self.dataset)
