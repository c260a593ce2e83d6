"""Generated Markdown has lines of one length, and tables, code and pictures whole."""

from tempergat.comparison.report.markdown import filled

LONG = "word " * 40


def test_paragraphs_and_items_are_broken_at_the_width_and_nothing_is_lost() -> None:
    text = f"# Title\n\n{LONG}\nshort\n\n- {LONG}\n  goes on\n- next\n"
    found = filled(text)
    assert found.split() == text.split()
    assert max(map(len, found.split("\n"))) <= 88
    lines = found.split("\n")
    item = lines.index("- next")
    assert lines[item - 1].startswith("  word")
    assert lines[item - 1].endswith("goes on")
    assert found.endswith("- next\n")


def test_tables_headings_pictures_and_code_stay_whole() -> None:
    kept = f"# {LONG}\n\n| {LONG} |\n| --- |\n\n![{LONG}](a.svg)\n\n    {LONG}\n"
    assert filled(kept) == kept


def test_filling_again_changes_nothing() -> None:
    once = filled(f"{LONG}\n\n- {LONG}\n- {LONG}\n\n{LONG}")
    assert filled(once) == once
