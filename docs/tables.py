"""Tables: words to the left, ± beside its numbers, headings that may break."""

import re

from docutils import nodes
from sphinx.application import Sphinx

# Before these, a long heading like TemperGATv2Conv may go on in the next line.
_HUMP = re.compile(r"(?<=[a-z\d])(?=[A-Z][A-Za-z])")
_NUMBER = re.compile(r"[-+<>±\d.,%* ()\[\]]+|-|")


def improve_tables(app: Sphinx, doctree: nodes.document) -> None:
    """Changes the tables of a page; called when it has been read."""
    for group in doctree.findall(nodes.tgroup):
        rows = [list(row.findall(nodes.entry)) for row in group.findall(nodes.row)]
        for column in zip(*rows, strict=False):
            if any(_is_words(cell.astext()) for cell in column[1:]):
                for cell in column:
                    cell["classes"] = [c for c in cell["classes"] if c != "text-right"]
        for text in list(group.findall(nodes.Text)):
            if " ± " in text:
                kept = text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
                text.parent.replace(text, nodes.Text(kept))
        for heading in group.findall(nodes.thead):
            for text in list(heading.findall(nodes.Text)):
                broken = _HUMP.sub("\N{ZERO WIDTH SPACE}", text)
                text.parent.replace(text, nodes.Text(broken))


def _is_words(text: str) -> bool:
    """Whether a cell holds several words, not a number with a unit."""
    return not _NUMBER.fullmatch(text) and len(re.findall(r"[A-Za-z]{2,}", text)) > 1


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to Sphinx."""
    app.connect("doctree-read", improve_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
