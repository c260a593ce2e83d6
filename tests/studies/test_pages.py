"""Every page of a study is what its results give."""

import importlib
import re
from pathlib import Path

import pytest

from studies.pages import DOCS, fill, slots
from tempergat.base import UserError

STUDIES = sorted(path.parent.name for path in Path("studies").glob("*/tables.py"))


def test_a_table_and_a_number_are_made_again() -> None:
    page = (
        "There are <!--count small-->3<!--/--> graphs.\n\n"
        "<!-- scores -->\nold\n<!-- end -->\nafter\n"
    )
    made = fill(
        page, {"scores": lambda: "| new |"}, {"count": lambda size: f"7 {size}"}
    )
    assert made == (
        "There are <!--count small-->7 small<!--/--> graphs.\n\n"
        "<!-- scores -->\n| new |\n<!-- end -->\nafter\n"
    )


def test_an_unknown_name_on_a_page_is_named() -> None:
    with pytest.raises(UserError, match=r"table 'scoers'.*there are scores"):
        fill("<!-- scoers -->\n<!-- end -->", {"scores": lambda: ""}, {})


@pytest.mark.parametrize("study", STUDIES)
def test_a_page_is_what_its_results_give(study: str) -> None:
    made = importlib.import_module(f"studies.{study}.tables")
    text = (DOCS / f"{made.PAGE}.md").read_text(encoding="utf-8")
    assert fill(text, made.TABLES, made.NUMBERS) == text
    assert {*made.TABLES, *made.NUMBERS} == {*slots(text)}
    # A line that begins with a comment ends the paragraph.
    assert not re.search(r"^ {0,3}<!--\S", text, re.MULTILINE)
    for name in made.FIGURES:
        assert (DOCS / "figures" / f"{name}.svg").exists()
        assert f"figures/{name}.svg" in text
