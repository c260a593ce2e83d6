"""The code on the pages of docs/ and in README.md runs."""

import ast
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tempergat.nn import forget_graphs
from tests.support.doc_blocks import MARKS, blocks_of, run_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
RUNNING = sorted({block.page for block in BLOCKS if block.runs})


def parameter(page: Path) -> object:
    """The page as a test's parameter; slow if one of its blocks is."""
    slow = any("slow" in block.marks for block in BLOCKS if block.page == page)
    return pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if slow else [])


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty working folder; what the page changes in the process is undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
    forget_graphs()


@pytest.mark.parametrize("page", [parameter(page) for page in RUNNING])
@pytest.mark.usefixtures("empty_folder")
def test_the_code_on_a_page_runs(page: Path) -> None:
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_have_known_marks_and_their_python_is_valid(page: Path) -> None:
    for block in blocks_of(page):
        place = f"{page.name}:{block.line}"
        assert block.marks <= MARKS, place
        if block.language == "python":
            ast.parse(block.code, place)
