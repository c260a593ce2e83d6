"""Line breaks in generated Markdown."""

import textwrap

WIDTH = 88
# Tables, headings, pictures and code are not wrapped.
_UNWRAPPED = ("|", "#", "!", "    ")


def filled(text: str) -> str:
    """Wraps paragraphs and list items at 88 characters.

    Args:
        text: Markdown; a list item starts with "- ", its further lines are indented
            by two spaces.
    """
    return "\n".join(_filled_block(block) for block in _blocks(text))


def _blocks(text: str) -> list[list[str]]:
    """Lines that are wrapped together: a paragraph, a list item, or one line alone."""
    blocks: list[list[str]] = []
    continues = False
    for line in text.split("\n"):
        alone = not line or line.startswith(_UNWRAPPED)
        if continues and not alone and not line.startswith("- "):
            blocks[-1].append(line)
        else:
            blocks.append([line])
        continues = not alone
    return blocks


def _filled_block(lines: list[str]) -> str:
    if len(lines) == 1 and (not lines[0] or lines[0].startswith(_UNWRAPPED)):
        return lines[0]
    return textwrap.fill(
        " ".join(line.strip() for line in lines),
        WIDTH,
        subsequent_indent="  " if lines[0].startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
