"""docs/paper.md has every item of the paper, and its commands and names exist."""

import ast
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import studies.__main__ as studies_command
import tempergat
from studies.homogeneous import tables as homogeneous
from studies.noise import tables as noise
from studies.ranks import tables as ranks
from studies.theory import tables as theory
from studies.transformers import tables as transformers
from tempergat import data, nn
from tempergat.cli.application import app
from tempergat.data import CATALOG
from tempergat.nn import METHODS
from tests.support.doc_blocks import blocks_of, run_command
from tests.support.tiny_graph import write_graph

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "paper.md"
TEXT = PAGE.read_text(encoding="utf-8")
ITEMS = 85
ROOMS = (data, nn, tempergat)
STATES = ("runs; not run here", "runs", "differs", "future work there, not done here")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if re.match(r"\| \d+ \|", line)
]
DATASETS = re.findall(r"^\| ([\w-]+) \| [35] \| `([\w.]+)` \|", TEXT, re.MULTILINE)
CODE = [code for row in ROWS for code in re.findall(r"`([^`]+)`", row[2])]
SHELL = [line for block in blocks_of(PAGE) for line in block.code.splitlines()]
COMMANDS = sorted(
    {
        code.partition(" #")[0].strip()
        for code in [*CODE, *SHELL, *re.findall(r"\| `(tempergat [^`]+)` \|", TEXT)]
        if code.startswith(("tempergat ", "python -m "))
    }
)
NAMES = sorted({code for code in CODE if code not in COMMANDS})
TRAINING = [line for line in COMMANDS if line.split()[1] in ("compare", "train")]


def test_every_item_has_its_place_and_one_of_four_states() -> None:
    assert [row[0] for row in ROWS] == [str(1 + place) for place in range(ITEMS)]
    for number, item, _, more, state in ROWS:
        assert item, number
        assert more.startswith("["), number
        assert re.match(rf"\*\*({'|'.join(STATES)})\*\*", state), number


def test_the_eleven_datasets_are_those_of_the_catalog_with_their_loaders() -> None:
    named = {name.lower(): loader for name, loader in DATASETS}
    assert len(DATASETS) == len(named) == 11
    assert named == {name: CATALOG[name].reader for name in named}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_on_the_page_exists_and_its_example_can_be_made(name: str) -> None:
    if name in METHODS:
        return
    known = {one: getattr(room, one) for room in ROOMS for one in room.__all__}
    made = eval(compile(ast.parse(name, mode="eval"), PAGE.name, "eval"), known)
    assert made is not None


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_on_the_page_is_understood_and_run_unless_it_trains(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *words = shlex.split(line)
    if program == "tempergat":
        command: Any = get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        command.make_context(line, words)
        if line not in TRAINING:
            run_command(line, PAGE.name)
        return
    module, *words = words[1:]
    if module != "studies":
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
        return
    asked: list[str] = []
    for name in ("train", "fill_page"):
        monkeypatch.setattr(
            studies_command, name, lambda *a: asked.append(a[0]) or True
        )
    monkeypatch.setattr("sys.argv", ["studies", *words])
    assert studies_command.main() == 0
    assert bool(asked) == bool(words)


@pytest.mark.slow
@pytest.mark.parametrize("line", TRAINING)
def test_a_command_that_trains_does_so_on_a_small_graph(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_graph(tmp_path / "graph.npz")
    words = ["graph.npz" if word in CATALOG else word for word in shlex.split(line)]
    if "--runs" in words:
        words[words.index("--runs") + 1] = "2"
    elif words[1] == "compare":
        words += ["--runs", "2"]
    # The small graph is no dataset of the paper with an option of its own.
    if "--features" in words:
        place = words.index("--features")
        del words[place : place + 2]
    words += ["--epochs", "2", "--device", "cpu", "--quiet"]
    run_command(shlex.join(words), PAGE.name)


def test_the_first_sentences_quote_the_results() -> None:
    text = " ".join(TEXT.split())
    found = homogeneous.NUMBERS
    assert f"{found['agree']('agree')} of {found['agree']('all')} scores" in text
    assert f"all {found['gated_gains']()} gains of its gated variants" in text
    most = found["most_gated"]("best_val_accuracy")
    assert f"at most {most} by validation accuracy" in text
    assert found["most_gated"]("best_val_loss") == found["gated_gains"]()


@pytest.mark.parametrize(
    ("item", "words", "number"),
    [
        (34, "{} of 33", lambda: homogeneous.NUMBERS["agree"]("agree")),
        (50, "all {} checks", theory.NUMBERS["holding"]),
        (70, "{} of 88", ranks.NUMBERS["count_below"]),
        (80, "all {} datasets", lambda: noise.NUMBERS["count"]("temperature", "rises")),
        (81, "{} of 6", lambda: noise.NUMBERS["count"]("gate", "falls")),
        (84, "temperature gains {}", lambda: gain_of("temp_only_transformer")),
        (84, "gate loses {}", lambda: gain_of("gated_transformer")),
    ],
)
def test_an_item_quotes_its_result(
    item: int, words: str, number: Callable[[], str]
) -> None:
    assert words.format(number()) in ROWS[item - 1][-1]


def gain_of(method: str) -> str:
    """Points that a graph transformer gains or loses, without their sign."""
    return f"{abs(float(transformers.NUMBERS['gain'](method).split()[0])):.1f}"
