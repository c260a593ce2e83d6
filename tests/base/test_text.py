"""Text is safe to print and short; times are in words, misspelt names suggested."""

import pytest

from tempergat.base import (
    UserError,
    did_you_mean,
    duration,
    one_line,
    printable,
    shown,
    suggest_one_of,
)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain ± é 図", "plain ± é 図"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("two\nlines\r", r"two\nlines\r"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\x9b2J", r"\x9b2J"),
        ("\u2028", r"\u2028"),
        ("\udc80", r"\udc80"),
    ],
)
def test_control_characters_become_visible(text: str, safe: str) -> None:
    assert printable(text) == safe


def test_line_breaks_may_be_kept() -> None:
    assert printable("a\n\x1bb", keep="\n") == "a\n\\x1bb"


def test_a_long_message_keeps_its_beginning_and_its_remedy() -> None:
    found = one_line("begins " + "x" * 10_000 + " ends", 50)
    assert len(found) == 50
    assert found.startswith("begins ")
    assert found.endswith(" ends")


def test_a_nested_value_is_cut() -> None:
    bomb: list[object] = ["lol"] * 10
    for _ in range(9):
        bomb = [bomb] * 10
    assert len(shown(bomb)) <= 80
    assert shown("short") == "'short'"
    assert shown(5e-4) == "0.0005"


def test_the_message_of_a_mistake_is_one_safe_line() -> None:
    message = str(UserError("column \x1b[2J\nlabel"))
    assert message == r"column \x1b[2J\nlabel"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (45.4, "45 s"),
        (200, "3 min 20 s"),
        (2 * 3600 + 300, "2 h 5 min"),
        (99 * 3600, "99 h 0 min"),
        (6 * 86400, "6 days"),
        (1100 * 86400, "3 years"),
    ],
)
def test_a_time_is_in_units_that_people_use(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("gatv", "did you mean gatv2 or gat? "),
        ("CORAA", "did you mean cora? "),
        ("xyz", ""),
    ],
)
def test_all_close_names_are_suggested_in_any_case(word: str, words: str) -> None:
    assert did_you_mean(word, ["gat", "gatv2", "mlp", "cora"]) == words


def test_without_a_close_name_all_are_listed() -> None:
    assert suggest_one_of("zzz", ["gcn", "gat"]) == "choose one of gat, gcn"
    assert suggest_one_of("gaat", ["gcn", "gat"]) == "did you mean gat?"
