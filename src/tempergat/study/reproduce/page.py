"""A page of docs/ that is made from results/."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tempergat.base import UserError
from tempergat.study.reproduce.jobs import Job, Workspace


@dataclass(frozen=True)
class Written:
    """A page that was written.

    Attributes:
        path: The page.
        lines: What it says, in a few lines.
        facts: The same in full, as plain JSON values.
    """

    path: Path
    lines: tuple[str, ...]
    facts: dict[str, Any]


@dataclass(frozen=True)
class Page:
    """A page, what it is made from and how.

    Attributes:
        name: The word after `reproduce`.
        reads: The files below results/ that it is made from; patterns.
        writes: The files below docs/ that are written; patterns.
        jobs: The parts of results/ that it needs. They are run in this order, and a
            job is asked for only after those before it were run.
        write: Writes the page from the folder of results into the folder of pages.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    jobs: Callable[[Workspace], Iterable[Job]]
    write: Callable[[Path, Path], Written]

    def chosen_jobs(
        self, workspace: Workspace, datasets: Sequence[str] | None
    ) -> list[Job]:
        """The jobs of some datasets, or of all.

        Raises:
            UserError: The page has no such dataset.
        """
        jobs = list(self.jobs(workspace))
        if datasets is None:
            return jobs
        known = list(dict.fromkeys(job.dataset for job in jobs))
        for name in datasets:
            if name not in known:
                raise UserError(
                    f"{self.name} has no dataset {name!r}; choose from "
                    f"{', '.join(known)}"
                )
        return [job for job in jobs if job.dataset in datasets]


@dataclass(frozen=True)
class Outcome:
    """What `run_page` did.

    Attributes:
        done: A line for each file of results that was completed.
        not_done: Why the results of a dataset are still incomplete, by dataset.
    """

    done: tuple[str, ...] = ()
    not_done: dict[str, str] = field(default_factory=dict)


def run_page(
    page: Page,
    workspace: Workspace,
    datasets: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train what a page's results lack and put it into results/.

    What cannot be trained is left out and reported, so that one dataset whose files
    cannot be fetched does not hold up the others.

    Args:
        page: The page.
        workspace: Where results are and where to train.
        datasets: The graphs to train on; all of the page's when left out.
        say: Called with a line about each job.

    Raises:
        UserError: The page has no such dataset, or results cannot be read.
    """
    page.chosen_jobs(workspace, datasets)
    done: list[str] = []
    not_done: dict[str, str] = {}
    for job in page.jobs(workspace):
        if datasets is not None and job.dataset not in datasets:
            continue
        stock = job.stock(workspace)
        if stock.is_complete:
            continue
        try:
            say(f"{job.dataset}: {stock.present} of {stock.needed} {stock.unit} there")
            done.append(job.run(workspace))
        except UserError as error:
            not_done[job.dataset] = str(error)
    return Outcome(tuple(done), not_done)
