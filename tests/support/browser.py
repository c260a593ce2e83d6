"""A real browser for tests of pages: Debian's chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@contextmanager
def browser() -> "Iterator[Browser]":
    """Chromium without a window; skips the test where it or Playwright is missing."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed"
    )
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        # Containers often forbid the sandbox, and the pages are our own.
        opened = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"]
        )
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def opened(browser: "Browser", path: Path, **options: Any) -> "Iterator[Page]":
    """The page of a file. Errors and requests other than for the file fail the test.

    Args:
        browser: A running browser.
        path: The file.
        options: Of the browser's context, as `viewport` and `color_scheme`.
    """
    wrong: list[str] = []
    asked: list[str] = []
    context = browser.new_context(accept_downloads=True, **options)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(path.as_uri())
        yield page
        outside = [
            url for url in asked if not url.startswith(("data:", "blob:", "file:"))
        ]
        assert not wrong
        assert not outside
    finally:
        context.close()
