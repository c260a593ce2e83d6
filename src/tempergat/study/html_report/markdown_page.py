"""A page of docs/ as HTML: what the studies' own pages are written in, and no more.

These are headings, paragraphs, lists, pipe tables and pictures; within a line, code,
bold words, links and escaped characters.
"""

import base64
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tempergat.study.html_report.parts import figure
from tempergat.study.html_report.plain_table import plain_table
from tempergat.study.report import Table

_PICTURE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<file>[^)]+)\)")
_HEADING = re.compile(r"(?P<depth>#+) (?P<words>.*)")
_ITEM = re.compile(r"(- |\d+\. )(?P<words>.*)")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_ESCAPED = re.compile(r"\\([\\`*_|\[\]])")
_INLINE = ((re.compile(r"`([^`]+)`"), "code"), (re.compile(r"\*\*(.+?)\*\*"), "strong"))


@dataclass
class _Block:
    """Lines of the page that belong together."""

    kind: str
    lines: list[str] = field(default_factory=list)


def markdown_html(
    text: str,
    folder: Path,
    drawn: Mapping[str, str] | None = None,
    caption: str = "",
) -> tuple[str, str]:
    """The title and the body of a page.

    Args:
        text: The page, in Markdown.
        folder: Where it is; its pictures are below it, as SVG. Those that are missing
            there are left out.
        drawn: SVG to show in place of a picture's file, by the file's name.
        caption: Put below each of these.
    """
    title, heading = "", ""
    parts: list[str] = []
    for block in _blocks(text):
        words = " ".join(block.lines)
        if block.kind == "heading":
            found = _HEADING.fullmatch(words)
            assert found is not None
            heading = _plain(found["words"])
            if found["depth"] == "#":
                title = heading
            else:
                tag = f"h{min(len(found['depth']), 4)}"
                parts.append(f"<{tag}>{_inline(found['words'])}</{tag}>")
        elif block.kind == "table":
            parts.append(plain_table(_table(block.lines, heading), captioned=False))
        elif block.kind == "picture":
            parts.append(_picture(words, folder, drawn or {}, caption))
        elif block.kind == "item":
            parts.append(f"<ul>{''.join(map(_item, block.lines))}</ul>")
        else:
            # The answer comes first, before any other block.
            lead = "" if parts else ' class="lead"'
            parts.append(f"<p{lead}>{_inline(words)}</p>")
    return title, "\n".join(part for part in parts if part)


def _blocks(text: str) -> Iterator[_Block]:
    block = _Block("none")
    for line in [*text.splitlines(), ""]:
        kind = _kind(line)
        if kind == "words" and line.strip() and block.kind in ("item", "words"):
            if block.kind == "item":
                block.lines[-1] += " " + line.strip()
            else:
                block.lines.append(line)
            continue
        if kind != block.kind or kind in ("heading", "picture"):
            if block.lines:
                yield block
            block = _Block(kind)
        if line.strip():
            block.lines.append(line)
    if block.lines:
        yield block


def _kind(line: str) -> str:
    if not line.strip():
        return "none"
    if line.startswith("|"):
        return "table"
    if _HEADING.fullmatch(line):
        return "heading"
    if _PICTURE.fullmatch(line.strip()):
        return "picture"
    return "item" if _ITEM.match(line) else "words"


def _item(line: str) -> str:
    found = _ITEM.match(line)
    return f"<li>{_inline(line[found.end(1) :] if found else line)}</li>"


def _table(lines: list[str], title: str) -> Table:
    columns, _, *rows = (
        tuple(
            _plain(cell.strip())
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))
        )
        for line in lines
    )
    return Table(title, columns, tuple(rows))


def _picture(line: str, folder: Path, drawn: Mapping[str, str], caption: str) -> str:
    found = _PICTURE.fullmatch(line.strip())
    assert found is not None
    if found["file"] in drawn:
        return figure(found["alt"], drawn[found["file"]], caption)
    path = (folder / found["file"]).with_suffix(".svg")
    if not path.is_file():
        return ""
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    words = html.escape(found["alt"])
    source = f"data:image/svg+xml;base64,{content}"
    return figure(found["alt"], f'<img alt="{words}" src="{source}">', "")


def _inline(words: str) -> str:
    """Words as HTML; of links only the words, because their files are elsewhere."""
    text = html.escape(html.unescape(_LINK.sub(r"\1", words)), quote=False)
    for pattern, tag in _INLINE:
        text = pattern.sub(rf"<{tag}>\1</{tag}>", text)
    return _ESCAPED.sub(r"\1", text)


def _plain(words: str) -> str:
    """Words without marks, as text."""
    text = _LINK.sub(r"\1", words)
    for pattern, _ in _INLINE:
        text = pattern.sub(r"\1", text)
    return html.unescape(_ESCAPED.sub(r"\1", text))
