"""The committed pages are those that the committed results give."""

from pathlib import Path

import pytest
import torch

from tempergat.base import UserError
from tempergat.cli.studies.reproduce import PAGE_HELP
from tempergat.cli.studies.theory_page import theory_page
from tempergat.study.reproduce import PAGES, Workspace
from tests.support.small_study import RESULTS

ROOT = RESULTS.parent
ALL = {**PAGES, "theory": theory_page()}
# Of the paper's second table there are no runs yet.
COMMITTED = [name for name in ALL if name != "heterogeneous"]


def place() -> Workspace:
    return Workspace(RESULTS, Path("none"), torch.device("cpu"))


def test_every_page_has_a_command() -> None:
    assert list(PAGE_HELP) == list(ALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMITTED)
def test_what_a_page_reads_is_there_and_complete(name: str) -> None:
    for pattern in ALL[name].reads:
        assert list(RESULTS.glob(pattern)), pattern
    missing = [
        job.dataset
        for job in ALL[name].jobs(place())
        if not job.stock(place()).is_complete
    ]
    # There are no runs yet on larger datasets.
    larger = ["ogbn-arxiv", "ogbn-products", "reddit"]
    expected = {"homogeneous": larger, "ranks": larger}
    assert missing == expected.get(name, [])


def test_a_page_without_runs_says_how_to_train_them(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tempergat reproduce heterogeneous --run"):
        PAGES["heterogeneous"].write(RESULTS, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMITTED)
def test_the_committed_page_and_figures_are_made_from_the_results(
    name: str, tmp_path: Path
) -> None:
    ALL[name].write(RESULTS, tmp_path)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert made
    for path in made:
        committed = ROOT / "docs" / path.relative_to(tmp_path)
        assert path.read_bytes() == committed.read_bytes(), path.name
