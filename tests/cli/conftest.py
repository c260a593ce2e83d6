"""The command, run in this process as a shell would run it."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tempergat.cli import main
from tests.support.tiny_graph import write_graph, write_recipe


class Ending(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


class Command:
    """Calls `tempergat` with the arguments given, after those it always has."""

    def __init__(self, run: Callable[..., Ending], *always: object) -> None:
        self._run = run
        self._always = always

    def __call__(self, *arguments: object) -> Ending:
        return self._run(*self._always, *arguments)

    def facts(self, *arguments: object) -> Any:
        """What the command prints as JSON."""
        ended = self(*arguments, "--json")
        assert ended.status == 0, ended.err
        return json.loads(ended.out)

    def refuses(self, words: str, *arguments: object) -> None:
        """Asserts that the command says so and ends with status 2."""
        ended = self(*arguments)
        assert ended.status == 2
        assert words in ended.err
        assert "Traceback" not in ended.err


@pytest.fixture
def command(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Command]:
    """Call `tempergat` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: object) -> Ending:
        monkeypatch.setattr(sys, "argv", ["tempergat", *map(str, arguments)])
        code: str | int | None = None
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        assert code is None or isinstance(code, int)
        return Ending(code or 0, *capfd.readouterr())

    yield Command(run)
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_graph(tmp_path / "graph.npz")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path / "recipe.yaml")


@pytest.fixture
def compare(command: Command, graph: Path, recipe: Path) -> Command:
    """Call `tempergat compare` on the small graph with its quick recipe."""
    return Command(command, "compare", graph, "--recipe", recipe)
