"""Code blocks of Markdown pages, and how they are run.

The words after a block's language say how it is treated: `gpu`, `download` and
`cluster` need what a test does not have, so the block is not run; `slow` moves the page
to the slow tests. A `text output` block must be what the block before it has printed.
Code in a comment `<!-- setup: ... -->` runs as Python and is not shown.
"""

import contextlib
import io
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from tempergat.cli import main

NOT_RUN = {"gpu", "download", "cluster"}
MARKS = NOT_RUN | {"slow", "output"}
_BLOCK = re.compile(
    r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```[ ]*$|^<!-- setup:\n(?P<setup>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: The Markdown file.
        line: The number of the line before its first line of code.
        language: `python`, `sh`, `text`, ...
        marks: The words after the language.
        code: What is between the fences.
    """

    page: Path
    line: int
    language: str
    marks: frozenset[str]
    code: str

    @property
    def runs(self) -> bool:
        return self.language in ("python", "sh") and not self.marks & NOT_RUN


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        info, code = match["info"], match["code"]
        if match["setup"] is not None:
            info, code = "python", match["setup"]
        language, *marks = info.split() or [""]
        blocks.append(Block(page, line, language, frozenset(marks), code))
    return blocks


def run_page(page: Path) -> dict[str, Any]:
    """Runs the blocks of a page in order, in one namespace and the current folder.

    A traceback shows the lines of the page.

    Returns:
        The names that the blocks have defined.

    Raises:
        AssertionError: A block printed something else than the page says.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks_of(page):
        if block.runs:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                if block.language == "python":
                    # As many empty lines as there are lines above it on the page.
                    source = "\n" * block.line + block.code
                    exec(compile(source, str(page), "exec"), names)
                else:
                    run_commands(block)
            printed = out.getvalue()
        elif "output" in block.marks:
            place = f"{page.name}:{block.line}"
            assert _trimmed(printed) == _trimmed(block.code), place
    return names


def run_commands(block: Block) -> None:
    """Runs the lines of a shell block that call `tempergat`; others are left out."""
    for line in commands_of(block):
        run_command(line, f"{block.page.name}:{block.line}")


def run_command(line: str, place: str) -> None:
    """Runs a call of `tempergat` in this process."""
    status: object = 0
    try:
        with mock.patch.object(sys, "argv", shlex.split(line, comments=True)):
            main()
    except SystemExit as ended:
        status = ended.code
    assert not status, f"{place}: {line} ended with {status}"


def commands_of(block: Block) -> list[str]:
    """The calls of `tempergat` in a shell block; continued lines are one."""
    lines = block.code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("tempergat ")]


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
