"""The report in a real browser: every control does what it says."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from matplotlib import image

from tempergat.comparison.results.comparisons import Comparisons
from tests.support.browser import opened
from tests.support.made_up_comparisons import comparison, hostile_comparison

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

SIZES = {"phone": (390, 844), "laptop": (1280, 800), "projector": (1920, 1080)}


@pytest.fixture
def page(chromium: "Browser", tmp_path: Path) -> "Iterator[Page]":
    path = comparison().to_report(tmp_path / "report.html")
    with opened(chromium, path) as page:
        yield page


def methods_of(page: "Page") -> list[str]:
    cells = page.locator("table.scores tbody th").all_inner_texts()
    return [cell.split()[0] for cell in cells]


def test_a_click_on_a_heading_sorts_and_a_second_click_turns_the_order(
    page: "Page",
) -> None:
    assert methods_of(page) == ["gcn", "gat", "gated"]
    page.get_by_role("button", name="accuracy", exact=True).click()
    assert methods_of(page) == ["gated", "gat", "gcn"]
    last = page.locator("table.scores tr").last
    assert last.inner_text().split("\t")[:3] == ["largest class", "-", "50.00"]
    page.get_by_role("button", name="accuracy", exact=True).click()
    assert methods_of(page) == ["gcn", "gat", "gated"]
    heading = page.locator("th", has_text="accuracy")
    assert heading.get_attribute("aria-sort") == "ascending"


def test_methods_without_a_difference_stay_at_the_end(page: "Page") -> None:
    page.get_by_role("button", name="difference to gat").click()
    for _ in range(2):
        page.get_by_role("button", name="difference", exact=True).click()
        assert methods_of(page)[-1] == "gat"


def test_the_toggle_changes_between_scores_and_differences(page: "Page") -> None:
    difference = page.locator("td[data-in=differences]").first
    score = page.locator("td[data-in=scores]").first
    assert score.is_visible()
    assert not difference.is_visible()
    page.get_by_role("button", name="difference to gat").click()
    assert difference.is_visible()
    assert not score.is_visible()


def test_copied_tables_are_those_of_the_files(page: "Page") -> None:
    shown = comparison()
    for name, text in (
        ("LaTeX", shown.to_latex()),
        ("Markdown", shown.to_markdown()),
        ("CSV", shown.to_csv()),
    ):
        page.locator(f"button[data-copy={name}]").click()
        page.get_by_text(f"copied as {name}").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == text


def test_a_figure_is_saved_as_svg_and_png(page: "Page") -> None:
    for kind in ("svg", "png"):
        with page.expect_download() as download:
            page.locator(f"button[data-save={kind}]").first.click()
        content = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename == f"cora_Every_run.{kind}"
        if kind == "svg":
            assert b"var(--" not in content
            assert b"gated" in content
        else:
            assert image.imread(io.BytesIO(content)).std() > 0.01


def test_another_confusion_matrix_is_shown_when_chosen(page: "Page") -> None:
    figure = page.locator("figure", has_text="Confusion matrix")
    assert figure.locator("svg:visible").count() == 1
    figure.get_by_role("combobox").select_option(label="gcn")
    name = figure.locator("svg:visible").get_attribute("aria-label")
    assert name == "Confusion matrix of gcn"


def test_tables_of_several_graphs_are_sorted_and_copied(
    chromium: "Browser", tmp_path: Path
) -> None:
    both = Comparisons((comparison("cora"), comparison("citeseer")))
    path = both.to_report(tmp_path / "all.html")
    with opened(chromium, path) as page:
        first = page.get_by_role("table", name="Summary").locator("tbody th").first
        page.get_by_role("button", name="average rank", exact=True).click()
        assert first.inner_text() == "gcn"
        page.get_by_role("button", name="average rank", exact=True).click()
        assert first.inner_text() == "gated"
        page.get_by_role("button", name="Copy the Summary of 2 graphs as CSV").click()
        page.get_by_text("copied as CSV").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.splitlines()[:2] == [
            "method,average rank,against,wins,ties,losses",
            "gated,1.00,gat,2,0,0",
        ]
        page.get_by_role("link", name="citeseer").click()
        assert page.evaluate("location.hash") == "#graph-2"


def test_the_theme_follows_the_system_and_the_button(
    chromium: "Browser", tmp_path: Path
) -> None:
    path = comparison().to_report(tmp_path / "report.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(chromium, path, color_scheme="dark") as page:
        dark = page.evaluate(ground)
        page.get_by_role("button", name="Change between light and dark").click()
        light = page.evaluate(ground)
    assert (dark, light) == ("rgb(21, 24, 27)", "rgb(253, 253, 252)")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wider_than_the_page(
    chromium: "Browser", tmp_path: Path, size: str, theme: str
) -> None:
    wide = comparison("x" * 80, recipe="r" * 120)
    path = Comparisons((comparison(), wide)).to_report(tmp_path / "report.html")
    width, height = SIZES[size]
    view = {"width": width, "height": height}
    with opened(chromium, path, viewport=view, color_scheme=theme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_markup_in_the_names_of_graphs_and_classes_is_text(
    chromium: "Browser", tmp_path: Path
) -> None:
    path = hostile_comparison().to_report(tmp_path / "report.html")
    with opened(chromium, path) as page:
        assert page.evaluate("window.harmed") is None
        assert page.locator("img, td b").count() == 0
        assert '"><img>' in page.locator("h1").inner_text()
        titles = page.locator("figure", has_text="Confusion").locator("svg title")
        assert any("window.harmed" in words for words in titles.all_text_contents())


@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_the_verdict_is_in_sight_and_a_plot_is_as_wide_as_the_table(
    chromium: "Browser", tmp_path: Path, size: str
) -> None:
    path = comparison().to_report(tmp_path / "report.html")
    width, height = SIZES[size]
    viewport = {"width": width, "height": height}
    with opened(chromium, path, viewport=viewport) as page:
        second = page.locator("table.scores thead th").nth(1)
        assert second.inner_text() in ("could be best", "verdict")
        box = second.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
        table = page.locator(".scroll:has(table.scores)").bounding_box()
        plot = page.locator("figure svg:visible").first.bounding_box()
        assert table is not None
        assert plot is not None
        assert plot["width"] == pytest.approx(table["width"], rel=0.01)


def test_figures_fit_a_phone_and_their_letters_can_be_read(
    chromium: "Browser", tmp_path: Path
) -> None:
    both = Comparisons((comparison("cora"), comparison("citeseer")))
    path = both.to_report(tmp_path / "all.html")
    view = {"width": 390, "height": 844}
    with opened(chromium, path, viewport=view) as page:
        measured = page.evaluate(
            "[...document.querySelectorAll('figure svg')].map((svg) => "
            "[svg.getBoundingClientRect(), svg.viewBox.baseVal.width])"
            ".filter(([box]) => box.width).map(([box, width]) => "
            "[box.left, box.right, box.width / width])"
        )
    assert len(measured) > 10
    for left, right, scale in measured:
        assert left >= 0
        assert right <= 390
        assert scale >= 0.59


def test_every_control_is_reached_by_the_keyboard(page: "Page") -> None:
    page.keyboard.press("Tab")
    reached = set()
    for _ in range(60):
        reached.add(page.evaluate("document.activeElement.textContent.trim()"))
        page.keyboard.press("Tab")
    assert {"mean ± std", "accuracy", "Copy LaTeX", "Save SVG"} <= reached
