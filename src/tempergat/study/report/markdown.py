"""Markdown made by a program, in lines as long as those written by hand."""

import textwrap

WIDTH = 88
# Tables, headings, pictures and code stay as they are.
_KEPT = ("|", "#", "!", "    ")


def filled(text: str) -> str:
    """Breaks the lines of paragraphs and of lists anew.

    Args:
        text: Markdown; a list item starts with "- " and goes on indented by two.
    """
    return "\n".join(_filled_block(block) for block in _blocks(text))


def _blocks(text: str) -> list[list[str]]:
    """Lines that are broken together: a paragraph, a list item, or one kept line."""
    blocks: list[list[str]] = []
    goes_on = False
    for line in text.split("\n"):
        alone = not line or line.startswith(_KEPT)
        if goes_on and not alone and not line.startswith("- "):
            blocks[-1].append(line)
        else:
            blocks.append([line])
        goes_on = not alone
    return blocks


def _filled_block(lines: list[str]) -> str:
    if len(lines) == 1 and (not lines[0] or lines[0].startswith(_KEPT)):
        return lines[0]
    return textwrap.fill(
        " ".join(line.strip() for line in lines),
        WIDTH,
        subsequent_indent="  " if lines[0].startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
