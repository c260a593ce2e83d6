"""The site that `make docs` builds, in a real browser."""

import io
from pathlib import Path

import pytest
from matplotlib import image

from tests.support.browser import opened

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs"
PAGES = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
PHONE = {"width": 390, "height": 844}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (SITE / "index.html").exists(), reason="the site is not built: make docs"
    ),
]


@pytest.mark.parametrize("page", sorted(PAGES), ids=str)
def test_a_page_fits_a_phone_and_asks_for_nothing_outside(
    chromium: object, page: Path
) -> None:
    built = SITE / page.with_suffix(".html")
    with opened(chromium, built, viewport=PHONE) as shown:
        width = shown.evaluate("document.documentElement.scrollWidth")
        broken = shown.evaluate(
            "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
        )
    assert width <= PHONE["width"]
    assert broken == []


def test_the_menu_leads_to_every_page(chromium: object) -> None:
    with opened(chromium, SITE / "index.html") as shown:
        links = shown.eval_on_selector_all(
            ".sidebar-tree a", "all => all.map(a => a.href.split('#')[0])"
        )
        captions = shown.locator(".sidebar-tree .caption-text").all_text_contents()
    assert captions.index("Reference") < captions.index("Findings")
    listed = {Path(link.removeprefix("file://")) for link in links}
    assert listed >= {SITE / page.with_suffix(".html") for page in PAGES} - {
        SITE / "index.html"
    }


def test_lines_that_begin_with_a_percent_sign_are_shown() -> None:
    # Sphinx's Markdown would take them for comments; wrapped text has such lines.
    for page in PAGES:
        shown = (SITE / page.with_suffix(".html")).read_text(encoding="utf-8")
        for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
            if line.startswith("%"):
                assert " ".join(line.split()[:3]) in " ".join(shown.split()), page


def test_tables_and_formulas_fit_a_laptop_and_lines_of_text_stay_short(
    chromium: object,
) -> None:
    for width in (1280, 1440):
        view = {"width": width, "height": 900}
        for page in PAGES:
            with opened(
                chromium, SITE / page.with_suffix(".html"), viewport=view
            ) as at:
                cut = at.evaluate(
                    "[...document.querySelectorAll('.table-wrapper, .formula')]"
                    ".filter((one) => one.scrollWidth > one.clientWidth + 1).length"
                )
                longest = at.evaluate(
                    "Math.max(...[...document.querySelectorAll('article p')]"
                    ".map((line) => line.clientWidth))"
                )
            assert cut == 0, (page, width)
            assert longest <= 740, (page, width)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_follow_the_theme(chromium: object, theme: str) -> None:
    """The corner of a figure, which is drawn on white, is dark on a dark page."""
    with opened(chromium, SITE / "tuned.html", color_scheme=theme) as page:
        picture = page.locator("article img[src$='.svg']").first.screenshot()
    corner = image.imread(io.BytesIO(picture))[8, 8, :3].mean()
    assert (corner < 0.2) if theme == "dark" else (corner > 0.9)
