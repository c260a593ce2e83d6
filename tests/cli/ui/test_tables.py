"""Tables fit the terminal, and progress shows where a sweep stands."""

import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from tempergat.cli.ui.display import TerminalDisplay, print_comparison
from tempergat.cli.ui.tables import layout, print_table
from tempergat.comparison.options import CompareOptions
from tempergat.comparison.plan import make_plan
from tempergat.comparison.report.formats import Table
from tempergat.comparison.sweeps.state import Progress
from tests.support.made_up_comparisons import comparison
from tests.support.made_up_runs import failed_run, run

COLUMNS = ("method", "accuracy", "95 % interval", "runs", "p", "d", "verdict")
ROWS = (
    ("gat", "81.00 ± 0.50", "80.50 to 81.50", "10", "-", "-", "baseline"),
    ("temp_gated", "82.00 ± 0.50", "81.50 to 82.50", "10", "0.020", "+1.2", "better"),
)


def test_words_are_aligned_left_and_numbers_right() -> None:
    heading, rule, gat, gated = layout(COLUMNS, ROWS, 200).plain.splitlines()
    assert heading.startswith("method ")
    assert set(rule) == {"─"}
    assert gat.startswith("gat     ")
    assert gated.endswith("0.020  +1.2  better")
    assert gat.index("10") == gated.index("10")


def test_a_narrow_terminal_loses_the_least_important_columns() -> None:
    for width in range(40, 90):
        table = layout(COLUMNS, ROWS, width).plain
        assert max(map(len, table.splitlines())) <= max(width, 37)
        assert "verdict" in table
        assert "82.00 ± 0.50" in table
    assert " d " not in layout(COLUMNS, ROWS, 70).plain
    assert "80.50 to 81.50" not in layout(COLUMNS, ROWS, 40).plain


def test_only_urgent_notes_are_printed_unless_all_are_asked_for() -> None:
    notes = ("p: paired t-test.", "gat: 1 of 9 runs failed.")
    table = Table("scores", COLUMNS, ROWS, notes, urgent=notes[1:])
    for verbose, expected in ((True, notes), (False, notes[1:])):
        file = io.StringIO()
        print_table(Console(file=file, width=90), table, verbose=verbose)
        _, shown = file.getvalue().split("better\n")
        assert tuple(shown.splitlines()) == expected


def test_a_column_that_is_not_shown_is_not_explained() -> None:
    table = Table("scores", COLUMNS, ROWS, ("d: Cohen's d of the pairs.",))
    for width, is_shown in ((90, True), (60, False)):
        file = io.StringIO()
        print_table(Console(file=file, width=width), table)
        assert ("Cohen's d" in file.getvalue()) == is_shown


def test_best_and_second_are_bold_and_underlined() -> None:
    marks = Table("scores", COLUMNS, ROWS, scores=(1,)).marks
    shown = layout(COLUMNS, ROWS, 200, marks)
    looks = {shown.plain[s.start : s.end]: str(s.style) for s in shown.spans}
    assert looks["82.00 ± 0.50"] == "bold"
    assert looks["81.00 ± 0.50"] == "underline"


def test_verdicts_are_coloured() -> None:
    styles = {str(span.style) for span in layout(COLUMNS, ROWS, 200).spans}
    assert "green" in styles
    assert isinstance(layout(COLUMNS, ROWS, 200), Text)


def _shown(terminal: bool, quiet: bool = False, kind: str = "xterm") -> str:
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=terminal, width=100, _environ={"TERM": kind}
    )
    plan = make_plan(CompareOptions("demo", ["gat", "gatv2"], 2))
    display = TerminalDisplay([plan], console, quiet=quiet, as_json=False)
    display.start(plan, ())
    of_gat = (run("gat", 0, 0.8), run("gat", 1, 0.82))
    of_gatv2 = (run("gatv2", 0, 0.7), failed_run("gatv2", 1))
    for progress in (
        Progress(None, 0, 4),
        Progress("gat", 0, 4, 2, epoch=7, epochs=9),
        Progress("gat", 2, 4, 2, epochs=9, new=of_gat, time_left_s=65.0),
        Progress("gatv2", 2, 4, 2, epochs=9, time_left_s=65.0, waiting=True),
        Progress("gatv2", 4, 4, 2, epochs=9, new=of_gatv2, time_left_s=0.0),
    ):
        display.progress(progress)
    display.end()
    return file.getvalue()


@pytest.mark.parametrize(
    ("splits", "typed", "command"),
    [
        (1, [], "tempergat compare --runs 40"),
        (10, ["--splits", "10"], "tempergat compare --splits 40 --runs 40"),
        # Splits that come with the graph are as many as there are.
        (10, [], None),
    ],
)
def test_the_answer_is_last_and_before_it_what_more_seeds_would_do(
    splits: int,
    typed: list[str],
    command: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["tempergat", "compare", *typed])
    found = comparison(against={})
    result = replace(found.result, fewer=(40, 2.9), splits=splits)
    files = tuple(Path(f"demo.{kind}") for kind in ("csv", "svg", "png", "html"))
    print_comparison(replace(found, result=result, files=files))
    *_, before, last = capsys.readouterr().out.splitlines()
    assert last == str(found.answer)
    if command is None:
        assert before.startswith("With about 40 seeds about three methods could still")
    else:
        assert before.startswith("more ")
        assert before.endswith(command.removeprefix("tempergat"))


def test_progress_lines_have_scores_counts_and_time_left() -> None:
    assert _shown(terminal=False).splitlines() == [
        "gat: 81.00 ± 1.41 over 2 runs; 2 of 4 runs, about 1 min 5 s left",
        "gatv2: waiting for another process to finish it",
        "gatv2: 70.00 over 1 run, 1 failed; 4 of 4 runs",
    ]


def test_a_terminal_that_cannot_move_its_cursor_gets_lines() -> None:
    assert _shown(terminal=True, kind="dumb") == _shown(terminal=False)


def test_the_live_table_ends_with_all_and_leaves_nothing_behind() -> None:
    shown = _shown(terminal=True)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "81.00 ± 1.41" in plain
    assert "best so far gat 81.00" in plain
    assert "1 failed" in plain
    assert shown.rstrip("\r\n").endswith("\x1b[2K")


def test_quiet_is_silent_everywhere() -> None:
    assert _shown(terminal=True, quiet=True) == _shown(False, quiet=True) == ""
