"""What left the product is named in the changelog, and on pages kept as history."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tempergat.cli.application import app

ROOT = Path(__file__).parents[1]
# Pages that tell what was tested with a command that left; they say so themselves.
HISTORY = {"docs/diagnose.md"}
READ = ("src/**/*.*", "docs/**/*.md", "docs/**/*.py", "examples/*.py")
ALONE = ("README.md", "CONTRIBUTING.md", "pyproject.toml", "constraints.txt")
# Text that people read or Python runs; not data, which names what others publish.
SUFFIXES = {".py", ".md", ".yaml", ".html", ".js", ".toml", ".txt", ".h", ".cpp"}
LEFT = {
    "DGL's models": r"from_dgl|from dgl\b|[Ii]mports? of DGL",
    "the Hub": r"_pretrained|push_to_hub|hugging_?\s?face|\[hub\]|^hub =",
    "the scikit-learn estimator": r"GraphClassifier|\[sklearn\]|^sklearn =",
    "LABOR": r"\blabor\b|choose_shared",
    "diagnose": r"tempergat diagnose|`diagnose`|\bdiagnos(e_|is)|\bscreening\b",
    "shards": r"\bshards?\b|\btempergat[. ]merge\b",
    "a graph for each run": r"GraphPerRun|BatchOfRuns",
}


def help_pages(command: Any, name: str) -> Iterator[tuple[str, str]]:
    with command.make_context(name, [], resilient_parsing=True) as context:
        yield f"tempergat {name} --help", command.get_help(context)
    for word, inner in getattr(command, "commands", {}).items():
        yield from help_pages(inner, f"{name} {word}")


def texts() -> Iterator[tuple[str, str]]:
    """Everything that a user or a contributor reads."""
    files = [path for pattern in READ for path in ROOT.glob(pattern)]
    for path in [*files, *(ROOT / name for name in ALONE)]:
        where = path.relative_to(ROOT).as_posix()
        if path.suffix in SUFFIXES and where not in HISTORY:
            yield where, path.read_text(encoding="utf-8")
    yield from help_pages(get_command(app), "")


@pytest.mark.parametrize("what", LEFT)
def test_nothing_names_what_left(what: str) -> None:
    pattern = re.compile(LEFT[what], re.IGNORECASE | re.MULTILINE)
    found = [
        f"{where}: {m[0]}" for where, text in texts() for m in pattern.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize("page", sorted(HISTORY))
def test_a_page_kept_as_history_says_so_first(page: str) -> None:
    _, first, *_ = filter(None, (ROOT / page).read_text("utf-8").splitlines())
    assert first.startswith("This page is history: ")
