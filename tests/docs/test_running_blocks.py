"""How the code on a page is run, on made-up pages."""

from pathlib import Path

import pytest

from tests.support.doc_blocks import blocks_of, commands_of, run_page


def page(folder: Path, *blocks: str) -> Path:
    path = folder / "page.md"
    path.write_text("A sentence.\n\n" + "\n\n".join(blocks) + "\n")
    return path


def test_later_blocks_see_the_names_of_earlier_ones(tmp_path: Path) -> None:
    found = run_page(
        page(tmp_path, "```python\nx = 1\n```", "```python\ny = x + 1\n```")
    )
    assert found["y"] == 2


def test_an_error_names_the_line_of_the_page(tmp_path: Path) -> None:
    wrong = page(tmp_path, "```python\nx = 1\n\n1 / 0\n```")
    with pytest.raises(ZeroDivisionError) as raised:
        run_page(wrong)
    assert raised.traceback[-1].lineno + 1 == 6


def test_a_block_that_needs_a_gpu_is_not_run(tmp_path: Path) -> None:
    assert "x" not in run_page(page(tmp_path, "```python gpu\nx = 1\n```"))


def test_output_must_be_what_was_printed(tmp_path: Path) -> None:
    code = "```python\nprint(2)\n```"
    run_page(page(tmp_path, code, "```text output\n2\n```"))
    with pytest.raises(AssertionError, match=r"page\.md:7"):
        run_page(page(tmp_path, code, "```text output\n3\n```"))


def test_setup_in_a_comment_runs(tmp_path: Path) -> None:
    setup = "<!-- setup:\nx = 5\n-->"
    found = run_page(page(tmp_path, setup, "```python\ny = x + 1\n```"))
    assert found["y"] == 6


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended with 2"):
        run_page(page(tmp_path, "```sh\ntempergat methods --unknown\n```"))


def test_only_calls_of_tempergat_are_run(tmp_path: Path) -> None:
    shell = "```sh\npip install x\ntempergat train a \\\n    --quiet  # why\n```"
    (block,) = blocks_of(page(tmp_path, shell))
    assert [line.split() for line in commands_of(block)] == [
        ["tempergat", "train", "a", "--quiet", "#", "why"]
    ]
